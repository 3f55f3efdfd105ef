"""Watch the GPUs during one window: samples, ECC, Xid, and who else computes on them.

Invariant: what the host does not show (no GPU, kernel log closed, pids of another namespace) is
said in a field; it is never counted as zero events seen.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from records.clock_reasons import POWER_CAP
from remote.engine.process import EngineProcess
from remote.host import gpu, sample, smi
from remote.host.sample import GpuSample
from remote.validity import GpuSummary

_KERNEL_LOG = Path("/dev/kmsg")
_XID = b"NVRM: Xid"


@dataclass(frozen=True, slots=True)
class GpuTrace:
    """One GPU over a window, one entry a sample; -1 where nvidia-smi gave no value."""

    uuid: str
    sm_clock_mhz: tuple[int, ...]
    memory_clock_mhz: tuple[int, ...]
    power_mw: tuple[int, ...]
    temperature_c: tuple[int, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What was seen; a count is -1 where the host does not show it.

    Compute processes not of the engine are counted where the engine's own are among those that
    nvidia-smi lists: elsewhere its pids are of another namespace.
    """

    present: bool
    traces: tuple[GpuTrace, ...]
    new_ecc_errors: int
    new_xid_errors: int
    foreign_processes: int


class GpuWatch:
    """The result of a watch; complete once the watch has ended."""

    def __init__(self) -> None:
        self._samples: tuple[GpuSample, ...] = ()
        self._facts = GpuFacts(False, (), -1, -1, -1)
        self._summary = GpuSummary()

    def summary(self) -> GpuSummary:
        """What the voiding rules look at."""
        return self._summary

    def facts(self) -> GpuFacts:
        """What is recorded."""
        return self._facts

    def close(
        self,
        samples: tuple[GpuSample, ...],
        before: tuple[smi.SmiReport, int | None],
        after: tuple[smi.SmiReport, int | None],
        pids: tuple[frozenset[int], frozenset[int]],
    ) -> None:
        """Take in the samples, both ends' (report, Xid count), and (listed pids, the engine's)."""
        listed, own = pids
        ecc = [ecc_errors(report) for report, _ in (before, after)]
        xid = [count for _, count in (before, after)]
        facts = GpuFacts(
            present=True,
            traces=traces(samples),
            new_ecc_errors=_rise(ecc[0], ecc[1]),
            new_xid_errors=_rise(xid[0], xid[1]),
            foreign_processes=len(listed - own) if listed & own else -1,
        )
        self._facts = facts
        self._summary = GpuSummary(
            throttle_reasons=sample.throttled(samples),
            clock_drop_ppm=clock_drop_ppm(facts.traces),
            new_ecc_errors=max(facts.new_ecc_errors, 0),
            new_xid_errors=max(facts.new_xid_errors, 0),
            foreign_processes=max(facts.foreign_processes, 0),
        )


@contextmanager
def watch_gpu(scratch: Path, engine: EngineProcess) -> Iterator[GpuWatch]:
    """Watch while the block runs; on a host without nvidia-smi the result says `present=False`."""
    watch = GpuWatch()
    first = gpu.report()
    if first is None:
        yield watch
        return
    before = (first, xid_count())
    path = scratch / f"gpu-{uuid.uuid4().hex}.csv"
    sampler = sample.GpuSampler(path)
    try:
        yield watch
    finally:
        samples = sampler.stop()
        path.unlink()
        own = frozenset(process.pid for process in engine.members())
        after = gpu.report() or first
        watch.close(samples, before, (after, xid_count()), (frozenset(gpu.compute_pids()), own))


def clock_drop_ppm(cards: Sequence[GpuTrace]) -> int:
    """The most by which a card at its power limit lowered its clock; 0 where none is at it."""
    return max((_drop_ppm(card) for card in cards if POWER_CAP in card.reasons), default=0)


def _drop_ppm(trace: GpuTrace) -> int:
    """The lowest SM clock below the highest, in millionths; 1,000,000 where a sample has none."""
    low, high = min(trace.sm_clock_mhz, default=0), max(trace.sm_clock_mhz, default=0)
    if low < 0 or high <= 0:
        return 1_000_000
    return (high - low) * 1_000_000 // high


def traces(samples: Sequence[GpuSample]) -> tuple[GpuTrace, ...]:
    """The samples of each GPU as columns, in the order of their ids."""
    by_gpu: dict[str, list[GpuSample]] = {}
    for one in samples:
        by_gpu.setdefault(one.uuid, []).append(one)
    return tuple(
        GpuTrace(
            uuid=name,
            sm_clock_mhz=tuple(_or_minus(s.sm_clock_mhz) for s in rows),
            memory_clock_mhz=tuple(_or_minus(s.memory_clock_mhz) for s in rows),
            power_mw=tuple(_or_minus(s.power_mw) for s in rows),
            temperature_c=tuple(_or_minus(s.temperature_c) for s in rows),
            reasons=tuple(sorted({reason for s in rows for reason in s.reasons})),
        )
        for name, rows in sorted(by_gpu.items())
    )


def ecc_errors(report: smi.SmiReport) -> int | None:
    """Volatile ECC errors of all GPUs together; None if no GPU counts them."""
    counts = [
        count
        for card in report.gpus
        for count in (card.ecc_volatile_correctable, card.ecc_volatile_uncorrectable)
        if count is not None
    ]
    return sum(counts) if counts else None


def xid_count(log: Path = _KERNEL_LOG) -> int | None:
    """NVIDIA Xid messages in the kernel log; None where this user or container may not read it."""
    try:
        descriptor = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return _count_xids(descriptor)
    finally:
        os.close(descriptor)


def _count_xids(descriptor: int) -> int | None:
    count = 0
    while True:
        try:
            record = os.read(descriptor, 8192)
        except BlockingIOError:
            return count
        except BrokenPipeError:  # a record was overwritten while reading: go on with the next
            continue
        except OSError:
            return None
        if not record:
            return count
        count += record.count(_XID)


def _rise(before: int | None, after: int | None) -> int:
    return max(0, after - before) if before is not None and after is not None else -1


def _or_minus(value: int | None) -> int:
    return -1 if value is None else value
