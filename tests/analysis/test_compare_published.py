"""Published claims: each outcome by records made to give it, none by records of something else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.claiming.reading import StudyRun, read_study_run
from analysis.comparing.against_published import published_verdicts
from analysis.comparing.verdict import Verdict
from analysis.published import Published, load_published
from analysis.statistics.dispersion import cv_interval
from records.digest import Digest
from records.plan import PlannedBoot
from records.run_directory import RunDirectory
from tests.comparable_runs import Made, l4_plan, made_run

ROOT = Path(__file__).parents[2]
OTHER = Digest.of(b"something else")
SHIPPED = ROOT / "records" / "data" / "20261130T115921Z-smoke-cpu-5d0eba"
GRAPH, EAGER, NGRAM, NONE, FP8, PINNED = (
    "draft-bf16-graph",
    "draft-bf16-eager",
    "ngram-bf16-graph",
    "none-bf16-graph",
    "draft-fp8-graph",
    "draft-bf16-target-pinned",
)
# Of a regular pattern of twelve the CV is 1.01 times its half-width.
PATTERN = (1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 1.0, -1.0, 0.5, -0.5, 1.0, -1.0)
AS_PUBLISHED = {
    "target": {
        GRAPH: ("FLASH_ATTN", "2"),
        FP8: ("FLASHINFER", "unlogged"),
        PINNED: ("FLASHINFER", "unlogged"),
    },
    "draft": {PINNED: "FLASH_ATTN"},
    "decided": {
        GRAPH: {"enforce_eager": "false"},
        EAGER: {"enforce_eager": "true"},
        NGRAM: {"spec_method": "ngram"},
        FP8: {"target.kv_cache_dtype": "fp8_e4m3"},
        PINNED: {"target.chosen": "pinned"},
    },
}

EAGERLY = {EAGER: {"enforce_eager": "true"}}


def spread(shares: dict[str, float], slower: dict[str, float] | None = None):
    """Window lengths whose inverse, the rate, spreads by about these shares over the blocks."""

    def lengths(boot: PlannedBoot) -> float:
        rate = 1 + shares.get(boot.arm, 0.0) * PATTERN[(boot.block - 1) % len(PATTERN)]
        return 2 * (slower or {}).get(boot.arm, 1.0) / rate

    return lengths


@pytest.fixture(scope="module")
def published() -> dict[str, Published]:
    return load_published(ROOT)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyRun:
    """Twelve boots an arm on an L4, like the published study but where a test wants it apart."""
    made = Made(
        lengths=spread({GRAPH: 0.105, EAGER: 0.05, NGRAM: 0.0267}),
        accepted=lambda boot: 1 + 0.0083 * PATTERN[boot.block - 1],
        **AS_PUBLISHED,
    )
    return made_run(tmp_path_factory.mktemp("l4") / "run-1", l4_plan(), made)


def by_id(runs: Sequence[StudyRun], published: dict[str, Published]) -> dict[str, Verdict]:
    found = published_verdicts(runs, published)
    assert [v.id for v in found] == list(published)
    return {verdict.id: verdict for verdict in found}


def rates(run: StudyRun, arm: str) -> list[float]:
    return [m.output_tokens_per_s for m in run.metrics if m.arm == arm]


def test_each_outcome_arises(study: StudyRun, published: dict[str, Published]) -> None:
    found = by_id([study], published)
    assert {v.id: v.outcome for v in found.values()} == {
        "backend.bf16": "reproduced",
        "backend.fp8": "reproduced",
        "backend.independent": "reproduced",
        "dispersion.graph.cv": "reproduced",
        "dispersion.eager.cv": "contradicted",
        "dispersion.ngram.cv": "inconclusive",
        "acceptance.cv": "reproduced",
        "goodput.inversion": "contradicted",
    }


def test_a_spread_is_the_cv_over_boots(study: StudyRun, published: dict[str, Published]) -> None:
    verdict = by_id([study], published)["dispersion.graph.cv"]
    want = cv_interval(rates(study, GRAPH), 0.90)
    assert verdict.value == pytest.approx(100 * want.cv)
    assert verdict.interval is not None
    assert verdict.interval.low == pytest.approx(100 * want.low)
    assert verdict.interval.high == pytest.approx(100 * want.high)
    assert (verdict.boots, verdict.hosts, verdict.runs) == (12, 1, ("run-1",))
    assert verdict.bounds is not None
    assert verdict.bounds.low == pytest.approx(6.96)
    assert {line.run for line in verdict.lines} == {"run-1"}


def test_the_outcome_is_where_the_interval_lies(
    study: StudyRun, published: dict[str, Published]
) -> None:
    """The p values and the interval say the same, before the family is reckoned with."""
    for verdict in by_id([study], published).values():
        if verdict.p is None or verdict.interval is None or verdict.bounds is None:
            continue
        low, high = verdict.interval.low, verdict.interval.high
        within = verdict.bounds.low < low and high < verdict.bounds.high
        outside = low > verdict.bounds.high or high < verdict.bounds.low
        assert (verdict.p < 0.05) == (within or outside)
        assert verdict.p_holm is not None
        assert verdict.p_holm >= verdict.p


def test_what_is_inconclusive_says_how_many_boots_would_decide(
    study: StudyRun, published: dict[str, Published]
) -> None:
    verdict = by_id([study], published)["dispersion.ngram.cv"]
    assert verdict.needed_boots is not None
    assert verdict.needed_boots > 12
    assert f"about {verdict.needed_boots} boots would decide" in verdict.reason


def test_one_claim_alone_needs_fewer_boots(
    study: StudyRun, published: dict[str, Published]
) -> None:
    among = by_id([study], published)["dispersion.ngram.cv"]
    (alone,) = published_verdicts([study], {among.id: published[among.id]})
    assert alone.p_holm == alone.p == among.p
    assert alone.needed_boots is not None
    assert among.needed_boots is not None
    assert alone.needed_boots < among.needed_boots


def test_hosts_that_differ_are_no_spread_of_boots(
    tmp_path: Path, published: dict[str, Published]
) -> None:
    """Half the boots on a host twice as slow: the CV is that within hosts."""
    runs = []
    for name, blocks, factor in (("h-1", range(1, 7), 1.0), ("h-2", range(7, 13), 2.0)):
        lengths = spread({GRAPH: 0.105}, {GRAPH: factor})
        made = Made(host=name, blocks=tuple(blocks), lengths=lengths, **AS_PUBLISHED)
        runs.append(made_run(tmp_path / name, l4_plan(), made))
    verdict = by_id(runs, published)["dispersion.graph.cv"]
    assert (verdict.boots, verdict.hosts) == (12, 2)
    relative = [np.array(rates(run, GRAPH)) / np.mean(rates(run, GRAPH)) for run in runs]
    want = np.sqrt(sum(((r - 1) ** 2).sum() for r in relative) / 10)
    assert verdict.value == pytest.approx(100 * want)
    assert (
        verdict.value < 15 < 100 * cv_interval([*rates(runs[0], GRAPH), *rates(runs[1], GRAPH)]).cv
    )


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Made(gpu=""), "measured on a CPU"),
        (Made(gpu="NVIDIA H200"), r"another architecture \(NVIDIA H200, compute capability 9.0\)"),
        (Made(gpu="NVIDIA L40S"), "another GPU"),
        (Made(gpu="NVIDIA L4", version="0.30.0"), r"another engine \(vllm 0.30.0\)"),
        (Made(gpu="Some Card"), "compute capability unknown"),
        (Made(gpu="Some Card", capability="12.1"), r"\(Some Card, compute capability 12.1\)"),
        (Made(gpu="NVIDIA L4", capability="9.0"), r"\(NVIDIA L4, compute capability 9.0\)"),
    ],
)
def test_records_of_something_else_decide_nothing(
    tmp_path: Path, published: dict[str, Published], made: Made, said: str
) -> None:
    run = made_run(tmp_path / "run-1", l4_plan(3), replace(made, **AS_PUBLISHED))
    verdict = by_id([run], published)["dispersion.graph.cv"]
    assert (verdict.outcome, verdict.p) == ("not applicable", None)
    assert re.search(said, verdict.reason)
    assert verdict.measured.endswith(" %")


@pytest.mark.parametrize("card", [("NVIDIA L40S", ""), ("A card of later", "8.9")])
def test_another_gpu_of_the_architecture_decides_what_is_of_the_architecture(
    tmp_path: Path, published: dict[str, Published], card: tuple[str, str]
) -> None:
    gpu, capability = card
    made = Made(gpu=gpu, capability=capability, **AS_PUBLISHED)
    run = made_run(tmp_path / "run-1", l4_plan(2), made)
    found = by_id([run], published)
    assert found["backend.bf16"].outcome == "reproduced"
    assert found["dispersion.graph.cv"].outcome == "not applicable"


def test_strata_are_told_apart_never_pooled(
    tmp_path: Path, published: dict[str, Published], study: StudyRun
) -> None:
    other = made_run(tmp_path / "run-2", l4_plan(), Made(driver="570.9", **AS_PUBLISHED))
    found = [
        v for v in published_verdicts([study, other], published) if v.id == "dispersion.graph.cv"
    ]
    assert sorted(v.runs for v in found) == [("run-1",), ("run-2",)]
    assert all(v.boots == 12 for v in found)


def test_a_synthetic_run_decides_nothing(tmp_path: Path, published: dict[str, Published]) -> None:
    made = Made(**AS_PUBLISHED)
    run = made_run(
        tmp_path / "run-1", l4_plan(3), replace(made, shape=replace(made.shape, synthetic=True))
    )
    found = by_id([run], published)
    assert {v.outcome for v in found.values()} == {"not applicable"}
    assert all("reference server" in v.reason for v in found.values())


def test_a_rule_made_after_the_records_decides_nothing(
    study: StudyRun, published: dict[str, Published]
) -> None:
    claim = published["dispersion.graph.cv"]
    assert claim.margin is not None
    for late in (
        replace(claim, fixed="2100-01-01"),
        replace(claim, margin=replace(claim.margin, fixed="2100-01-01")),
    ):
        (verdict,) = published_verdicts([study], {claim.id: late})
        assert verdict.outcome == "inconclusive"
        assert "fixed on 2100-01-01, after them" in verdict.reason


def test_without_a_record_it_says_how_to_make_one(published: dict[str, Published]) -> None:
    found = by_id([], published)
    assert {v.outcome for v in found.values()} == {"inconclusive"}
    assert all("make reproduce PLAN=l4-confounds" in v.reason for v in found.values())


def test_the_shipped_run_is_beside_the_claims(published: dict[str, Published]) -> None:
    found = by_id([read_study_run(RunDirectory(SHIPPED))], published)
    assert found["dispersion.graph.cv"].outcome == "inconclusive"
    assert found["dispersion.eager.cv"].outcome == "not applicable"
    assert "measured on a CPU" in found["acceptance.cv"].reason
    assert not any(v.outcome in ("reproduced", "contradicted") for v in found.values())


def kinds(
    tmp_path: Path, published: dict[str, Published], **made: object
) -> Iterator[tuple[str, Verdict]]:
    run = made_run(tmp_path / "run-1", l4_plan(2), replace(Made(**AS_PUBLISHED), **made))  # type: ignore[arg-type]
    yield from by_id([run], published).items()


def test_another_backend_contradicts(tmp_path: Path, published: dict[str, Published]) -> None:
    target = {
        GRAPH: ("FLASH_ATTN", "3"),
        FP8: ("FLASH_ATTN", "2"),
        PINNED: ("FLASHINFER", "unlogged"),
    }
    found = dict(kinds(tmp_path, published, target=target, draft={PINNED: "FLASHINFER"}))
    assert found["backend.bf16"].outcome == "contradicted"
    assert found["backend.bf16"].measured == "FlashAttention-3"
    assert found["backend.fp8"].measured == "FlashAttention-2"
    assert found["backend.independent"].outcome == "contradicted"
    assert found["backend.independent"].measured == "no"


def test_what_is_unlogged_decides_nothing(tmp_path: Path, published: dict[str, Published]) -> None:
    target = {GRAPH: ("FLASH_ATTN", "unlogged"), FP8: ("unlogged", "unlogged")}
    found = dict(kinds(tmp_path, published, target=target, draft={PINNED: "same or unlogged"}))
    for claim in ("backend.bf16", "backend.fp8", "backend.independent"):
        assert found[claim].outcome == "inconclusive", claim
        assert found[claim].measured == "unlogged"


@pytest.mark.parametrize(
    ("claim", "arm", "fact", "value"),
    [
        ("dispersion.graph.cv", GRAPH, "enforce_eager", "true"),
        ("dispersion.eager.cv", EAGER, "enforce_eager", "false"),
        ("dispersion.ngram.cv", NGRAM, "spec_method", "draft_model"),
        ("acceptance.cv", GRAPH, "spec_method", "none"),
        ("backend.bf16", GRAPH, "target.kv_cache_dtype", "fp8_e4m3"),
        ("backend.bf16", GRAPH, "target.chosen", "pinned"),
        ("backend.fp8", FP8, "target.kv_cache_dtype", "auto"),
        ("backend.independent", PINNED, "target.chosen", "automatic"),
    ],
)
def test_an_arm_is_what_its_engine_did_not_what_it_is_called(
    tmp_path: Path, published: dict[str, Published], claim: str, arm: str, fact: str, value: str
) -> None:
    decided = {**AS_PUBLISHED["decided"]}
    decided[arm] = {**decided.get(arm, {}), fact: value}
    found = dict(kinds(tmp_path, published, decided=decided))
    assert found[claim].outcome == "not applicable"
    assert f"the engine decided {fact} as {value}" in found[claim].reason


def test_a_run_that_changed_on_the_way_decides_nothing(
    study: StudyRun, published: dict[str, Published]
) -> None:
    (before, after), (host, end) = study.engines, (study.hosts[0], study.hosts[-1])
    for broken, said in (
        (replace(study, engines=(before,)), "not bound both before and after"),
        (replace(study, engines=(before, replace(after, digest=OTHER))), "its engine changed"),
        (replace(study, models=study.models[:-1]), "was not bound both before and after"),
        (replace(study, models=(*study.models[:-1], replace(study.models[-1], files={}))), "model"),
        (replace(study, hosts=(host, replace(end, host_id="other"))), "its host changed"),
        (replace(study, hosts=(host, replace(end, facts={**end.facts, "driver": "1"}))), "driver"),
    ):
        found = by_id([broken], published)
        assert {v.outcome for v in found.values()} == {"inconclusive"}
        assert all("decides nothing" in v.reason for v in found.values())
        assert said in found["dispersion.graph.cv"].reason


def test_boots_in_groups_are_pointed_out(tmp_path: Path, published: dict[str, Published]) -> None:
    """One slow boot in twelve: the rule decides, and says what it rests on."""

    def lengths(boot: PlannedBoot) -> float:
        return 2 / (0.64 if boot.block == 5 else 1 + 0.001 * boot.block)

    made = Made(lengths=lengths, **AS_PUBLISHED)
    run = made_run(tmp_path / "run-1", l4_plan(12, (GRAPH, NONE)), made)
    claim = "dispersion.graph.cv"
    (verdict,) = published_verdicts([run], {claim: published[claim]})
    assert verdict.outcome == "reproduced"
    assert "does not assume normal boots" in verdict.reason


def test_boots_about_one_middle_are_not(study: StudyRun, published: dict[str, Published]) -> None:
    assert "normal boots" not in by_id([study], published)["dispersion.graph.cv"].reason


def test_boots_that_did_not_decide_alike_have_no_spread(
    tmp_path: Path, published: dict[str, Published]
) -> None:
    """Two kernels in one arm: their difference is no dispersion of identical boots."""
    plan = l4_plan(4, (EAGER, NONE))
    runs = [
        made_run(tmp_path / name, plan, Made(target={EAGER: (backend, "-")}, decided=EAGERLY))
        for name, backend in (("run-1", "FLASHINFER"), ("run-2", "TRITON_ATTN"))
    ]
    claim = "dispersion.eager.cv"
    (verdict,) = published_verdicts(runs, {claim: published[claim]})
    assert (verdict.outcome, verdict.p) == ("inconclusive", None)
    assert "target.backend as FLASHINFER / TRITON_ATTN" in verdict.reason
    (alone,) = published_verdicts(runs[:1], {claim: published[claim]})
    assert alone.p is not None
