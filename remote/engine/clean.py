"""Prove that an engine left nothing behind: no process, no listener, no GPU memory.

Invariant: a report says what was looked at and what was found; it is clean only if `leaks` is
empty. Where there is no NVIDIA driver the GPU part is `gpu_checked=False`, never "clean".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from records.errors import EngineLeakError
from remote.engine.ports import holder, port_is_free
from remote.engine.process import EngineProcess
from remote.host.gpu import GpuMemory, compute_pids, memory_used

_POLL_S = 0.25


@dataclass(frozen=True, slots=True)
class CleanReport:
    """What was left when waiting ended. Memory in MiB, per GPU, as nvidia-smi counts it."""

    took_ns: int
    leaks: tuple[str, ...]
    gpu_checked: bool
    gpu_before: tuple[GpuMemory, ...]
    gpu_after: tuple[GpuMemory, ...]
    gpu_compute_pids: tuple[int, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing was left."""
        return not self.leaks

    def describe(self) -> str:
        """The leaks in one line; "nothing" if there are none."""
        return "; ".join(self.leaks) or "nothing"


def gpu_baseline() -> tuple[GpuMemory, ...]:
    """GPU memory in use before an engine starts; () on a host without nvidia-smi."""
    return memory_used()


def prove_clean(
    engine: EngineProcess | None,
    listen: tuple[str, int],
    gpu_before: Sequence[GpuMemory] = (),
    tolerance_mib: int = 64,
    timeout_ns: int = 10_000_000_000,
) -> CleanReport:
    """Look until everything is free or `timeout_ns` has passed, then report.

    `gpu_before` is `gpu_baseline()` from before the start; freed memory comes back a moment after
    the process is gone, hence the wait. `engine` is None where none could be started.
    """
    began_ns = time.monotonic_ns()
    while True:
        after = memory_used()
        leaks = (
            *(_processes(engine) if engine is not None else ()),
            *_port(listen),
            *_memory(gpu_before, after, tolerance_mib),
        )
        if not leaks or time.monotonic_ns() - began_ns > timeout_ns:
            break
        time.sleep(_POLL_S)
    return CleanReport(
        took_ns=time.monotonic_ns() - began_ns,
        leaks=leaks,
        gpu_checked=bool(after),
        gpu_before=tuple(gpu_before),
        gpu_after=after,
        gpu_compute_pids=compute_pids() if after else (),
    )


def require_clean(report: CleanReport) -> None:
    """EngineLeakError naming every leak of the report."""
    if not report.is_clean:
        raise EngineLeakError(
            f"the engine left behind: {report.describe()}",
            remedy="end the process named, or restart the host, before the next boot",
        )


def _processes(engine: EngineProcess) -> list[str]:
    return [f"process {p.name} (pid {p.pid}, state {p.state})" for p in engine.members()]


def _port(listen: tuple[str, int]) -> list[str]:
    host, port = listen
    return [] if port_is_free(host, port) else [f"port {port} held by {holder(port)}"]


def _memory(
    before: Sequence[GpuMemory], after: Sequence[GpuMemory], tolerance_mib: int
) -> list[str]:
    start = {gpu.uuid: gpu.used_mib for gpu in before}
    return [
        f"{gpu.used_mib - start[gpu.uuid]} MiB on GPU {gpu.uuid}"
        for gpu in after
        if gpu.uuid in start and gpu.used_mib - start[gpu.uuid] > tolerance_mib
    ]
