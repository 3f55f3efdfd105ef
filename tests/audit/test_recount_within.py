"""What changes within a boot is counted a second time: no other value passes for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from analysis.claiming.documents import Citation
from audit.checks import recount
from audit.paper import PaperView, paper
from audit.quantiles import chi_square, f_alike
from audit.repository import RepositoryView

ROOT = Path(__file__).parents[2]
DATA = ROOT / "records" / "data"
OTHERWISE: list[tuple[str, float | str]] = [
    ("sm90-confounds.repeat.draft.throughput", 2500.5),
    ("sm90-confounds.repeat.draft.within-cv", 1.5),
    ("sm90-confounds.repeat.draft.between-boots", 95.5),
    ("sm90-confounds.repeat.draft.between-boots-low", 90.5),
    ("sm90-confounds.repeat.draft-eager.between-boots-high", 10.5),
    ("sm90-confounds.draft-eager.c64.throughput.cv-low", 12.5),
    ("sm90-confounds.draft.c64.throughput.cv-high", 15.5),
    ("sm90-confounds.speed.draft.least-median", 19.5),
    ("sm90-confounds.speed.draft.two-speeds", 10),
    ("sm90-confounds.pace.draft.slowest", 0.5),
    ("sm90.plain-client.draft.step-gap", 50.5),
    ("sm90.jit.draft.last", 3),
    ("sm90.backend.draft", "FLASHINFER"),
    ("sm90-confounds.version.draft", "2"),
    ("sm90-shape8b.gpu.power-peak", 700.5),
    ("sm90-shape8b.gpu.clock-lowest", 1850),
    ("sm90-shape8b.gpu.clock-highest", 1979),
    ("sm90-host-4.thread.waited-most", 0.5),
    ("sm90-host-4.draft.thread.ran", 78.5),
]


@pytest.fixture(scope="module")
def view() -> PaperView:
    return paper(RepositoryView(ROOT, DATA))


def codes(view: PaperView) -> set[str]:
    repository = RepositoryView(ROOT, DATA)
    repository.once("paper", lambda: view)
    return {finding.code for finding in recount.check(repository)}


def test_another_value_is_told(view):
    at = tuple(Citation("README.md", 1, "claim", id_, "") for id_, _ in OTHERWISE)
    assert codes(replace(view, citations=at)) == set()
    for id_, value in OTHERWISE:
        altered = replace(view.evaluation.values[id_], value=value, printed=str(value))
        values = {**view.evaluation.values, id_: altered}
        one = tuple(citation for citation in at if citation.id == id_)
        evaluation = replace(view.evaluation, values=values)
        told = codes(replace(view, citations=one, evaluation=evaluation))
        assert told == {"RECOUNT01"}, id_


@pytest.mark.parametrize("free", [1, 2, 3, 9, 40])
def test_quantiles_are_those_of_another_library(free):
    assert f_alike(0.025, free) == pytest.approx(stats.f.isf(0.025, free, free), rel=1e-9)
    for share in (0.025, 0.975):
        assert chi_square(share, free) == pytest.approx(stats.chi2.ppf(share, free), rel=1e-9)
