"""Every claim of the GPU plans computes over runs of those plans; the audit allows the right ones.

The runs are made up and marked synthetic: they prove that claims and tables can be read off such
records, nothing else.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from analysis.claiming import common_blocks
from analysis.claiming.claim import evaluate
from analysis.claiming.documents import Citation
from analysis.claiming.reading import Reading, StudyRun, read_study_run
from analysis.claiming.sm90 import SM90, sm90_claims
from analysis.claims import claims_of
from analysis.metrics import WindowMetrics
from analysis.reading import read_run
from analysis.server_clock import Means
from analysis.tables import study_tables
from audit.checks import basis
from audit.counted import count_run
from audit.recount import value_of as counted_value
from kit.planning.plan_file import load_plan
from records import schema
from records.errors import ClaimError
from records.plan import Plan
from records.run_directory import RunDirectory
from tests.sealed_run import Shape, decisions, make_run

ROOT = Path(__file__).parents[2]
FA3, FA2, INFER = ("FLASH_ATTN", "3"), ("FLASH_ATTN", "2"), ("FLASHINFER", "unlogged")
FULL, PIECEWISE = "FULL_AND_PIECEWISE", "PIECEWISE"
# What is expected of the engine, and a wall time by arm, in tenths: what the arms differ in.
EXPECTED: dict[str, tuple[tuple[str, str], str, int]] = {
    "fp8": (FA3, FULL, 9),
    "fa2": (FA2, FULL, 10),
    "fa2-piecewise": (FA2, PIECEWISE, 11),
    "flashinfer": (INFER, PIECEWISE, 12),
    "flashinfer-fp8": (INFER, PIECEWISE, 15),
    "fa2-fp8": (INFER, PIECEWISE, 15),
    "flashinfer-target": (INFER, PIECEWISE, 12),
}


def short(name: str) -> Plan:
    """A GPU plan with few requests a window."""
    plan = load_plan(ROOT / "kit" / "plans" / f"{name}.toml")
    windows = tuple(
        replace(w, load=replace(w.load, concurrency=min(w.load.concurrency, 2), requests=4))
        for w in plan.windows
    )
    return replace(plan, windows=windows)


def arm_of(plan: Plan, boot: str) -> str:
    """The arm of a boot's id: b06-3-fa2, prime-fa2."""
    name = boot.split("-", 1)[1] if boot.startswith("prime-") else boot.split("-", 2)[2]
    return plan.arm(name).id


def as_expected(plan: Plan) -> Any:
    """Decisions and speed by arm; the plain client sees every chunk 2 ms late, and gaps wider."""

    def edit(event: Any) -> Any:
        if isinstance(event, schema.EngineDecided):
            arm = plan.arm(arm_of(plan, event.boot))
            return replace(event, facts=facts(arm.id, arm.factors, bool(arm.speculative_config)))
        if isinstance(event, schema.WindowEnded | schema.WindowRequests):
            tenths = EXPECTED.get(arm_of(plan, event.boot), (FA3, FULL, 10))[2]
            event = stretched(event, tenths)
        if isinstance(event, schema.WindowEnded):
            event = replace(event, facts={**event.facts, "host": {"pace_ns": [10**6, 1_250_000]}})
        if isinstance(event, schema.WindowEnded) and event.window.endswith("-plain"):
            # Windows of one boot are never quite alike.
            percent = 100 + int(event.boot[1:3]) % 5
            wall_ns = event.report.wall_ns * percent // 100
            event = replace(event, report=replace(event.report, wall_ns=wall_ns))
        if isinstance(event, schema.WindowRequests) and event.window.endswith("-plain"):
            later = [
                replace(r, chunk_ns=tuple(ns + 2_000_000 * i for i, ns in enumerate(r.chunk_ns, 1)),
                        end_ns=r.end_ns + 2_000_000 * len(r.chunk_ns))
                for r in event.requests
            ]  # fmt: skip
            return replace(event, requests=tuple(later))
        return event

    return edit


def stretched(event: Any, tenths: int) -> Any:
    """A window whose every time is so many tenths of what it was."""
    if isinstance(event, schema.WindowEnded):
        wall_ns = event.report.wall_ns * tenths // 10
        return replace(event, report=replace(event.report, wall_ns=wall_ns))
    requests = [
        replace(r, sent_ns=r.sent_ns * tenths // 10, end_ns=r.end_ns * tenths // 10,
                chunk_ns=tuple(ns * tenths // 10 for ns in r.chunk_ns))
        for r in event.requests
    ]  # fmt: skip
    return replace(event, requests=tuple(requests))


def facts(arm: str, factors: dict[str, str], drafts: bool) -> dict[str, Any]:
    """The facts of `engine.decided` for one arm."""
    (backend, version), graphs, _ = EXPECTED.get(arm, (FA3, FULL, 10))
    graphs = "NONE" if "eager" in arm else graphs
    kv = "fp8_e4m3" if factors["kv"] == "fp8_e4m3" else "auto"
    told = decisions(drafts)
    own = ("FLASH_ATTN", "3") if arm == "flashinfer-target" else ("same or unlogged",) * 2
    return {
        **told,
        "target": {
            **told["target"],
            "backend": backend,
            "flash_attention_version": version,
            "kv_cache_dtype": kv,
        },
        "draft": {**told["draft"], "backend": own[0], "flash_attention_version": own[1]},
        "cudagraph_effective": graphs,
        "spec_method": factors["speculation"],
        "enforce_eager": str("eager" in arm).lower(),
    }


@pytest.fixture(scope="module")
def confounds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Path]:
    plan = short("sm90-confounds")
    shape = Shape(synthetic=True, edit=as_expected(plan), clocked=True)
    run = make_run(tmp_path_factory.mktemp("data") / "run-1", plan, shape)
    return plan, run.path


@pytest.fixture(scope="module")
def read(confounds: tuple[Plan, Path]) -> StudyRun:
    return read_study_run(RunDirectory(confounds[1]))


@pytest.fixture(scope="module")
def shape8b(tmp_path_factory: pytest.TempPathFactory) -> StudyRun:
    plan = short("sm90-shape8b")
    shape = Shape(synthetic=True, edit=as_expected(plan))
    return read_study_run(make_run(tmp_path_factory.mktemp("data") / "run-1", plan, shape))


def value_of(id_: str, run: StudyRun) -> Any:
    (claim,) = [c for c in SM90 if c.id == id_]
    return evaluate(claim, Reading("study", (run,))).value


def test_each_named_claim_has_a_value(read, shape8b):
    for claim in SM90:
        run = read if claim.study == "sm90-confounds" else shape8b
        assert evaluate(claim, Reading(claim.study, (run,))).printed, claim.id


def test_each_further_claim_of_a_study_has_one(read, shape8b):
    for study, run in (("sm90-confounds", read), ("sm90-shape8b", shape8b)):
        for claim in sm90_claims(study, study, study):
            assert evaluate(claim, Reading(study, (run,))).printed, claim.id


def test_decisions_are_those_that_the_engine_logged(read):
    assert value_of("sm90.backend.draft", read) == "FLASH_ATTN"
    assert value_of("sm90.backend.fp8", read) == "FLASH_ATTN"
    assert value_of("sm90.backend.fa2-fp8", read) == "FLASHINFER"
    assert value_of("sm90.graphs.fa2", read) == FULL
    assert value_of("sm90.graphs.fa2-fp8", read) == PIECEWISE
    assert value_of("sm90.backend.independent", read) == "yes"


def test_precision_kernel_and_graphs_make_up_what_a_comparison_by_dtype_reads(read):
    parts = [value_of(f"sm90.kv.{part}", read) for part in ("precision", "kernel", "graphs")]
    # Exactly, although blocks differ: each part is of blocks that hold both of its arms.
    assert parts == pytest.approx([12 / 15, 11 / 12, 10 / 11], rel=1e-6)
    whole = value_of("sm90.kv.uncontrolled", read)
    assert whole == pytest.approx(parts[0] * parts[1] * parts[2], rel=1e-6)


@pytest.mark.parametrize(
    ("id_", "blocks"),
    [
        ("sm90.kv.uncontrolled", {11, 14, 17, 22}),
        ("sm90.kv.kernel", {14, 17, 22}),
        ("sm90.kv.precision-fa3", {13, 19, 24}),
        ("sm90.inversion.p95-step-gap", {12, 18, 23}),
    ],
)
def test_arms_are_compared_within_the_blocks_that_hold_them_all(read, id_, blocks):
    (claim,) = [c for c in SM90 if c.id == id_]
    found = evaluate(claim, Reading("study", (read,)))
    assert {int(use.boot[1:3]) for use in found.measured} == blocks


def counted_twice(confounds, read) -> dict[str, tuple[Any, Any]]:
    """What sets arms side by side, with what the audit's own computation comes to."""
    counted = [count_run(RunDirectory(confounds[1]).events)]
    found = {}
    for claim in sm90_claims("s", "s", "sm90-confounds"):
        value = evaluate(claim, Reading("s", (read,)))
        again = counted_value(claim.id, "s", counted)
        if value.abreast and again is not None:
            found[claim.id.removeprefix("s.")] = (value.value, again)
    return found


def alike(found: dict[str, tuple[Any, Any]]) -> set[str]:
    return {
        id_
        for id_, (one, two) in found.items()
        if (one == two if isinstance(one, str) else one == pytest.approx(two, rel=1e-9))
    }


def test_what_arms_are_held_against_each_other_for_comes_out_again(confounds, read):
    found = counted_twice(confounds, read)
    assert {
        *(f"kv.{part}" for part in ("uncontrolled", "precision", "kernel", "graphs", "rest")),
        "kv.precision-fa3", "spread.draft-over-draft-eager", "spread.draft-over-ngram",
        "inversion.p95-step-gap", "inversion.tpot.n-1", "most-goodput.tpot.n-1.25ms",
        "goodput-of-fastest",
    } <= found.keys()  # fmt: skip
    assert alike(found) == found.keys()


def test_boots_of_other_blocks_in_a_ratio_are_told_by_the_second_count(
    confounds, read, monkeypatch
):
    """Within a block the arms are as much apart as in any other; the blocks themselves differ."""
    everywhere = frozenset((read.run_id, block) for block in range(1, 25))
    monkeypatch.setattr(common_blocks, "common_blocks", lambda _: everywhere)
    found = counted_twice(confounds, read)
    assert found.keys() - alike(found) >= {
        "kv.graphs",
        "kv.precision-fa3",
        "spread.draft-over-ngram",
        "goodput-of-fastest",
    }


def codes(id_: str, run: StudyRun, plan: Plan) -> set[str]:
    """What the audit says of a claim over this run."""
    claims = {c.id: c for c in (*SM90, *claims_of("sm90-confounds", plan))}
    value = evaluate(claims[id_], Reading("sm90-confounds", (run,)))
    at = Citation("paper/findings/F001.md", 1, "claim", id_, "1")
    return {finding.code for finding in basis.judge(value, (run,), at)}


@pytest.mark.parametrize("part", ["precision", "kernel", "graphs", "precision-fa3", "uncontrolled"])
def test_the_audit_lets_each_part_be_claimed(read, confounds, part):
    assert codes(f"sm90.kv.{part}", read, confounds[0]) == set()


def test_the_audit_refuses_the_published_confound_as_a_comparison_of_precision(read, confounds):
    id_ = "sm90-confounds.fa2-vs-fa2-fp8.c64.throughput.ratio"
    assert codes(id_, read, confounds[0]) == {"BASIS07"}


def test_a_plain_client_is_set_against_the_kits_on_the_same_boots_and_enters_nothing_else(
    read, confounds
):
    assert value_of("sm90.plain-client.draft.step-gap", read) == pytest.approx(2, abs=0.1)
    plan, path = confounds
    assert not [c.id for c in claims_of("s", plan) if "c64-plain." in c.id]
    tables = {table.name: table for table in study_tables([read_run(RunDirectory(path))])}
    assert {row[0] for row in tables["peer"].rows} == {arm.id for arm in plan.arms}
    for name, table in tables.items():
        if name not in ("peer", "server-clock"):
            assert not any("c64-plain" in row for row in table.rows), name


def test_against_the_servers_clock_the_clients_differ_by_what_the_plain_one_adds(read):
    """The server's times lie 1 and 2 ms below the kit's; the plain client is 2 ms a chunk late."""
    claims = {c.id: c for c in sm90_claims("s", "s", "sm90-confounds")}

    def value(id_: str) -> Any:
        return evaluate(claims[f"s.{id_}"], Reading("s", (read,))).value

    chunks = 16  # an arm without drafts: a token a chunk
    assert value("over-server.none.kit.whole") == pytest.approx(2)
    assert value("over-server.none.kit.ttft.sent") == pytest.approx(1)
    assert value("over-server.none.plain.whole") == pytest.approx(2 + 2 * chunks)
    assert value("plain-client.none.whole.over-server") == pytest.approx(2 * chunks)
    assert value("plain-client.none.ttft.sent.over-server") == pytest.approx(2)
    named = value_of("sm90.plain-client.draft.whole.over-server", read)
    assert named == pytest.approx(value("plain-client.draft.whole.over-server"))


def test_a_claim_on_the_servers_clock_names_both_windows_and_their_lines(read):
    (claim,) = [c for c in SM90 if c.id == "sm90.plain-client.draft.whole.over-server"]
    found = evaluate(claim, Reading("study", (read,)))
    assert {use.window for use in found.measured} == {"c64", "c64-plain"}
    assert found.lines


@pytest.mark.parametrize("quantity", ["step-gap", "whole.over-server"])
def test_the_audit_lets_what_the_clients_differ_by_be_claimed(read, confounds, quantity):
    assert codes(f"sm90.plain-client.draft.{quantity}", read, confounds[0]) == set()


def test_without_a_clock_in_one_boot_nothing_is_claimed(read):
    (claim,) = [c for c in SM90 if c.id == "sm90.plain-client.draft.whole.over-server"]
    none = Means(why="no page from after it")
    first = next(c for c in read.clocks if (c.arm, c.window) == ("draft", "c64-plain"))
    spoilt = replace(first, means={**first.means, "whole": none})
    clocks = tuple(spoilt if c is first else c for c in read.clocks)
    with pytest.raises(ClaimError, match="no page from after it"):
        evaluate(claim, Reading("study", (replace(read, clocks=clocks),)))


def test_boots_are_planned_by_the_blocks_of_an_arm(confounds):
    (table,) = [
        t for t in study_tables([read_run(RunDirectory(confounds[1]))]) if t.name == "boots"
    ]
    planned = {row[0]: row[1] for row in table.rows}
    assert (planned["draft"], planned["ngram"], planned["fa2"]) == ("20", "3", "4")


def test_a_load_measured_twice_in_each_boot_tells_boots_from_moments(read):
    claims = {c.id: c for c in sm90_claims("s", "s", "sm90-confounds")}

    def found(id_: str) -> Any:
        return evaluate(claims[f"s.{id_}"], Reading("s", (read,)))

    share, low, high = (
        found(f"repeat.draft.between-boots{end}").value for end in ("", "-low", "-high")
    )
    assert 0 <= low <= share <= high <= 100
    assert found("repeat.draft.within-cv").value > 0
    assert {use.window for use in found("repeat.draft.throughput").measured} == {"c64", "c64-plain"}
    assert (found("pace.draft.fastest").value, found("pace.draft.slowest").value) == (1.0, 1.25)


def test_steps_of_two_speeds_are_told_by_boot(read):
    claims = {c.id: c for c in sm90_claims("s", "s", "sm90-confounds")}

    def value(id_: str) -> Any:
        return evaluate(claims[f"s.speed.{id_}"], Reading("s", (read,))).value

    assert 0 < value("draft.least-median") <= value("draft.greatest-median")
    boots = len(Reading("s", (read,)).windows("draft", "c1"))
    assert 0 <= value("draft.two-speeds") <= boots
    changed = replace(
        read, metrics=tuple(slowed(m) if m.window == "c1" else m for m in read.metrics)
    )
    found = evaluate(claims["s.speed.draft.two-speeds"], Reading("s", (changed,))).value
    assert found == boots


def slowed(window: WindowMetrics) -> WindowMetrics:
    """The window with its slowest twentieth of step gaps at twice the fastest."""
    latency = tuple(replace(s, p95=2 * s.p5) if s.id == "step-gap" else s for s in window.latency)
    return replace(window, latency=latency)


def test_an_interval_of_a_ratio_is_of_pairs_in_blocks(read):
    """Against scipy's own paired t interval of the logarithms."""
    claims = {c.id: c for c in sm90_claims("s", "s", "sm90-confounds")}

    def faster(window: WindowMetrics) -> WindowMetrics:
        share = {14: 1.0, 17: 1.1, 22: 1.3}.get(window.block, 1.0)
        if window.arm != "flashinfer":
            return window
        return replace(window, output_tokens_per_s=window.output_tokens_per_s * share)

    spread = replace(read, metrics=tuple(map(faster, read.metrics)))
    rates = {
        arm: [
            m.output_tokens_per_s
            for m in sorted(spread.metrics, key=lambda m: m.block)
            if (m.arm, m.window) == (arm, "c64") and m.block in (14, 17, 22)
        ]
        for arm in ("flashinfer", "fa2-piecewise")
    }
    logs = np.log(rates["flashinfer"]) - np.log(rates["fa2-piecewise"])
    interval = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    found = [
        evaluate(claims[f"s.kv.kernel-{end}"], Reading("s", (spread,))).value
        for end in ("low", "high")
    ]
    assert found == pytest.approx([math.exp(interval.low), math.exp(interval.high)])
