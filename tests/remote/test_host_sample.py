"""Samples of GPUs and host during a window."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from records.errors import FormatError, HostUnfitError
from remote.engine import proctree
from remote.host import proc
from remote.host.sample import (
    GpuSampler,
    HostSampler,
    HostSnapshot,
    interval,
    parse_samples,
    throttled,
)

LINE = "2026/11/30 09:55:34.123, GPU-a, 1980, 3201, 123.36, 41, 0x0000000000000001, 17, 0"
CAPPED = "2026/11/30 09:55:34.623, GPU-a, 1710, 3201, 699.90, 71, 0x0000000000000024, 900, 100"
BARE = "2026/11/30 09:55:34.623, GPU-b, [N/A], 3201, [N/A], 71, 0x0000000000000200, 900, [N/A]"

# Writes samples as `nvidia-smi --loop-ms` does: until it is told to end.
LOOP = f"""
import time
while True:
    print({LINE!r}, flush=True)
    time.sleep(0.01)
"""

ROOT = Path(__file__).parents[2]
KILLED = """
import os, signal, sys, time
from pathlib import Path
from remote.host.sample import GpuSampler
path = Path(sys.argv[1])
GpuSampler(path, program=(sys.argv[2], "-c", sys.argv[3]))
while not path.read_text():
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_sample() -> None:
    (sample,) = parse_samples(LINE + "\n")
    assert sample.uuid == "GPU-a"
    assert (sample.sm_clock_mhz, sample.memory_clock_mhz) == (1980, 3201)
    assert (sample.power_mw, sample.temperature_c) == (123_360, 41)
    assert sample.reasons == ("idle",)
    assert (sample.memory_used_mib, sample.utilization_percent) == (17, 0)


def test_throttling_is_told_and_idling_is_not() -> None:
    assert throttled(parse_samples(LINE + "\n")) == ()
    assert throttled(parse_samples(f"{LINE}\n{CAPPED}\n")) == (
        "software power cap",
        "software thermal slowdown",
    )


def test_values_a_card_does_not_have() -> None:
    (sample,) = parse_samples(BARE + "\n")
    assert sample.sm_clock_mhz is None
    assert sample.power_mw is None
    assert sample.reasons == ("unknown 0x200",)


def test_a_line_cut_by_the_stop_is_left_out() -> None:
    assert len(parse_samples(f"{LINE}\n{CAPPED[:40]}")) == 1


@pytest.mark.parametrize(
    "line",
    ["NVIDIA-SMI has failed", LINE.replace("1980", "fast"), LINE.replace("0x", ""), LINE + ", 1"],
)
def test_any_other_line_is_refused(line: str) -> None:
    with pytest.raises(FormatError, match="line 2"):
        parse_samples(f"{LINE}\n{line}\n{LINE}\n")


def test_a_sampler_is_stopped_and_read(tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    sampler = GpuSampler(path, program=(sys.executable, "-c", LOOP))
    while path.read_text().count("\n") < 3:
        time.sleep(0.01)
    assert len(sampler.stop()) >= 3


def test_a_sampler_that_ended_by_itself_is_an_error(tmp_path: Path) -> None:
    code = "print('Failed to initialize NVML: Unknown Error'); raise SystemExit(9)"
    sampler = GpuSampler(tmp_path / "gpu.csv", program=(sys.executable, "-c", code))
    while "NVML" not in (tmp_path / "gpu.csv").read_text():
        time.sleep(0.01)
    time.sleep(0.3)
    with pytest.raises(HostUnfitError, match="status 9: Failed to initialize NVML"):
        sampler.stop()


def test_a_sampler_ends_with_the_harness_that_started_it(tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    argv = (sys.executable, "-c", KILLED, str(path), sys.executable, LOOP)
    assert subprocess.run(argv, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    while any(held(path)):  # the test's own time limit ends a wait in vain
        time.sleep(0.02)


def held(path: Path) -> Iterator[int]:
    """Who has the file open."""
    for pid in proctree.snapshot():
        with suppress(OSError):
            if path in [entry.readlink() for entry in Path(f"/proc/{pid}/fd").iterdir()]:
                yield pid


def test_a_sampler_that_cannot_start(tmp_path: Path) -> None:
    with pytest.raises(HostUnfitError, match="cannot start"):
        GpuSampler(tmp_path / "gpu.csv", program=(str(tmp_path / "absent"),))


def test_an_interval_of_this_host() -> None:
    seen = HostSampler().stop()
    assert seen.duration_ns > 0
    assert 0 <= seen.steal_ppm <= 1_000_000


def test_intervals_subtract_and_keep_what_is_not_counted() -> None:
    before = HostSnapshot(5, proc.CpuTimes(0, 0, 0), 10, 100, 7)
    after = HostSnapshot(25, proc.CpuTimes(50, 40, 10), 30, 200, 9)
    seen = interval(before, after)
    assert (seen.duration_ns, seen.busy_ppm, seen.steal_ppm) == (20, 500_000, 100_000)
    assert (seen.throttled_us, seen.load_1m_milli, seen.pace_ns) == (20, 200, (7, 9))
    assert interval(HostSnapshot(0, before.cpu, None, 0, 7), after).throttled_us is None
