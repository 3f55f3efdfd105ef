"""Every rule that voids a window, provoked in real runs of the harness against real processes.

Not to be forced here: a step of CLOCK_REALTIME, steal by other guests. Their rules meet bounds
that nothing can keep; the rules themselves stand in test_validity.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from records.load import Load
from records.plan import Bounds
from remote.validity import RULES
from tests.remote.void_runs import WIDE, Seen, carry_out, plan, window

QUIET = ("--no-prefix-caching",)
JIT = "Triton kernel JIT compilation during inference: eagle_step_slot_mapping"
PLANNED = 6

# Arm, options of the server, the rules that must void its window, requests completed.
ARMS: list[tuple[str, tuple[str, ...], set[str], int]] = [
    ("clean", QUIET, set(), PLANNED),
    ("drip", (*QUIET, "--fault", "drip:10"), set(), PLANNED),
    ("declared", ("--enable-prefix-caching",), set(), PLANNED),
    ("undeclared", (), {"prefix-cache"}, PLANNED),
    ("stall", (*QUIET, "--fault", "stall:3"), {"lost-requests"}, 0),
    ("reset", (*QUIET, "--fault", "reset:3"), {"lost-requests"}, 0),
    ("truncate", (*QUIET, "--fault", "truncate:3"), {"lost-requests"}, 0),
    ("refused", (*QUIET, "--fault", "status:429"), {"lost-requests"}, 0),
    ("wrong-usage", (*QUIET, "--fault", "wrong-usage:1"), {"lost-requests"}, 0),
    ("short", (*QUIET, "--fault", "stop:3"), {"short-responses"}, PLANNED),
    ("merged", (*QUIET, "--fault", "merge:4"), {"merged"}, PLANNED),
    ("miscount", (*QUIET, "--fault", "miscount:1"), {"counters-disagree"}, PLANNED),
    ("jit", (*QUIET, "--log-line-after", "4", JIT), {"jit"}, PLANNED),
]
SCHEDULED = {"stall": "timeout", "reset": "reset", "truncate": "truncated",
             "refused": "http-status", "wrong-usage": "usage-mismatch"}  # fmt: skip


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Seen]:
    arms = {name: options for name, options, _, _ in ARMS}
    load = Load("closed", 2, requests=PLANNED, timeout_ms=400)
    return carry_out(tmp_path_factory.mktemp("faulty"), plan(arms, WIDE, [window(load)]))


@pytest.mark.parametrize(("arm", "rules", "completed"), [(a, r, c) for a, _, r, c in ARMS])
def test_a_window_is_void_for_what_happened_in_it(
    faulty: dict[tuple[str, str], Seen], arm: str, rules: set[str], completed: int
) -> None:
    seen = faulty[arm, "w"]
    assert seen.rules == rules, seen.ended.void
    assert seen.ended.report.completed == completed
    errors = {r.error for r in seen.requests if r.outcome == "failed"}
    assert errors == ({SCHEDULED[arm]} if arm in SCHEDULED else set())


def test_no_request_of_any_window_vanishes(faulty: dict[tuple[str, str], Seen]) -> None:
    for seen in faulty.values():
        report = seen.ended.report
        assert report.planned == PLANNED == report.completed + report.failed + report.cancelled
        assert [r.index for r in seen.requests] == list(range(PLANNED))
        outcomes = [r.outcome for r in seen.requests]
        assert (report.completed, report.failed, report.cancelled) == tuple(
            outcomes.count(kind) for kind in ("completed", "failed", "cancelled")
        )


def test_the_jit_line_is_kept(faulty: dict[tuple[str, str], Seen]) -> None:
    assert faulty["jit", "w"].ended.jit_lines == ("eagle_step_slot_mapping",)


def test_bounds_that_nothing_can_keep(tmp_path: Path) -> None:
    """Merged chunks and stolen time may be none at all; the other bounds of 0 cannot be kept."""
    what = plan({"clean": QUIET}, Bounds(0, 0, 0, 0, 0, 0), [window(Load("closed", 1, requests=2))])
    (seen,) = carry_out(tmp_path, what).values()
    always = {"calibration", "client-lag", "client-cpu", "client-clock"}
    assert always <= seen.rules <= always | {"merged", "host-steal"}


@contextmanager
def busy(cpu: int) -> Iterator[None]:
    """Four processes that never leave one processor."""
    code = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nprint(flush=True)\nwhile True: pass"
    argv = [sys.executable, "-I", "-S", "-c", code]
    hogs = [subprocess.Popen(argv, stdout=subprocess.PIPE) for _ in range(4)]
    try:
        for hog in hogs:
            assert hog.stdout is not None
            hog.stdout.readline()
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.communicate()


def test_a_starved_client_voids_its_window(tmp_path: Path) -> None:
    """The client's processor belongs to busy loops; the engine has one of its own."""
    cpus = sorted(os.sched_getaffinity(0))
    bounds = Bounds(10**9, 1_000_000, 900_000, 10**6, 10**6, 10**8)
    what = plan({"clean": QUIET}, bounds, [window(Load("closed", 2, requests=20))])
    with busy(cpus[0]):
        places = {"client_cpus": (cpus[0],), "engine_cpus": (cpus[-1],)}
        (seen,) = carry_out(tmp_path, what, **places).values()
    assert "client-lag" in seen.rules
    assert seen.ended.report.lag_max_ns > 1_000_000
    assert seen.ended.report.completed == 20  # late, and not one lost


def test_a_client_busier_than_its_bound_voids_its_window(tmp_path: Path) -> None:
    bounds = Bounds(10**9, 10**9, 10_000, 10**6, 10**6, 10**8)
    flood = (*QUIET, "--ttft", "0ns", "--gap", "0ns")
    what = plan({"flood": flood}, bounds, [window(Load("closed", 8, requests=400))])
    (seen,) = carry_out(tmp_path, what).values()
    assert seen.rules == {"client-cpu"}, seen.ended.void


def test_every_rule_is_provoked_here_or_with_a_gpu() -> None:
    provoked = {rule for _, _, rules, _ in ARMS for rule in rules}
    provoked |= {"calibration", "client-lag", "client-cpu", "client-clock", "host-steal"}
    provoked |= {"gpu-throttle", "gpu-error", "gpu-foreign"}  # test_void_gpu_end_to_end
    assert provoked == set(RULES)
