"""For each code of claims, numerals and sources, a change of the paper that gives it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import sealed_run
from sealed_run import small_plan

from analysis.claiming.evaluation import evaluate_project
from analysis.claiming.tex import CLAIMS_TEX, claims_tex
from analysis.published import load_published
from analysis.typeset.generated import record_texts
from audit.paper import paper as audited_paper
from audit.repository import RepositoryView
from audit.runner import audit
from tests.audit.claimed_paper import CELL, CHECKS, F1, F2, OTHER, RATIO, TEX, Paper, text_change


def test_a_sound_paper_has_no_findings(paper):
    assert audit(paper.root, paper.project.data, CHECKS).findings == ()


def test_all_checks_together_find_nothing(paper, codes):
    assert codes(paper.project) == set()


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
}


@pytest.mark.parametrize("name", TEXTS)
def test_changed_texts(paper, name):
    mutate, want = TEXTS[name]
    mutate(paper)
    assert paper.codes() == want


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
