"""The paper, findings and README of this project: sound as shipped, not with one digit changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.claiming.documents import Citation
from audit.checks import basis, claims, findings, numerals
from audit.paper import PaperView, paper
from audit.repository import RepositoryView

ROOT = Path(__file__).parents[2]
DATA = ROOT / "records" / "data"


@pytest.fixture(scope="module")
def view() -> PaperView:
    """What the project says and what its records give."""
    return paper(RepositoryView(ROOT, DATA))


def seen(view: PaperView) -> RepositoryView:
    """The repository as if its paper were this."""
    repository = RepositoryView(ROOT, DATA)
    repository.once("paper", lambda: view)
    return repository


def test_the_shipped_paper_has_no_findings(view):
    # A generated file of an older state is the reader's own and not shipped.
    found = [f for f in claims.check(seen(view)) if f.code != "CLAIM06"]
    found += [f for check in (basis, numerals, findings) for f in check.check(seen(view))]
    assert found == []
    assert view.cited()


def test_every_digit_that_is_shown_counts(view):
    for number, citation in enumerate(view.citations):
        for place, digit in enumerate(citation.shown):
            if not digit.isdigit():
                continue
            other = str((int(digit) + 1) % 10)
            shown = citation.shown[:place] + other + citation.shown[place + 1 :]
            changed: Citation = replace(citation, shown=shown)
            citations = (*view.citations[:number], changed, *view.citations[number + 1 :])
            found = list(claims.check(seen(replace(view, citations=citations))))
            codes = {f.code for f in found if f.where.line == citation.line}
            assert codes >= {"CLAIM02"}, shown
