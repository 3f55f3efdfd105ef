"""Runs and hosts as the page shows them, and what of them was not used.

Invariant: every boot that did not complete and every void window of these runs is here, with the
reason that the records give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from analysis.facts import integer, part, parts
from analysis.processor_table import in_words, processors_of
from analysis.reading import Boot, Run
from analysis.report.model import RunView, UnusedView
from analysis.report.sources import SourceBook
from analysis.trace import UNBOUND, RunTrace
from records.plan import boot_order
from records.void_words import reason_text

_GIB = 1 << 30
_ABSENT = "absent"
_NOT_BEGUN = "not begun"
_ALWAYS = ("completed", "failed", _NOT_BEGUN)
_ENDS = ("completed", "failed", "interrupted", "open", _NOT_BEGUN)


def run_view(run: Run, trace: RunTrace, anchor: str) -> RunView:
    """One run. Times are the host's own real-time clock, shown in UTC and used for nothing else."""
    facts = run.hosts[0].facts if run.hosts else {}
    ends = boot_ends(run)
    digests = [
        ("seal", trace.seal),
        ("plan", trace.plan),
        ("harness", trace.harness),
        (f"engine ({trace.runtime})", trace.engine),
        ("engine after the run", _after(trace)),
        (f"lock images/{trace.lock}", trace.lock_digest),
        *trace.bound.items(),
        *[(f"model {name}", digest) for name, digest in sorted(trace.models.items())],
    ]
    return RunView(
        anchor,
        run.run_id,
        run.started.plan.id,
        run.started.plan.title,
        utc(run.started.clock.realtime_ns),
        utc(run.ended.clock.realtime_ns) if run.ended else "",
        f"{told_ends(ends)}, of {ends.total()} planned boots"
        f"{f'; {trace.closed}' if trace.closed else ''}",
        run.host_id,
        _stratum(run, facts, trace),
        tuple(_machine(facts)),
        tuple(digests),
        tuple(
            (f"{concurrency} stream{'s' if concurrency > 1 else ''}", f"{error_ns / 1e6:.4f} ms")
            for concurrency, error_ns in sorted(trace.calibrated_p99_ns.items())
        ),
    )


def _after(trace: RunTrace) -> str:
    if trace.closed and trace.engine_after == UNBOUND:
        return "not bound: the host was gone"
    return "the same" if trace.engine_after == trace.engine else trace.engine_after


def boot_ends(run: Run) -> Counter[str]:
    """Of the planned boots, how many ended how at their last attempt, and how many had none."""
    last = {boot.planned.id: boot.outcome for boot in run.boots if boot.planned is not None}
    planned = boot_order(run.started.plan, run.started.blocks)
    return Counter(last.get(boot.id, _NOT_BEGUN) for boot in planned)


def told_ends(ends: Counter[str]) -> str:
    """`34 completed, 0 failed, 65 not begun`; what else came to pass is told where it did."""
    return ", ".join(f"{ends[end]} {end}" for end in _ENDS if end in _ALWAYS or ends[end])


def utc(realtime_ns: int) -> str:
    """A reading of CLOCK_REALTIME to the minute, `2026-11-30 11:59 UTC`."""
    at = datetime.fromtimestamp(realtime_ns // 10**9, tz=timezone.utc)
    return f"{at:%Y-%m-%d %H:%M} UTC"


def gpu_names(facts: Mapping[str, Any]) -> str:
    """The GPUs of a host, `2 x NVIDIA L4`, or "no GPU"."""
    names = [str(gpu.get("name")) for gpu in parts(facts, "gpus")]
    counted = {name: names.count(name) for name in names}
    shown = [f"{n} x {name}" if n > 1 else name for name, n in counted.items()]
    return ", ".join(shown) or "no GPU"


def unused_views(runs: Sequence[Run], sources: SourceBook) -> tuple[UnusedView, ...]:
    """What was not used of these runs, in the order of the records."""
    return tuple(one for run in runs for boot in run.boots for one in _unused(run, boot, sources))


def _unused(run: Run, boot: Boot, sources: SourceBook) -> Iterator[UnusedView]:
    started = boot.started
    if boot.outcome != "completed" or boot.cut_off:
        cause, detail = boot.cause, boot.ended.detail if boot.ended else ""
        anchor = sources.of_boot(run.run_id, started.boot, "")
        yield UnusedView(
            run.run_id, started.boot, started.arm, "", boot.outcome, cause, detail, anchor
        )
    for window in boot.windows:
        if window.void:
            reason = "; ".join(map(reason_text, window.void))
            detail = "\n".join(window.ended.jit_lines) if window.ended else ""
            id_ = window.window.id
            anchor = sources.of_boot(run.run_id, started.boot, id_)
            yield UnusedView(
                run.run_id, started.boot, started.arm, id_, "void", reason, detail, anchor
            )


def _stratum(run: Run, facts: Mapping[str, Any], trace: RunTrace) -> tuple[tuple[str, str], ...]:
    """What decides whether runs may be pooled, or divides them into strata."""
    return (
        ("plan", run.started.plan.id),
        ("host", run.host_id),
        ("GPU", gpu_names(facts)),
        ("driver", trace.driver),
        ("runtime", trace.runtime),
    )


def _machine(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    cpu, memory_bytes = part(facts, "cpu"), integer(part(facts, "memory"), "total_bytes")
    cores = facts.get("cores_online")
    if cpu:
        yield "processor", f"{cpu.get('model', '')}, {cores} cores online"
    processors = processors_of(facts)
    if processors is not None:
        yield "processors at once", in_words(processors)
    if memory_bytes is not None:
        yield "memory", f"{memory_bytes / _GIB:.1f} GiB"
    for gpu in parts(facts, "gpus"):
        mib = gpu.get("memory_total_mib")
        yield "GPU", f"{gpu.get('name')}" + (f", {mib} MiB" if mib else "")
    for name, key in (
        ("driver", "driver"),
        ("CUDA", "cuda"),
        ("system", "os"),
        ("kernel", "kernel"),
        ("container", "container"),
        ("governor", "governor"),
        ("Python", "python"),
    ):
        value = facts.get(key, _ABSENT)
        if value != _ABSENT:
            yield name, str(value)
