"""For each code of findings, a change of one that gives it; and what a retraction leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.audit.claimed_paper import F1, F2, OTHER, TEX, Paper, text_change

FINDINGS: dict[str, tuple[Callable[[Paper], None], set[str]]] = {
    "unknown key": (text_change(F1, "status:", "state:"), {"FIND01"}),
    "other order": (
        text_change(F1, "status: active\nretracts: []", "retracts: []\nstatus: active"),
        {"FIND01"},
    ),
    "title that steers a terminal": (
        text_change(F1, "title: ", "title: \x1b"),
        {"FIND01", "TEXT01"},
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


@pytest.mark.parametrize("name", FINDINGS)
def test_changed_findings(paper, name):
    mutate, want = FINDINGS[name]
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
