"""Claims: what they read is what they note, evidence is named by digest, text decides nothing."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed_run import Shape, list_run, make_run, small_plan

from analysis.claiming.claim import Claim, described, where_defined
from analysis.claiming.evaluation import evaluate_project
from analysis.claiming.evidence import parse_evidence
from analysis.claiming.tex import claims_tex
from analysis.claims import NAMED, claims_of
from analysis.metrics import run_metrics
from analysis.published import load_published
from analysis.reading import read_run
from analysis.trace import cited_places, reverse, trace
from records.chain import verify
from records.errors import ClaimError, UnknownRunError
from records.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]
MEAN = "small.draft.c1.throughput.mean"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with one study over two runs of three."""
    data = tmp_path / "records" / "data"
    data.mkdir(parents=True)
    runs = [
        make_run(data / "run-1", small_plan(), Shape()),
        make_run(data / "run-2", small_plan(), Shape(void_first_window=True, fail_last=True)),
        make_run(data / "run-3", small_plan(), Shape(scale_ppm=800_000)),
    ]
    for run in runs:
        list_run(data, run)
    lines = [f'"{run.path.name}" = "{run.seal_digest}"' for run in runs[:2]]
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "evidence.toml").write_text(
        '[study.small]\nplan = "test-plan"\n[study.small.runs]\n' + "\n".join(lines) + "\n"
    )
    (tmp_path / "README.md").write_text(f"See [1 tok/s](claim:{MEAN}).\n")
    return tmp_path


def data(root: Path) -> Path:
    return root / "records" / "data"


def test_a_value_is_the_statistic_over_the_usable_windows_of_the_named_runs(root):
    value = evaluate_project(root, data(root)).value(MEAN)
    found = [
        metrics.output_tokens_per_s
        for name in ("run-1", "run-2")
        for metrics in run_metrics(read_run(RunDirectory(data(root) / name)))
        if (metrics.arm, metrics.window) == ("draft", "c1")
    ]
    assert value.value == statistics.fmean(found)
    assert value.printed == f"{value.value:.2f} tok/s"
    assert len(value.measured) == len(found)
    assert value.runs == ("run-1", "run-2")


def test_evaluation_is_deterministic(root):
    one, two = (evaluate_project(root, data(root)) for _ in range(2))
    assert {i: (v.value, v.lines) for i, v in one.values.items()} == {
        i: (v.value, v.lines) for i, v in two.values.items()
    }
    assert claims_tex(one.values, {}) == claims_tex(two.values, {})


def test_the_lines_noted_are_those_of_the_windows(root):
    value = evaluate_project(root, data(root)).value(MEAN)
    for use in value.measured:
        journal = (data(root) / use.run / "events.jsonl").read_bytes().splitlines(keepends=True)
        verify(journal)
        lines = [journal[line.seq] for line in value.lines if line.run == use.run]
        for kind in ("window.started", "window.requests", "window.ended"):
            key = f'"type":"{kind}","value":{{"boot":"{use.boot}"'.encode()
            mine = [x for x in lines if key in x and x.endswith(b'"window":"c1"}}\n')]
            every = [x for x in journal if key in x and x.endswith(b'"window":"c1"}}\n')]
            assert mine == every != []


def test_counts_of_boots_and_void_windows(root):
    found = evaluate_project(root, data(root))
    assert found.value("small.boots.completed").value == 7
    assert found.value("small.boots.failed").value == 1
    assert found.value("small.windows.void").value == 2


def test_every_claim_of_a_plan_has_an_id_of_its_own():
    plan = small_plan()
    ids = [claim.id for claim in (*NAMED, *claims_of("small", plan))]
    assert len(ids) == len(set(ids))
    assert all("small" not in claim.study for claim in NAMED)


def test_the_published_claims_are_those_this_kit_recomputes():
    published = load_published(ROOT)
    assert set(published) == {claim.id for claim in NAMED if claim.study == "l4-confounds"}
    assert published["dispersion.graph.cv"].printed == "13.92 %"


def test_without_evidence_a_claim_says_so(root):
    found = evaluate_project(root, data(root))
    with pytest.raises(ClaimError, match="no evidence yet"):
        found.value("dispersion.graph.cv")
    with pytest.raises(ClaimError, match=r"no claim 'small\.nothing'"):
        found.value("small.nothing")


def test_synthetic_and_open_runs_are_no_evidence(root):
    for name, shape in (("synthetic", Shape(synthetic=True)), ("open", Shape(seal=False))):
        run = make_run(data(root) / name, small_plan(), shape)
        seal = run.seal_digest if shape.seal else "sha256:" + "0" * 64
        (root / "paper" / "evidence.toml").write_text(
            f'[study.small]\nplan = "test-plan"\n[study.small.runs]\n"{name}" = "{seal}"\n'
        )
        found = evaluate_project(root, data(root))
        assert found.values == {}
        assert (
            "synthetic" in found.study_problems["small"]
            or "sealed" in found.study_problems["small"]
        )


@pytest.mark.parametrize(
    "text",
    [
        "study = 1",
        "[other]",
        '[study.a]\nplan = "p"',
        '[study.a]\nplan = "p"\n[study.a.runs]',
        '[study.a]\nplan = "p"\nhosts = 1\n[study.a.runs]\nr = "sha256:00"',
        '[study.a]\nplan = "p"\n[study.a.runs]\nr = "latest"',
        "[study",
    ],
)
def test_evidence_that_is_none(text):
    with pytest.raises(ClaimError, match=re.escape("paper/evidence.toml")):
        parse_evidence(text)


def test_trace_walks_down_to_lines_and_digests(root):
    found = trace(MEAN, evaluate_project(root, data(root)), root, data(root), cited_places(root))
    assert found.function == "mean(throughput, 'draft', 'c1')"
    assert found.cited == ("README.md:1",)
    assert {window.run for window in found.windows} == {"run-1", "run-2"}
    for window in found.windows:
        for place in window.lines:
            name, _, numbers = place.partition(":")
            first = int(numbers.partition("-")[0])
            assert (root / name).read_bytes().splitlines()[first - 1]
    run = found.runs[0]
    assert run.seal == str(RunDirectory(data(root) / "run-1").seal_digest)
    assert run.engine == run.engine_after
    assert run.lock == "wheels-cpu.lock"
    assert set(run.models) == {"target", "drafter"}


def test_trace_up_from_run_seal_and_line(root):
    evaluation = evaluate_project(root, data(root))
    by_run = reverse("run-1", evaluation, root, data(root))
    assert by_run.claims[MEAN] == ("README.md:1",)
    assert reverse(by_run.seal, evaluation, root, data(root)) == by_run
    assert reverse("run-3", evaluation, root, data(root)).claims == {}
    line = evaluation.value(MEAN).lines[0].number
    by_line = reverse(f"records/data/run-1/events.jsonl:{line}", evaluation, root, data(root))
    assert MEAN in by_line.claims
    assert len(by_line.claims) < len(by_run.claims)
    with pytest.raises(UnknownRunError):
        reverse("run-9", evaluation, root, data(root))
    last = RunDirectory(data(root) / "run-1").seal().events.lines
    assert reverse(f"run-1:{last}", evaluation, root, data(root)).line == last
    for nowhere in (0, last + 1):
        with pytest.raises(UnknownRunError, match=f"no line {nowhere}: 1 to {last}"):
            reverse(f"run-1:{nowhere}", evaluation, root, data(root))


def test_functions_say_what_was_bound_to_them():
    claim = next(c for c in claims_of("s", small_plan()) if c.id == "s.draft.c1.step-gap.p95")
    assert described(claim.function) == "median(p95_ms('step-gap'), 'draft', 'c1')"
    assert where_defined(claim.function, ROOT).startswith("analysis/claiming/quantities.py:")


@given(st.floats(0, 1e6), st.integers(0, 4))
def test_a_value_prints_at_its_rounding(value, digits):
    printed = Claim("a.b", "text", "study", lambda _: value, "ms", digits).printed(value)
    number, _, unit = printed.partition(" ")
    assert unit == "ms"
    assert abs(float(number) - value) <= 0.5 * 10**-digits * 1.000001 + 1e-9
    assert len(number.partition(".")[2]) == digits
