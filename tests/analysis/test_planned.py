"""What a plan rules out is no claim of it; what a run only failed to give stays one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.claiming.claim import evaluate
from analysis.claiming.planned import has_steady
from analysis.claiming.reading import Reading, read_study_run
from analysis.claims import claims_of
from records.errors import ClaimError
from records.plan import Plan
from tests.sealed_run import make_run, small_plan

PAIR = "s.draft-vs-none.c1"
LATENCIES = ("step-gap", "tpot.n-1", "tpot.n-k1", "ntpot")


def in_blocks(*blocks: tuple[int, ...]) -> Plan:
    """The small plan, each of its arms in these blocks alone."""
    plan = small_plan(blocks=3)
    arms = zip(plan.arms, blocks, strict=True)
    return replace(plan, arms=tuple(replace(arm, blocks=held) for arm, held in arms))


def ids(plan: Plan) -> set[str]:
    return {claim.id for claim in claims_of("s", plan)}


def test_arms_that_share_no_block_are_not_compared() -> None:
    together, apart = ids(in_blocks((1, 2), (2, 3))), ids(in_blocks((1, 2), (3,)))
    assert together - apart == {
        f"{prefix}.{name}"
        for window in ("c1", "c2")
        for prefix, names in (
            (
                f"s.draft-vs-none.{window}",
                ["throughput.ratio", *(f"{one}.p95.difference" for one in LATENCIES)],
            ),
            (f"s.{window}", ["fastest", *(f"{one}.least" for one in LATENCIES)]),
        )
        for name in names
    }
    assert apart <= together


@pytest.mark.parametrize(
    ("kind", "requests", "duration_ms", "steady"),
    [
        ("closed", 8, 0, False),
        ("closed", 9, 0, True),
        ("closed", 0, 1_000, True),
        ("burst", 8, 0, True),
    ],
)
def test_a_window_that_is_all_ramp_has_no_latencies(
    kind: str, requests: int, duration_ms: int, steady: bool
) -> None:
    plan = small_plan()
    first, *others = plan.windows
    load = replace(
        first.load,
        kind=kind,
        concurrency=8,
        requests=requests,
        duration_ms=duration_ms,
        rate_millihertz=0 if kind == "closed" else 1_000,
    )
    first = replace(first, load=load)
    assert has_steady(first) == steady
    found = ids(replace(plan, windows=(first, *others)))
    assert ("s.draft.c1.step-gap.p95" in found) == steady
    assert (f"{PAIR}.ntpot.p95.difference" in found) == steady
    assert ("s.c1.tpot.n-1.least" in found) == steady
    assert {"s.draft.c1.throughput.mean", "s.c1.fastest", "s.draft.c2.step-gap.p95"} <= found


def test_a_spread_of_one_boot_stays_a_claim(tmp_path: Path) -> None:
    """Another run of the plan, in the same study, gives it."""
    plan = in_blocks((1,), (1, 2, 3))
    runs = [read_study_run(make_run(tmp_path / f"run-{i}", plan)) for i in (1, 2)]
    (claim,) = [c for c in claims_of("s", plan) if c.id == "s.draft.c1.throughput.cv"]
    with pytest.raises(ClaimError, match="one boot has no spread"):
        evaluate(claim, Reading("s", (runs[0],)))
    assert evaluate(claim, Reading("s", tuple(runs))).printed
