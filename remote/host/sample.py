"""Watch a host during a window without a thread: two snapshots, and nvidia-smi writing to a file.

Invariant: nothing here runs in the measuring process while it measures; the CPU snapshots are taken
outside the window's ends, and the GPU samples are parsed after it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from records.clock_reasons import BITS, UNKNOWN, UNREPORTED
from records.errors import FormatError, HostUnfitError
from remote.engine.guarded import Guarded
from remote.host import proc
from remote.host.cpu import read_cpu_times
from remote.host.facts import cgroup_file
from remote.host.pace import pace_ns

_FIELDS = (
    "timestamp",
    "uuid",
    "clocks.sm",
    "clocks.mem",
    "power.draw.instant",
    "temperature.gpu",
    "clocks_event_reasons.active",
    "memory.used",
    "utilization.gpu",
)
_STAMP = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
_ABSENT = ("[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]")
_STOP_S = 5

# Those that lower the clock below what the load asks for: they void a window.
THROTTLES = frozenset(name for bit, name in BITS if bit & 0xEC)


@dataclass(frozen=True, slots=True)
class HostSnapshot:
    """One moment; `throttled_us` None where no quota is counted; `pace_ns`: remote/host/pace.py."""

    monotonic_ns: int
    cpu: proc.CpuTimes
    throttled_us: int | None
    load_1m_milli: int
    pace_ns: int


@dataclass(frozen=True, slots=True)
class HostInterval:
    """What the host did between two snapshots; shares over all CPUs, in parts per million.

    `pace_ns`: what a fixed piece of work took at both ends, on the engine's first processor.
    """

    duration_ns: int
    busy_ppm: int
    steal_ppm: int
    throttled_us: int | None
    load_1m_milli: int
    pace_ns: tuple[int, int]


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One line of nvidia-smi. MHz, mW, degrees Celsius, MiB, percent; None where it has no value.

    `wall` is nvidia-smi's own local time: it orders samples, and no duration is made of it.
    """

    wall: str
    uuid: str
    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    power_mw: int | None
    temperature_c: int | None
    reasons: tuple[str, ...]
    memory_used_mib: int | None
    utilization_percent: int | None


class HostSampler:
    """Snapshots around one window; `cpus`: the engine's processors, none where any may be."""

    def __init__(self, cpus: Sequence[int] = (), root: Path = Path("/")) -> None:
        self._cpus, self._root = cpus, root
        self._before = host_snapshot(cpus, root)

    def stop(self) -> HostInterval:
        """What happened since this sampler was made."""
        return interval(self._before, host_snapshot(self._cpus, self._root))


def host_snapshot(cpus: Sequence[int] = (), root: Path = Path("/")) -> HostSnapshot:
    """Read CPU time, throttling, load and pace now."""
    stat = cgroup_file(root, "cpu", "cpu.stat", "cpu.stat")
    pace = pace_ns(cpus)
    return HostSnapshot(
        monotonic_ns=time.monotonic_ns(),
        pace_ns=pace,
        cpu=read_cpu_times(root),
        throttled_us=proc.parse_throttled(stat.read_text()) if stat else None,
        load_1m_milli=proc.parse_load((root / "proc/loadavg").read_text()),
    )


def interval(before: HostSnapshot, after: HostSnapshot) -> HostInterval:
    """The difference of two snapshots; the load is that of `after`."""
    share = after.cpu.since(before.cpu)
    both = before.throttled_us is not None and after.throttled_us is not None
    return HostInterval(
        duration_ns=after.monotonic_ns - before.monotonic_ns,
        busy_ppm=share.busy_ppm,
        steal_ppm=share.steal_ppm,
        throttled_us=(after.throttled_us or 0) - (before.throttled_us or 0) if both else None,
        load_1m_milli=after.load_1m_milli,
        pace_ns=(before.pace_ns, after.pace_ns),
    )


class GpuSampler:
    """A nvidia-smi that writes a line per GPU and period to a file until stopped.

    It ends with this process, however that ends: nothing else would stop it.
    """

    def __init__(self, path: Path, period_ms: int = 500, program: Sequence[str] = ()) -> None:
        """Start it. HostUnfitError if the program cannot be started; `path` must be new."""
        argv = [
            *(program or ("nvidia-smi",)),
            "--query-gpu=" + ",".join(_FIELDS),
            "--format=csv,noheader,nounits",
            f"--loop-ms={period_ms}",
        ]
        self.path = path
        with path.open("xb") as file:
            self._guarded = Guarded(argv, os.environ, Path.cwd(), file)
        try:
            self._guarded.go()
        except OSError as error:
            self._guarded.let_go()
            raise HostUnfitError(f"cannot start nvidia-smi: {error}") from error

    def stop(self) -> tuple[GpuSample, ...]:
        """End it and read its file. HostUnfitError if it had ended by itself."""
        ended = self._guarded.exit_status()
        self._guarded.terminate(_STOP_S)
        text = self.path.read_text(encoding="utf-8", errors="replace")
        if ended is not None:
            raise HostUnfitError(
                f"nvidia-smi ended in the window with status {ended}: {text[-300:].strip()}",
                remedy="kit doctor",
            )
        return parse_samples(text)


def parse_samples(text: str) -> tuple[GpuSample, ...]:
    """Read the sampler's lines; a last line without newline was cut by the stop and is left out.

    FormatError names any other line that is not a sample.
    """
    lines = text.split("\n")[:-1]
    return tuple(_sample(line, number) for number, line in enumerate(lines, 1) if line.strip())


def throttled(samples: Sequence[GpuSample]) -> tuple[str, ...]:
    """The throttle reasons seen in any sample, sorted; idle and set clocks are none."""
    return tuple(sorted({r for sample in samples for r in sample.reasons} & THROTTLES))


def _sample(line: str, number: int) -> GpuSample:
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != len(_FIELDS) or not _STAMP.fullmatch(fields[0]):
        raise FormatError(f"line {number}: not a sample of nvidia-smi: {line!r}")
    numbers = [_scaled(field, number) for field in (*fields[2:6], *fields[7:])]
    sm, memory, power, temperature, used, utilization = numbers
    return GpuSample(
        wall=fields[0],
        uuid=fields[1],
        sm_clock_mhz=_whole(sm),
        memory_clock_mhz=_whole(memory),
        power_mw=None if power is None else int(power * 1000),
        temperature_c=_whole(temperature),
        reasons=_reasons(fields[6], number),
        memory_used_mib=_whole(used),
        utilization_percent=_whole(utilization),
    )


def _scaled(field: str, number: int) -> Decimal | None:
    if field in _ABSENT:
        return None
    if not re.fullmatch(r"\d+(\.\d+)?", field):
        raise FormatError(f"line {number}: not a number: {field!r}")
    return Decimal(field)


def _whole(value: Decimal | None) -> int | None:
    return None if value is None else int(value)


def _reasons(field: str, number: int) -> tuple[str, ...]:
    if field in _ABSENT:
        return (UNREPORTED,)
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,16}", field):
        raise FormatError(f"line {number}: not a mask of clock event reasons: {field!r}")
    mask = int(field, 16)
    known = [name for bit, name in BITS if mask & bit]
    rest = mask & ~sum(bit for bit, _ in BITS)
    return (*known, *([f"{UNKNOWN}{rest:#x}"] if rest else []))
