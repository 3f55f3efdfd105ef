"""Acceptance of two arms is set side by side only where it is said that their texts differ.

Over the records and texts of this project: on one host the arms `draft` and `draft-eager` answered
most prompts with other tokens, `draft` and `ngram` one, `ngram` and `none` none at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.claiming.documents import Document, citations
from audit.checks import basis
from audit.paper import PaperView, paper
from audit.repository import RepositoryView

ROOT = Path(__file__).parents[2]
DATA = ROOT / "records" / "data"
HOST = "sm90-host-1"
SAME = f"{HOST}.draft-vs-draft-eager.c64.texts.same"
Says = Callable[[str, str], set[str]]


@pytest.fixture(scope="module")
def view() -> PaperView:
    return paper(RepositoryView(ROOT, DATA))


def codes(view: PaperView) -> set[str]:
    """What the audit says of this paper."""
    repository = RepositoryView(ROOT, DATA)
    repository.once("paper", lambda: view)
    return {finding.code for finding in basis.check(repository)}


@pytest.fixture
def says(view: PaperView) -> Says:
    """says(name, text): the codes of a project that says this and nothing else."""

    def of(name: str, text: str) -> set[str]:
        kind = "tex" if name.endswith(".tex") else "markdown"
        document = Document(name, kind, text, scanned=True)
        alone = replace(view, documents=(document,), citations=tuple(citations(document)))
        return codes(alone)

    return of


def cited(*ids: str) -> str:
    """A sentence that cites these."""
    return " and ".join(f"[x](claim:{id_})" for id_ in ids)


def lengths(*arms: str, study: str = HOST, window: str = "c64") -> tuple[str, ...]:
    return tuple(f"{study}.{arm}.{window}.acceptance.mean" for arm in arms)


F = "paper/findings/F001.md"


def test_what_is_said_here_needs_its_companion(view):
    """A mutation of the shipped finding: the one claim taken out that says how texts differ."""
    name = "paper/findings/F005.md"
    without = tuple(c for c in view.citations if (c.file, c.id) != (name, SAME))
    assert len(without) < len(view.citations)
    assert codes(view) == set()
    assert codes(replace(view, citations=without)) == {"BASIS13"}


def test_in_a_finding_wherever_both_are_cited(says):
    both = lengths("draft", "draft-eager")
    assert says(F, cited(*both)) == {"BASIS13"}
    assert says(F, f"{cited(both[0])}\n\n| x |\n|{cited(both[1])}|") == {"BASIS13"}
    assert says(F, f"{cited(*both)}\n\n{cited(SAME)}") == set()
    assert says(F, f"{cited(*both)}\n\n{cited(SAME.replace('same', 'other'))}") == set()


def test_elsewhere_within_a_paragraph_and_outside_of_tables(says):
    one, two = lengths("draft", "draft-eager")
    assert says("README.md", f"{cited(one)}\n{cited(two)}") == {"BASIS13"}
    assert says("README.md", f"{cited(one)}\n\n{cited(two)}") == set()
    assert says("README.md", f"| {cited(one)} |\n| {cited(two)} |") == set()
    tex = "With \\claim{%s}\n%% no end of it\nand \\claim{%s}." % (one, two)  # noqa: UP031
    assert says("paper/main.tex", tex) == {"BASIS13"}
    table = f"\\begin{{tabular}}{{l}}\n\\claim{{{one}}}\\\\\n\\claim{{{two}}}\n\\end{{tabular}}\n"
    assert says("paper/main.tex", table) == set()
    assert says("paper/main.tex", f"{table}\\claim{{{one}}} {tex}") == {"BASIS13"}


def test_a_ratio_is_a_comparison_wherever_it_stands(says):
    ratio = f"{HOST}.draft-vs-draft-eager.c64.acceptance.ratio"
    assert says("README.md", f"| {cited(ratio)} |") == {"BASIS13"}
    assert says("README.md", f"| {cited(ratio)} |\n\n{cited(SAME)}") == set()
    spread = f"{HOST}.draft-vs-draft-eager.c64.throughput.ratio"
    assert says("README.md", cited(spread)) == set()


def test_a_companion_is_of_these_arms_and_this_window(says):
    both = lengths("draft", "draft-eager")
    for other in (SAME.replace("c64", "c8"), f"{HOST}.draft-vs-ngram.c64.texts.same"):
        assert says(F, cited(*both, other)) == {"BASIS13"}


def test_another_host_of_the_plan_may_say_it(says):
    both = lengths("draft", "draft-eager", study="sm90-host-2")
    assert says(F, cited(*both)) == {"BASIS13"}
    assert says(F, cited(*both, SAME)) == set()


def test_two_arms_may_be_told_apart_by_a_third(says):
    both = lengths("draft", "ngram")
    by_third = [f"{HOST}.{pair}.c64.texts.same" for pair in ("draft-vs-none", "ngram-vs-none")]
    assert says(F, cited(*both)) == {"BASIS13"}
    assert says(F, cited(*both, by_third[0])) == {"BASIS13"}
    assert says(F, cited(*both, *by_third)) == set()


def test_arms_that_answered_alike_need_none(says):
    assert says(F, cited(*lengths("draft", "ngram", study="smoke-cpu", window="c8"))) == set()
    assert says(F, cited(*lengths("draft", "ngram", window="c1"))) == set()


def test_lengths_in_two_windows_or_of_two_hosts_are_not_of_two_arms(says):
    assert says(F, cited(*lengths("draft"), *lengths("draft-eager", window="c8"))) == set()
    assert says(F, cited(*lengths("draft"), *lengths("draft", study="sm90-host-2"))) == set()


def test_arms_of_two_hosts_are_set_side_by_side_too(says):
    both = (*lengths("draft"), *lengths("draft-eager", study="sm90-host-2"))
    assert says(F, cited(*both)) == {"BASIS13"}
    assert says("README.md", cited(*both)) == {"BASIS13"}
    assert says(F, cited(*both, SAME)) == set()


def test_speeds_of_arms_that_share_no_block_are_not_set_side_by_side(says):
    apart, mates = (
        [f"sm90-confounds.{arm}.c64.throughput.mean" for arm in arms]
        for arms in (("draft", "fa2"), ("fa2", "fa2-fp8"))
    )
    assert says(F, cited(*apart)) == {"BASIS14"}
    assert says("README.md", f"{cited(apart[0])}\n{cited(apart[1])}") == {"BASIS14"}
    assert says("README.md", f"{cited(apart[0])}\n\n{cited(apart[1])}") == set()
    assert says("README.md", f"| {cited(apart[0])} |\n| {cited(apart[1])} |") == set()
    assert says(F, cited(*mates)) == set()
