"""Each claim with the value of each boot: what it is a statistic of, and nothing made up."""

from __future__ import annotations

import statistics
from functools import partial
from pathlib import Path

import pytest

from analysis.claiming.by_boot import BootValue, summary, values_by_boot
from analysis.claiming.claim import Value, evaluate
from analysis.claiming.reading import Reading, StudyRun, read_study_run
from analysis.claims import claims_of
from records.errors import ClaimError
from records.run_directory import RunDirectory
from tests.comparable_runs import Made, l4_plan, made_run

DATA = Path(__file__).parents[2] / "records" / "data"
CPU = DATA / "20261130T115921Z-smoke-cpu-5d0eba"
GPU = DATA / "20261130T170838Z-sm90-confounds-70604b"
# Of no boot, or of all boots of two arms together.
TOGETHER = {"calibrated_p99_us", "same_answers", "other_answers"}


def values(runs: tuple[StudyRun, ...]) -> dict[str, Value]:
    found = {}
    for claim in claims_of("s", runs[0].plan):
        try:
            found[claim.id] = evaluate(claim, Reading("s", runs))
        except ClaimError:
            continue
    return found


@pytest.fixture(scope="module", params=[CPU, GPU], ids=["cpu", "gpu"])
def study(request: pytest.FixtureRequest) -> tuple[dict[str, StudyRun], dict[str, Value]]:
    run = read_study_run(RunDirectory(request.param))
    return {run.run_id: run}, values((run,))


def function_of(value: Value) -> str:
    """The outermost function of a claim, beneath the cell that is bound to it."""
    function = value.claim.function
    while isinstance(function, partial) and isinstance(function.func, partial):
        function = function.func
    return str(getattr(function, "func", function).__name__)


def numbers(boots: tuple[BootValue, ...]) -> list[float]:
    return [float(one.value) for one in boots]


def test_every_claim_of_boots_has_a_value_of_each(
    study: tuple[dict[str, StudyRun], dict[str, Value]],
) -> None:
    runs, found = study
    seen = set()
    for value in found.values():
        name, boots = values_by_boot(value, runs)
        function = function_of(value)
        seen.add(function)
        if function in TOGETHER:
            assert boots == (), value.claim.id
            continue
        if not value.measured and value.value == 0:  # no boot of that arm, or none so ended
            continue
        assert name, value.claim.id
        used = {(use.run, use.boot) for use in value.measured}
        assert used <= {(one.run, one.boot) for one in boots}, value.claim.id
        if function == "mean":
            assert statistics.fmean(numbers(boots)) == value.value
        if function == "median":
            assert statistics.median(numbers(boots)) == value.value
        if function in ("boots_counted", "void_windows"):
            assert sum(numbers(boots)) == value.value
    assert {"mean", "median", "ratio", "compliant_percent", "boots_counted"} <= seen
    assert seen & {"fastest", "decided"}


def test_a_boot_is_told_with_host_block_and_its_value(tmp_path: Path) -> None:
    plan = l4_plan(3)
    made = [
        made_run(tmp_path / f"2026113{i}T000000Z-l4-confounds-aaaaaa", plan, Made(host=f"h-{i}"))
        for i in (1, 2)
    ]
    runs = {run.run_id: run for run in made}
    found = values(tuple(made))
    arm = plan.arms[0].id
    name, boots = values_by_boot(found[f"s.{arm}.c64.throughput.cv"], runs)
    assert name == "output throughput, tok/s"
    assert [(one.host, one.block) for one in boots] == [
        (f"h-{i}", b) for i in (1, 2) for b in (1, 2, 3)
    ]
    for one in boots:
        (metrics,) = [m for m in runs[one.run].metrics if m.boot == one.boot]
        assert one.value == metrics.output_tokens_per_s
        assert one.printed == f"{metrics.output_tokens_per_s:.2f} tok/s"
        assert (one.arm, one.windows) == (arm, ("c64",))
    (told,) = summary(boots)
    ordered = sorted(numbers(boots))
    assert told == (
        f"{arm} c64: 6 boots, least {ordered[0]:.2f} tok/s, "
        f"median {statistics.median(ordered):.2f}, greatest {ordered[-1]:.2f} tok/s"
    )


def test_two_arms_stand_in_the_order_of_the_plan(
    study: tuple[dict[str, StudyRun], dict[str, Value]],
) -> None:
    runs, found = study
    (run,) = runs.values()
    plan = [arm.id for arm in run.plan.arms]
    for value in found.values():
        arms = list(dict.fromkeys(one.arm for one in values_by_boot(value, runs)[1]))
        assert arms == [arm for arm in plan if arm in arms], value.claim.id


def test_words_and_single_boots_have_no_least_and_greatest() -> None:
    one = BootValue("r", "h", 1, "b01-1-a", "a", ("c1",), "1.00 ms", 1.0)
    assert summary((one,)) == ()
    words = tuple(
        BootValue("r", "h", n, f"b0{n}-1-a", "a", (), "FLASH_ATTN", "FLASH_ATTN") for n in (1, 2)
    )
    assert summary(words) == ()
