"""What a window says of its GPUs, held against what a harness can write (remote/gpu_watch.py).

Invariant: pure; a fault is a statement that no harness writes, whatever nvidia-smi told it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.facts import part, parts
from records.clock_reasons import BITS, UNKNOWN, UNREPORTED

# The columns of a trace, an entry a sample in each, and what is beyond any card.
COLUMNS = {
    "sm_clock_mhz": 10_000,
    "memory_clock_mhz": 100_000,
    "power_mw": 10_000_000,
    "temperature_c": 200,
}
COUNTS = ("new_ecc_errors", "new_xid_errors", "foreign_processes")

_NAMES = frozenset(name for _, name in BITS) | {UNREPORTED}
_UNNAMED = re.compile(UNKNOWN + "0x[0-9a-f]{1,16}")


def faults(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(What is said, what can be) of a window's facts; -1 is what the host did not show."""
    gpu = facts.get("gpu", {})
    if not isinstance(gpu, dict):
        yield "gpu: no object", "an object"
        return
    for name in COUNTS:
        if name in gpu and not _is_count(gpu[name]):
            yield f"{name}: {gpu[name]!r:.40}", "a whole number from -1"
    traces = gpu.get("traces", [])
    if not isinstance(traces, list) or len(parts(gpu, "traces")) != len(traces):
        yield "traces: no list of objects", "an object a GPU"
        return
    uuids = [trace.get("uuid") for trace in traces]
    if not all(isinstance(uuid, str) and uuid for uuid in uuids) or len(set(uuids)) < len(uuids):
        yield "traces without an id each", "one trace a GPU, with its uuid"
    for trace in traces:
        yield from _columns(trace)
        yield from _reasons(trace.get("reasons"))


def unwatched(facts: Mapping[str, Any], uuids: Sequence[str]) -> str:
    """What nobody watched of the cards that the host has; "" where all were."""
    traces = parts(part(facts, "gpu"), "traces")
    if not traces:
        return "no trace"
    if left_out := sorted(set(uuids) - {str(trace.get("uuid")) for trace in traces}):
        return f"no trace of {', '.join(left_out)}"
    for trace in traces:
        reasons = trace.get("reasons")
        if isinstance(reasons, list) and UNREPORTED in reasons:
            return f"clock reasons {UNREPORTED}"
    return ""


def cards(facts: Mapping[str, Any]) -> list[str]:
    """The ids of the GPUs that a host was seen to have (host.observed)."""
    found = (gpu.get("uuid") for gpu in parts(facts, "gpus"))
    return [uuid for uuid in found if isinstance(uuid, str) and uuid]


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= -1  # True is none


def _columns(trace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    lengths = set()
    for name, most in COLUMNS.items():
        column = trace.get(name)
        if not isinstance(column, list) or not column:
            yield f"{name}: no sample", "one or more"
            continue
        lengths.add(len(column))
        if odd := [value for value in column if not _is_count(value) or value > most]:
            yield f"{name}: {odd[0]!r:.40}", f"whole numbers from -1 to {most}"
    if len(lengths) > 1:
        yield f"columns of {', '.join(map(str, sorted(lengths)))} samples", "as many in each"


def _reasons(reasons: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(reasons, list):
        yield f"reasons: {reasons!r:.40}", "a list of clock reasons"
        return
    for reason in reasons:
        if not isinstance(reason, str) or not (reason in _NAMES or _UNNAMED.fullmatch(reason)):
            yield f"reason: {reason!r:.40}", "a reason of records/clock_reasons.py"
            return
