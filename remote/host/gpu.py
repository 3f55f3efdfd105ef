"""Ask nvidia-smi about this host's GPUs; a host without it has none, and says so as ().

Invariant: only the questions below are asked, never a setting changed; an answer that nvidia-smi
refuses is an error with its words, since a broken driver is no host without a GPU.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace

from records.errors import FormatError, HostUnfitError
from remote.host import smi
from remote.host.answer import answer_of

_LIMIT_S = 30
# Version 470 says so and ends with an error, whatever driver stands below it (canonical/
# inference-snaps issue 89).
_UNKNOWN_FIELD = "is not a valid field to query"
_UNTOLD = ("[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]")


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """Memory in use on one GPU, by all processes together."""

    uuid: str
    used_mib: int


def available() -> bool:
    """Whether this host has nvidia-smi."""
    return shutil.which("nvidia-smi") is not None


def report() -> smi.SmiReport | None:
    """The report of `nvidia-smi -q`; None on a host without nvidia-smi."""
    return smi.parse(ask(("-q",))) if available() else None


def compute_capabilities() -> dict[str, str]:
    """Compute capability by uuid, of each GPU that tells it; {} where nvidia-smi cannot say."""
    if not available():
        return {}
    try:
        return parse_capabilities(ask(("--query-gpu=uuid,compute_cap", "--format=csv,noheader")))
    except HostUnfitError as error:
        if _UNKNOWN_FIELD in error.message:
            return {}
        raise


def with_capabilities(gpus: Sequence[smi.Gpu], capabilities: dict[str, str]) -> tuple[smi.Gpu, ...]:
    """The GPUs of a report, which does not tell capabilities, with these by uuid."""
    return tuple(replace(one, compute_capability=capabilities.get(one.uuid or "")) for one in gpus)


def memory_used() -> tuple[GpuMemory, ...]:
    """Memory in use per GPU; () on a host without nvidia-smi."""
    if not available():
        return ()
    return parse_memory(ask(("--query-gpu=uuid,memory.used", "--format=csv,noheader,nounits")))


def compute_pids() -> tuple[int, ...]:
    """Pids of compute processes as the host numbers them; () on a host without nvidia-smi."""
    if not available():
        return ()
    return parse_pids(ask(("--query-compute-apps=pid", "--format=csv,noheader,nounits")))


def parse_memory(text: str) -> tuple[GpuMemory, ...]:
    """Read `uuid, used` lines in MiB; FormatError on anything else."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        uuid, comma, used = (part.strip() for part in line.partition(","))
        if not comma or not used.isdigit():
            raise FormatError(f"line {number}: expected a GPU and its memory in MiB: {line!r}")
        found.append(GpuMemory(uuid, int(used)))
    return tuple(found)


def parse_capabilities(text: str) -> dict[str, str]:
    """Read `uuid, major.minor` lines, without those that tell none; FormatError on others."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        uuid, _, value = (part.strip() for part in line.partition(","))
        if value in _UNTOLD:
            continue
        if not uuid or not re.fullmatch(r"[0-9]{1,3}\.[0-9]", value):
            raise FormatError(f"line {number}: expected a GPU and its compute capability: {line!r}")
        found[uuid] = value
    return found


def parse_pids(text: str) -> tuple[int, ...]:
    """Read one pid a line; FormatError on anything else."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    bad = [line for line in lines if not line.isdigit()]
    if bad:
        raise FormatError(f"expected a pid of a compute process: {bad[0]!r}")
    return tuple(sorted({int(line) for line in lines}))


def ask(arguments: Sequence[str]) -> str:
    """What nvidia-smi prints; HostUnfitError with its words if it fails or hangs."""
    return answer_of(
        "nvidia-smi",
        ("nvidia-smi", *arguments),
        _LIMIT_S,
        silent="restart the host",
        failed="kit doctor names the cause",
    )
