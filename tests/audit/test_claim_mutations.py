"""For each code of claims, basis, numerals, findings, sources, a change that gives it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sealed_run
from sealed_run import Shape, small_plan

from analysis.claiming import common_blocks
from analysis.claiming.claim import evaluate
from analysis.claiming.comparison import Comparison
from analysis.claiming.documents import Citation
from analysis.claiming.evaluation import evaluate_project
from analysis.claiming.evidence import load_evidence, read_study
from analysis.claiming.reading import Reading, WindowUse
from analysis.claiming.tex import CLAIMS_TEX, claims_tex
from analysis.claims import claims_of
from analysis.published import load_published
from analysis.typeset.generated import record_texts
from audit.checks import basis, claims, findings, numerals, sources
from audit.paper import paper as audited_paper
from audit.report import as_text
from audit.repository import RepositoryView
from audit.runner import audit
from records import schema
from records.digest import Digest
from records.run_directory import RunDirectory

CHECKS = (claims.CHECK, basis.CHECK, numerals.CHECK, findings.CHECK, sources.CHECK)
OTHER = Digest.of(b"something else")
CELL = "small.draft.c1"
RATIO = "small.draft-vs-none.c1.throughput.ratio"
NO_EFFECT = "small.draft-vs-none.c1.step-gap.p95.difference"


class Paper:
    """A project with a study `small` on run-1, two findings, a paper and a README."""

    def __init__(self, project: Any) -> None:
        self.project = project
        self.root = project.root
        self.rest_on("run-1")
        self.write("paper/published.toml", PUBLISHED)
        self.write("paper/allowed-numbers.toml", ALLOWED)
        self.write("README.md", "Completed: [4](claim:small.boots.completed). `[9](claim:x)`\n")
        self.write(
            "paper/main.tex",
            "\\documentclass[11pt]{article} % 12 comments\n"
            f"Throughput was \\claim{{{CELL}.throughput.mean}} and \\published{{cv}};\n"
            f"ratio \\claim{{{RATIO}}}. Engine 0.29.0, FP8.\n",
        )
        self.finding(
            "F001",
            f"It was [{self.value(f'{CELL}.acceptance.mean')}](claim:{CELL}.acceptance.mean).",
            "That it is so elsewhere, on hosts of other kinds.",
        )
        self.finding(
            "F002",
            "Published: [13.92 %](published:cv).",
            "That anybody measured it again since then.",
        )
        project.commit("paper")

    def rest_on(self, *runs: str) -> None:
        """Let the study rest on these runs."""
        lines = ['[study.small]\nplan = "test-plan"\n[study.small.runs]']
        lines += [f'"{run}" = "{self.seal(run)}"' for run in runs]
        if "run-2" not in runs:
            lines.append('[study.small.left_out]\n"run-2" = "a boot failed"')
        self.write("paper/evidence.toml", "\n".join(lines) + "\n")

    def seal(self, run: str = "run-1") -> Digest:
        """The digest of a run's seal."""
        return RunDirectory(self.project.run(run)).seal_digest

    def value(self, id_: str) -> str:
        """A claim as it must be printed."""
        return evaluate_project(self.root, self.project.data).value(id_).printed

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def change(self, name: str, old: str, new: str) -> None:
        """Change a text that must be there."""
        text = (self.root / name).read_text(encoding="utf-8")
        assert old in text
        self.write(name, text.replace(old, new))

    def finding(self, id_: str, body: str, limits: str, **head: str) -> None:
        """Write a finding."""
        front = {
            "id": id_,
            "title": f"The finding {id_}",
            "status": "active",
            "retracts": "[]",
            "retracted-by": "[]",
            "provenance": "record",
            "evidence": f"[{self.seal()}]",
            **{key.replace("_", "-"): value for key, value in head.items()},
        }
        lines = [f"{key}: {value}" for key, value in front.items()]
        section = f"## What this does NOT establish\n\n{limits}\n"
        text = "\n".join(["---", *lines, "---", "", body, "", section])
        self.write(f"paper/findings/{id_}.md", text)

    def codes(self) -> set[str]:
        """What these checks find."""
        report = audit(self.root, self.project.data, CHECKS)
        assert as_text(report)
        return {finding.code for finding in report.findings}


PUBLISHED = """
[[claim]]
id = "cv"
text = "a coefficient of variation"
figure = "13.92"
unit = "%"
source = "abstract"
quantity = "throughput"
test = "cv-margin"
fixed = "2026-11-30"

[claim.of]
engine = "vllm 0.29.0"
capability = "8.9"

[claim.margin]
relative = "0.50"
fixed = "2026-11-30"
reason = "for tests"
"""
ALLOWED = """
[[number]]
value = "0.29.0"
place = "paper/*.tex"
phrase = "Engine 0.29.0"
reason = "the version of the engine"
"""


@pytest.fixture
def paper(project: Any) -> Paper:
    """A sound paper over a healthy project."""
    return Paper(project)


def test_a_sound_paper_has_no_findings(paper):
    assert audit(paper.root, paper.project.data, CHECKS).findings == ()


def test_all_checks_together_find_nothing(paper, codes):
    assert codes(paper.project) == set()


# --- claims and numerals: one text changed


def last_digit(paper: Paper) -> None:
    path = paper.root / "paper/findings/F001.md"
    text = path.read_text()
    match = re.search(r"\[(\d+\.\d+)(\d) tokens/step\]", text)
    assert match is not None
    path.write_text(text.replace(match[0], f"[{match[1]}{(int(match[2]) + 1) % 10} tokens/step]"))


def rounded(paper: Paper) -> None:
    printed = paper.value(f"{CELL}.acceptance.mean")
    paper.change(
        "paper/findings/F001.md", f"[{printed}]", f"[{float(printed.split()[0]):.2f} tokens/step]"
    )


def stale_tex(paper: Paper) -> None:
    found = evaluate_project(paper.root, paper.project.data)
    data = claims_tex(found.values, load_published(paper.root)).decode()
    printed = paper.value(f"{CELL}.throughput.mean").split()[0]
    paper.write(CLAIMS_TEX.as_posix(), data.replace(printed, printed[:-1] + "x"))


def stale_verdicts(paper: Paper) -> None:
    """A text of an earlier build: what the records gave before another finding was written."""
    for name, data in generated(paper).items():
        paper.write(name.as_posix(), data.decode())
    paper.finding("F003", "It was so.", "Whatever else might have been.")


def leftover(name: str) -> Callable[[Paper], None]:
    """A build of now, and a file beside it."""

    def change(paper: Paper) -> None:
        for text, data in generated(paper).items():
            paper.write(text.as_posix(), data.decode())
        paper.write(name, "It was 17 percent faster.\n")

    return change


def generated(paper: Paper) -> dict[Path, bytes]:
    view = audited_paper(RepositoryView(paper.root, paper.project.data))
    found = [one.finding for one in view.findings if one.finding]
    texts, _ = record_texts(paper.root, paper.project.data, view.evaluation, view.published, found)
    return texts


def linked_generated(paper: Paper) -> None:
    (paper.root / "elsewhere").mkdir()
    (paper.root / "paper/generated").symlink_to(paper.root / "elsewhere")


def text_change(name: str, old: str, new: str) -> Callable[[Paper], None]:
    return lambda paper: paper.change(name, old, new)


TEX, F1, F2 = "paper/main.tex", "paper/findings/F001.md", "paper/findings/F002.md"
TEXTS: dict[str, tuple[Callable[[Paper], None], set[str]]] = {
    "last digit of a finding": (last_digit, {"CLAIM02"}),
    "rounded further": (rounded, {"CLAIM02"}),
    "unit dropped": (text_change(F1, " tokens/step]", "]"), {"CLAIM02"}),
    "last digit in the README": (text_change("README.md", "[4]", "[5]"), {"CLAIM02"}),
    "no text": (text_change("README.md", "[4]", "[]"), {"CLAIM02"}),
    "published figure changed": (text_change(F2, "[13.92 %]", "[13.93 %]"), {"CLAIM02"}),
    "unknown claim": (text_change(TEX, RATIO, "small.draft.c1.speed"), {"CLAIM01"}),
    "unknown published": (text_change(F2, "published:cv", "published:vc"), {"CLAIM01"}),
    "torn citation": (text_change(TEX, f"\\claim{{{RATIO}}}", "\\claim ratio"), {"CLAIM01"}),
    "claim without evidence": (text_change(TEX, RATIO, "dispersion.graph.cv"), {"CLAIM03"}),
    "evidence unreadable": (
        text_change("paper/evidence.toml", "plan =", "plam ="),
        {"CLAIM01", "CLAIM05"},
    ),
    "another plan": (
        text_change("paper/evidence.toml", '"test-plan"', '"other"'),
        {"CLAIM03", "CLAIM05"},
    ),
    "another seal": (
        lambda paper: paper.change("paper/evidence.toml", str(paper.seal()), str(OTHER)),
        {"CLAIM03", "CLAIM05"},
    ),
    "published unreadable": (
        text_change("paper/published.toml", "figure =", "fig ="),
        {"CLAIM01", "CLAIM05"},
    ),
    "published by no test": (
        text_change("paper/published.toml", '"cv-margin"', '"by eye"'),
        {"CLAIM01", "CLAIM05"},
    ),
    "published margin fixed on no day": (
        text_change(
            "paper/published.toml",
            'relative = "0.50"\nfixed = "2026-11-30"',
            'relative = "0.50"\nfixed = "soon"',
        ),
        {"CLAIM01", "CLAIM05"},
    ),
    "stale macros": (stale_tex, {"CLAIM06"}),
    "stale findings": (stale_verdicts, {"CLAIM06"}),
    "a fresh build": (leftover("paper/generated/figures/small/boots.csv"), set()),
    "a text that nothing makes": (leftover("paper/generated/extra.tex"), {"TEXT04"}),
    "a figure of a study that is gone": (
        leftover("paper/generated/figures/old/boots.pdf"),
        {"TEXT04"},
    ),
    "a text in a folder of its own": (leftover("paper/generated/more/runs.tex"), {"TEXT04"}),
    "generated files elsewhere": (linked_generated, {"TEXT04"}),
    "a source that takes what nothing makes": (
        text_change(TEX, "FP8.", "FP8. \\input{generated/extra}"),
        {"TEXT01"},
    ),
    "a source that takes what is made": (
        text_change(TEX, "FP8.", "FP8. \\input{generated/runs}"),
        set(),
    ),
    "typed number": (text_change(TEX, "FP8.", "FP8, 13.9 tok/s."), {"NUM01"}),
    "typed number in a finding": (text_change(F1, "It was", "Of 12 boots it was"), {"NUM01"}),
    "superscript": (text_change(F1, "It was", "It was²"), {"NUM01"}),
    "allowed number elsewhere": (
        text_change(TEX, "Engine 0.29.0", "Ratio 0.29.0"),
        {"NUM01", "NUM03"},
    ),
    "reason missing": (
        text_change("paper/allowed-numbers.toml", "the version of the engine", " "),
        {"NUM01", "NUM02"},
    ),
    "allowance unused": (text_change(TEX, "Engine 0.29.0, ", ""), {"NUM03"}),
    # --- findings
    "unknown key": (text_change(F1, "status:", "state:"), {"FIND01"}),
    "other order": (
        text_change(F1, "status: active\nretracts: []", "retracts: []\nstatus: active"),
        {"FIND01"},
    ),
    "renamed file": (
        lambda paper: (paper.root / F1).rename(paper.root / "paper/findings/F009.md"),
        {"FIND02", "FIND11"},
    ),
    "limits emptied": (
        text_change(F1, "That it is so elsewhere, on hosts of other kinds.", " "),
        {"FIND03"},
    ),
    "limits renamed": (text_change(F1, "What this does NOT establish", "Notes"), {"FIND03"}),
    "boilerplate": (
        text_change(
            F2,
            "That anybody measured it again since then.",
            "That  it is so elsewhere, on hosts\nof other kinds.",
        ),
        {"FIND04"},
    ),
    "evidence of another run": (
        lambda paper: paper.change(F1, str(paper.seal()), str(OTHER)),
        {"FIND05", "FIND08"},
    ),
    "evidence dropped": (
        lambda paper: paper.change(F1, f"[{paper.seal()}]", "[]"),
        {"FIND08", "FIND09"},
    ),
    "evidence of a run that was not used": (
        lambda paper: paper.change(F1, str(paper.seal()), str(paper.seal("run-2"))),
        {"FIND08"},
    ),
    "retracted by nobody": (text_change(F1, "status: active", "status: retracted"), {"FIND06"}),
    "retracts without consent": (text_change(F1, "retracts: []", "retracts: [F002]"), {"FIND06"}),
    "terminal": (
        text_change(F2, "provenance: record", "provenance: terminal"),
        {"FIND07"},
    ),
    "terminal with a claim": (
        lambda paper: paper.change(
            F1,
            f"provenance: record\nevidence: [{paper.seal()}]",
            "provenance: terminal\nevidence: []\ndefect: read off a terminal",
        ),
        {"FIND07", "FIND08"},
    ),
    "defect of a sound finding": (
        lambda paper: paper.change(
            F2, f"evidence: [{paper.seal()}]", f"evidence: [{paper.seal()}]\ndefect: none"
        ),
        {"FIND07"},
    ),
    "number reused": (text_change(F2, "The finding F002", "Another finding"), {"FIND10"}),
    "finding removed": (lambda paper: (paper.root / F2).unlink(), {"FIND11"}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_changed_texts(paper, name):
    mutate, want = TEXTS[name]
    mutate(paper)
    assert paper.codes() == want


def test_a_disclosed_defect_may_stand_uncited(paper):
    terminal = {"provenance": "terminal", "evidence": "[]", "defect": "read off a terminal"}
    paper.finding("F003", "It looked faster.", "Anything: nobody kept the output.", **terminal)
    assert paper.codes() == set()
    paper.change(TEX, "FP8.", "FP8 (\\finding{F003}).")
    assert paper.codes() == {"FIND07"}


def retract(paper: Paper) -> None:
    """F003 retracts F002, in a commit."""
    paper.change(F2, "status: active", "status: retracted")
    paper.change(F2, "retracted-by: []", "retracted-by: [F003]")
    paper.finding("F003", "It was wrong.", "What would be right instead.", retracts="[F002]")
    paper.project.commit("retract F002")


def test_a_linked_retraction_is_sound(paper):
    retract(paper)
    assert paper.codes() == set()


def test_the_paper_names_findings_that_hold(paper):
    paper.change(TEX, "FP8.", "FP8 (\\finding{F002}).")
    assert paper.codes() == set()
    paper.change(TEX, "F002", "F020")
    assert paper.codes() == {"FIND13"}
    paper.change(TEX, "F020", "F002")
    retract(paper)
    assert paper.codes() == {"FIND13"}
    paper.change(TEX, "F002}", "F002}, retracted by \\finding{F003}")
    assert paper.codes() == set()


def test_a_retraction_undone_is_found_even_when_both_ends_were_edited(paper):
    retract(paper)
    paper.change(F2, "status: retracted", "status: active")
    paper.change(F2, "retracted-by: [F003]", "retracted-by: []")
    paper.change("paper/findings/F003.md", "retracts: [F002]", "retracts: []")
    assert paper.codes() == {"FIND12"}
    paper.project.commit("think better of it")
    assert paper.codes() == {"FIND12"}


def test_a_number_is_taken_for_ever(paper):
    (paper.root / F2).unlink()
    paper.project.commit("drop F002")
    paper.finding(
        "F002", "Quite another matter.", "A third thing entirely.", title="Another matter"
    )
    paper.project.commit("use the number again")
    assert paper.codes() == {"FIND10"}


def test_named_claims_must_be_cited(project):
    paper = Paper(project)
    plan = replace(small_plan(), id="l4-confounds")
    arms = tuple(
        replace(arm, id=id_)
        for arm, id_ in zip(plan.arms, ("draft-bf16-graph", "other"), strict=True)
    )
    plan = replace(plan, arms=arms)
    run = sealed_run.make_run(project.data / "run-l4", plan)
    sealed_run.list_run(project.data, run)
    paper.write(
        "paper/evidence.toml",
        (paper.root / "paper/evidence.toml").read_text()
        + '[study.l4-confounds]\nplan = "l4-confounds"\n[study.l4-confounds.runs]\n'
        + f'"run-l4" = "{run.seal_digest}"\n',
    )
    assert paper.codes() == {"CLAIM04"}


# --- basis: runs that are sealed and sound in form, but no basis for what is claimed


def edit_all(kind: type, when: Callable[[Any], bool] = lambda _: True, **fields: Any) -> Any:
    """Change fields of every event of a kind."""

    def edit(event: Any) -> Any:
        if isinstance(event, kind) and when(event):
            return replace(event, **{k: v(event) if callable(v) else v for k, v in fields.items()})
        return event

    return edit


def drop(kind: type, when: Callable[[Any], bool] = lambda _: True) -> Any:
    """Drop every event of a kind."""
    return lambda event: None if isinstance(event, kind) and when(event) else event


def flashinfer(event: Any) -> dict[str, Any]:
    target = {**event.facts["target"], "backend": "FLASHINFER"}
    return {**event.facts, "target": target}


def fact(**facts: Any) -> Callable[[Any], dict[str, Any]]:
    return lambda event: {**event.facts, **facts}


RUNS: dict[str, tuple[Any, set[str]]] = {
    "not bound after": (drop(schema.EngineBound, lambda e: e.phase == "after"), {"BASIS01"}),
    "model not bound before": (drop(schema.ModelBound, lambda e: e.phase == "before"), {"BASIS01"}),
    "engine changed": (
        edit_all(schema.EngineBound, lambda e: e.phase == "after", digest=OTHER),
        {"BASIS01"},
    ),
    "unknown lock": (edit_all(schema.EngineBound, lock_digest=OTHER), {"BASIS02"}),
    "driver changed": (
        edit_all(schema.HostObserved, lambda e: e.phase == "end", facts=fact(driver="580.1")),
        {"BASIS03"},
    ),
    "host changed": (
        edit_all(schema.HostObserved, lambda e: e.phase == "end", host_id="host-2"),
        {"BASIS03"},
    ),
    "another kernel in one arm": (
        edit_all(schema.EngineDecided, lambda e: "none" in e.boot, facts=flashinfer),
        {"BASIS07"},
    ),
    "another graph mode in one arm": (
        edit_all(
            schema.EngineDecided,
            lambda e: "draft" in e.boot,
            facts=fact(cudagraph_effective="PIECEWISE"),
        ),
        {"BASIS07"},
    ),
    "another cache state in one arm": (
        edit_all(
            schema.EngineDecided,
            lambda e: "draft" in e.boot,
            facts=lambda e: {
                **e.facts,
                "compile_cache": {**e.facts["compile_cache"], "state": "miss"},
            },
        ),
        {"BASIS07"},
    ),
    "another model runner in one arm": (
        edit_all(schema.EngineDecided, lambda e: "draft" in e.boot, facts=fact(model_runner="V0")),
        {"BASIS07"},
    ),
    "boots of one arm unlike": (
        edit_all(schema.EngineDecided, lambda e: re.match("b02-.-draft", e.boot), facts=flashinfer),
        {"BASIS07", "BASIS08"},
    ),
    "decisions missing": (
        drop(schema.EngineDecided, lambda e: re.match("b02-.-draft", e.boot)),
        {"BASIS11"},
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_that_are_no_basis(paper, name):
    edit, want = RUNS[name]
    paper.project.add_run("run-3", Shape(edit=edit))
    rest_on_copy(paper)
    assert paper.codes() == want


def rest_on_copy(paper: Paper) -> None:
    """Everything claimed from run-1 is claimed from run-3, which gives the same numbers."""
    paper.rest_on("run-3")
    for name in (F1, F2):
        paper.change(name, str(paper.seal()), str(paper.seal("run-3")))


def test_the_same_run_again_is_a_basis(paper):
    paper.project.add_run("run-3")
    rest_on_copy(paper)
    assert paper.codes() == set()


def test_an_effect_within_the_calibrated_error_is_none(paper):
    paper.change(TEX, RATIO, NO_EFFECT)
    effect = float(paper.value(NO_EFFECT).split()[0])
    error_ms = 0.020
    assert paper.codes() == ({"BASIS05"} if abs(effect) <= error_ms else set())
    beyond = int(abs(effect) * 1e6) + 1
    paper.project.add_run("run-3", Shape(edit=edit_all(schema.Calibrated, error_p99_ns=beyond)))
    rest_on_copy(paper)
    assert "BASIS05" in paper.codes()


def parted_by(paper: Paper, id_: str) -> float:
    """The difference that a claim makes, ms or ms/token; or by what its ranking's first leads."""
    value = evaluate_project(paper.root, paper.project.data).value(id_)
    for comparison in value.comparisons:
        assert comparison.effect_ms is not None
        return comparison.effect_ms
    (lead,) = value.leads
    return abs(lead.values[0] - lead.values[1])


def with_stamps_off_by(paper: Paper, error_ns: float) -> None:
    """What was claimed is claimed from a run whose client's stamps err by this."""
    edit = edit_all(schema.Calibrated, error_p99_ns=int(error_ns))
    paper.project.add_run("run-3", Shape(edit=edit))
    rest_on_copy(paper)


# 16 tokens a request; the first chunk of `draft` may hold 5 of them, that of `none` 1.
@pytest.mark.parametrize("code", [set(), {"BASIS05"}], ids=["above", "below"])
@pytest.mark.parametrize(
    ("quantity", "spread"),
    [("tpot.n-1", 2 / 15), ("tpot.n-k1", 1 / 11 + 1 / 15), ("ntpot", 2 / 16)],
)
@pytest.mark.parametrize("name", ["draft-vs-none.c1.{}.p95.difference", "c1.{}.least"])
def test_an_error_is_spread_over_the_tokens_that_a_time_is_divided_by(
    paper, name, quantity, spread, code
):
    id_ = f"small.{name.format(quantity)}"
    paper.change(TEX, RATIO, id_)
    error_ns = parted_by(paper, id_) * 1e6 / spread
    with_stamps_off_by(paper, error_ns * (1.01 if code else 0.99))
    assert paper.codes() == code


def test_an_order_of_equals_is_none(paper):
    paper.change(TEX, RATIO, "small.c1.step-gap.least")
    assert parted_by(paper, NO_EFFECT) == parted_by(paper, "small.c1.step-gap.least") == 0
    assert paper.codes() == {"BASIS05"}


def test_without_a_calibration_no_order_is_told(judged, paper):
    paper.project.add_run("run-3", Shape(edit=drop(schema.Calibrated)))
    assert "BASIS05" in judged("small.c1.tpot.n-1.least", "run-3")


def test_runs_of_another_harness_are_not_pooled(paper):
    paper.project.add_run("run-3", Shape(edit=edit_all(schema.RunStarted, harness_digest=OTHER)))
    paper.rest_on("run-1", "run-3")
    assert "BASIS10" in paper.codes()


@pytest.fixture
def judged(paper) -> Callable[..., set[str]]:
    """judged(id, **changes): the codes that a value, so changed, is given."""

    def judge(id_: str, *runs: str, **changes: Any) -> set[str]:
        paper.rest_on(*(runs or ("run-1",)))
        study = load_evidence(paper.root)["small"]
        read = read_study(study, paper.project.data)
        claim = next(c for c in claims_of("small", read[0].plan) if c.id == id_)
        value = replace(evaluate(claim, Reading("small", read)), **changes)
        at = Citation("README.md", 1, "claim", id_, value.printed)
        return {finding.code for finding in basis.judge(value, read, at)}

    return judge


def test_no_void_window_is_used(judged, paper):
    study_run = read_study(load_evidence(paper.root)["small"], paper.project.data)[0]
    sound = f"{CELL}.throughput.mean"
    assert judged(sound) == set()
    run = RunDirectory(paper.project.run("run-2"))
    void = next(
        WindowUse("run-2", boot.started.boot, window, boot.started.arm)
        for boot in evaluate_runs(paper, "run-2").boots
        for window, reasons in boot.windows
        if reasons and boot.outcome == "completed"
    )
    failed = next(b for b in evaluate_runs(paper, "run-2").boots if b.outcome == "failed")
    assert run.is_sealed
    assert study_run.run_id == "run-1"
    any_claim = "small.boots.completed"
    assert judged(any_claim, "run-2", measured=(void,)) == {"BASIS04"}
    use = WindowUse("run-2", failed.started.boot, "c1", failed.started.arm)
    assert "BASIS04" in judged(any_claim, "run-2", measured=(use,))


def evaluate_runs(paper: Paper, run: str) -> Any:
    paper.rest_on(run)
    return read_study(load_evidence(paper.root)["small"], paper.project.data)[0]


def test_only_the_declared_factor_is_compared(judged):
    wrong = Comparison("draft", "none", "kv", "c1", 1, None)
    assert "BASIS06" in judged(RATIO, comparisons=(wrong,))


def test_arms_are_not_mixed_in_silence(judged):
    assert judged(RATIO, comparisons=()) == {"BASIS09"}
    assert judged("small.c1.fastest") == set()


@pytest.mark.parametrize("id_", [RATIO, NO_EFFECT, "small.c1.fastest"])
def test_arms_are_not_held_against_each_other_across_blocks(judged, paper, id_):
    """One arm's boot of a block is left out of what was measured, the other's is not."""
    used = [use for use in value_over(paper, id_).measured if use.boot[:3] != "b02"]
    odd = next(use for use in value_over(paper, id_).measured if use.boot[:3] == "b02")
    assert "BASIS14" in judged(id_, measured=(*used, odd))
    assert "BASIS14" not in judged(id_, measured=tuple(used))
    assert "BASIS14" not in judged(id_)


def test_a_boot_that_moves_to_a_block_without_the_other_arm_is_told(judged, paper, monkeypatch):
    """As where an altered function takes boots of every block."""
    plan = small_plan(blocks=3)
    arms = tuple(
        replace(arm, blocks=where) for arm, where in zip(plan.arms, ((1, 2), (2, 3)), strict=True)
    )
    paper.project.add_run("run-3", plan=replace(plan, arms=arms))
    assert "BASIS14" not in judged(RATIO, "run-3")
    everywhere = frozenset(("run-3", block) for block in (1, 2, 3))
    monkeypatch.setattr(common_blocks, "common_blocks", lambda _: everywhere)
    assert "BASIS14" in judged(RATIO, "run-3")


def value_over(paper: Paper, id_: str) -> Any:
    return evaluate_project(paper.root, paper.project.data).value(id_)


def test_a_second_run_changes_no_claim(paper):
    def all_values() -> dict[str, Any]:
        values = evaluate_project(paper.root, paper.project.data).values
        return {id_: (v.value, v.printed, v.lines, v.measured) for id_, v in values.items()}

    before = all_values()
    paper.project.add_run("run-3", Shape(scale_ppm=900_000))
    assert all_values() == before
    assert paper.codes() == set()


def test_a_run_that_is_gone_leaves_its_claims_without_value(paper):
    shutil.rmtree(paper.project.run("run-1"))
    assert paper.codes() == {"CLAIM03", "CLAIM05", "FIND05"}
