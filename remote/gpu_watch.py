"""What the GPUs did during a window, watched from outside the measuring process.

Invariant: on a host without nvidia-smi the facts say so ("absent") and no rule about GPUs fires.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from records.decode import to_object
from remote.host import gpu, sample
from remote.validity import GpuSummary


@dataclass(slots=True)
class GpuWatch:
    """Filled when the watched block ends. `facts` goes into the record as it stands."""

    summary: GpuSummary = field(default_factory=GpuSummary)
    facts: dict[str, object] = field(default_factory=lambda: {"gpu": "absent"})


@contextmanager
def watch_gpu(scratch: Path, known_pids: frozenset[int]) -> Iterator[GpuWatch]:
    """Sample clocks, power and throttling twice a second while the block runs.

    `known_pids`: the compute processes seen once the engine was up; any other is foreign.
    """
    watch = GpuWatch()
    path = scratch / "gpu-samples.csv"
    path.unlink(missing_ok=True)
    sampler = sample.gpu_sampler(path)
    if sampler is None:
        yield watch
        return
    errors_before = _ecc_errors()
    try:
        yield watch
    finally:
        samples = sampler.stop()
        foreign = set(gpu.compute_pids()) - known_pids
        watch.summary = GpuSummary(
            throttle_reasons=sample.throttled(samples),
            new_ecc_errors=max(0, _ecc_errors() - errors_before),
            foreign_processes=len(foreign),
        )
        watch.facts = {"gpu": "sampled", "samples": to_object(samples)}


def _ecc_errors() -> int:
    report = gpu.report()
    gpus = report.gpus if report else ()
    return sum((g.ecc_volatile_uncorrectable or 0) for g in gpus)
