"""The `calibrate` verb of the harness: a real client, a real server, the bound, no stamps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kit import zipapp
from records import canonical
from records.decode import from_object
from records.errors import CalibrationError
from records.schema import Calibrated

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zipapp.build_named(tmp_path_factory.mktemp("harness"), ROOT)[0]


def calibrate(harness: Path, scratch: Path, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-I", "-S", str(harness), "calibrate", "--scratch", str(scratch)]
    argv += ["--step-gap-ms", "5", "--output-tokens", "12", *options]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def events(done: subprocess.CompletedProcess[str]) -> list[Calibrated]:
    (line,) = done.stdout.splitlines()
    return [from_object(Calibrated, value) for value in canonical.decode(line.encode())]


def test_it_prints_what_a_run_would_record(harness: Path, tmp_path: Path) -> None:
    done = calibrate(harness, tmp_path, "--concurrency", "1", "--concurrency", "3")
    assert done.returncode == 0, done.stderr
    found = events(done)
    assert [e.concurrency for e in found] == [1, 3]
    assert [e.chunks + e.report.merged for e in found] == [2 * 12, 6 * 12]
    for event in found:
        assert event.step_gap_ns == 5_000_000
        # the kernel's clock mapping is good to a microsecond
        assert -1_000 < event.error_p50_ns <= event.error_p99_ns <= event.error_max_ns
        assert event.report.stamps == "kernel"
        assert event.bound_ns == event.error_p99_ns
        assert event.capacity_chunks_per_s > 0
    assert list(tmp_path.iterdir()) == []


def test_without_kernel_stamps_it_says_so_and_the_largest_error_counts(
    harness: Path, tmp_path: Path
) -> None:
    done = calibrate(harness, tmp_path, "--user-stamps")
    assert done.returncode == 0, done.stderr
    (event,) = events(done)
    assert (event.report.stamps, event.report.lag_p99_ns) == ("user", -1)
    assert event.bound_ns == event.error_max_ns


def test_an_error_beyond_the_bound_is_printed_and_told_by_the_exit_code(
    harness: Path, tmp_path: Path
) -> None:
    done = calibrate(harness, tmp_path, "--bound-ns", "1")
    assert done.returncode == CalibrationError.exit_code
    assert len(events(done)) == 1
    assert "the bound is 1" in done.stderr
    assert "  try: " in done.stderr
