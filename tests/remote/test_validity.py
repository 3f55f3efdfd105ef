"""Each rule is provoked alone, and a clean window gives none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from records.clock_reasons import POWER_CAP
from records.measurement import ClientReport
from records.plan import Bounds
from records.schema import Counters
from remote.gpu_watch import GpuTrace, clock_drop_ppm
from remote.validity import RULES, GpuSummary, WindowEvidence, void_reasons

BOUNDS = Bounds(
    calibrated_p99_ns=100_000,
    client_lag_p99_ns=1_000_000,
    client_cpu_ppm=500_000,
    merged_ppm=10_000,
    steal_ppm=20_000,
    clock_step_ns=50_000,
)
REPORT = ClientReport(
    stamps="kernel",
    workers=1,
    planned=8,
    completed=8,
    failed=0,
    cancelled=0,
    chunks=400,
    merged=4,
    wall_ns=10**10,
    lag_p50_ns=20_000,
    lag_p99_ns=1_000_000,
    lag_max_ns=5_000_000,
    late_send_p99_ns=10_000,
    busiest_cpu_ppm=500_000,
    cpu_ns=10**8,
    clock_step_ns=50_000,
    received_bytes=10**5,
    peak_rss_bytes=10**7,
)
COUNTERS = Counters(
    drafts=300,
    draft_tokens=1200,
    accepted_tokens=212,
    generation_tokens=512,
    prompt_tokens=300,
    prefix_cache_hits=0,
    preemptions=0,
)
CLEAN = WindowEvidence(
    report=REPORT,
    counters=COUNTERS,
    client_tokens=512,
    short_responses=0,
    declared_prefix_cache=False,
    calibrated_p99_ns=100_000,
    jit_lines=(),
    steal_ppm=20_000,
    gpu=GpuSummary(),
)


def test_a_window_at_every_bound_is_valid():
    assert void_reasons(BOUNDS, CLEAN) == ()


PROVOKED = [
    ("jit", replace(CLEAN, jit_lines=("Triton kernel JIT compilation during inference: x",))),
    ("client-lag", replace(CLEAN, report=replace(REPORT, lag_p99_ns=1_000_001))),
    ("client-cpu", replace(CLEAN, report=replace(REPORT, busiest_cpu_ppm=500_001))),
    ("client-clock", replace(CLEAN, report=replace(REPORT, clock_step_ns=50_001))),
    ("merged", replace(CLEAN, report=replace(REPORT, merged=5))),
    ("calibration", replace(CLEAN, calibrated_p99_ns=100_001)),
    ("calibration", replace(CLEAN, calibrated_p99_ns=-1)),
    ("lost-requests", replace(CLEAN, report=replace(REPORT, completed=7, failed=1))),
    ("short-responses", replace(CLEAN, short_responses=1)),
    ("prefix-cache", replace(CLEAN, counters=replace(COUNTERS, prefix_cache_hits=16))),
    ("counters-disagree", replace(CLEAN, client_tokens=511)),
    ("host-steal", replace(CLEAN, steal_ppm=20_001)),
    ("gpu-throttle", replace(CLEAN, gpu=GpuSummary(throttle_reasons=("SW Power Cap",)))),
    ("gpu-error", replace(CLEAN, gpu=GpuSummary(new_ecc_errors=1))),
    ("gpu-error", replace(CLEAN, gpu=GpuSummary(new_xid_errors=1))),
    ("gpu-foreign", replace(CLEAN, gpu=GpuSummary(foreign_processes=1))),
]


@pytest.mark.parametrize(("rule", "evidence"), PROVOKED)
def test_each_rule_voids_alone(rule, evidence):
    (reason,) = void_reasons(BOUNDS, evidence)
    assert reason.startswith(f"{rule}: ")


def test_every_rule_is_provoked():
    assert {rule for rule, _ in PROVOKED} == set(RULES)


def test_a_declared_prefix_cache_is_no_reason():
    hits = replace(CLEAN, counters=replace(COUNTERS, prefix_cache_hits=16))
    assert void_reasons(BOUNDS, replace(hits, declared_prefix_cache=True)) == ()


@pytest.mark.parametrize(
    ("reasons", "drop_ppm", "kept"),
    [
        (("software power cap",), 100_000, True),
        (("software power cap",), 100_001, False),
        (("hardware slowdown", "software power cap"), 0, False),
        (("software thermal slowdown",), 0, False),
    ],
)
def test_a_declared_power_cap_is_no_reason_within_its_bound(reasons, drop_ppm, kept):
    declared = replace(BOUNDS, power_cap_ppm=100_000)
    capped = replace(CLEAN, gpu=GpuSummary(throttle_reasons=reasons, clock_drop_ppm=drop_ppm))
    assert (void_reasons(declared, capped) == ()) is kept
    assert void_reasons(BOUNDS, capped) != ()


@pytest.mark.parametrize(
    ("clocks", "drop_ppm"),
    [
        ((1980, 1845, 1965), 68_181),
        ((1980,), 0),
        ((1980, -1), 1_000_000),
        ((), 1_000_000),
    ],
)
def test_how_far_a_clock_fell(clocks, drop_ppm):
    idle = GpuTrace("GPU-1", (345, 1980), (), (), (), ("idle",))
    assert clock_drop_ppm([idle]) == 0
    capped = GpuTrace("GPU-0", clocks, (), (), (), (POWER_CAP,))
    assert clock_drop_ppm([capped, idle]) == drop_ppm


def test_tokens_of_a_cancelled_request_may_go_uncounted():
    cut = replace(CLEAN, report=replace(REPORT, completed=7, cancelled=1), client_tokens=500)
    assert void_reasons(BOUNDS, cut) == ()


def test_a_server_without_a_counter_is_not_called_a_liar():
    assert (
        void_reasons(BOUNDS, replace(CLEAN, counters=replace(COUNTERS, generation_tokens=-1))) == ()
    )
