"""COVERAGE.md: its figures come again from their seeds, and what its sentences say is so."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import analysis.statistics
from analysis.statistics import cv_interval, nested_effects, tost_ratio, variance_components
from analysis.statistics.components import host_bounds, mean_reach, share_bounds, total_bounds
from analysis.statistics.coverage import (
    BOOTSTRAP_REPLICATES,
    CV_SECTION,
    FLAT_SECTIONS,
    NESTED_SECTION,
    RATIO_SECTION,
    REPLICATES,
    SEED,
    SPREAD_SECTION,
    TOST_SECTION,
    Case,
    Section,
    flat_cases,
    nested_cases,
    rows,
)
from analysis.statistics.coverage_page import PAGE, page
from analysis.statistics.dispersion import cv_bounds
from analysis.statistics.equivalence import log_ratio_errors
from analysis.statistics.mean_squares import balanced_squares
from analysis.statistics.shapes import EIGHTH, EVEN, NORMAL, SHAPES, TAIL, Shape

TEXT = PAGE.read_text(encoding="utf-8")
# Figures of one decimal: half of it, and a simulation or two that rounding tips over a bound.
ROUNDING = 0.05 + 100 * 2 / REPLICATES
Key = tuple[str, int, int]


def committed(section: Section) -> dict[Key, tuple[float, ...]]:
    """The section's table on the page, by shape, hosts and boots; NaN where a dash stands."""
    part = TEXT.split(f"## {section.title}\n")[1].split("\n## ")[0]
    found = {}
    for line in re.findall(r"^\| (.*) \|$", part, re.MULTILINE)[1:]:
        shape, *cells = [cell.strip("* ") for cell in line.split(" | ")]
        if section is not NESTED_SECTION:
            cells.insert(0, "0")
        percents = tuple(float("nan") if c == "-" else float(c) for c in cells[2:])
        found[shape, int(cells[0]), int(cells[1])] = percents
    return found


TABLES = {s.id: committed(s) for s in (*FLAT_SECTIONS, NESTED_SECTION)}


def column(section: Section, name: str, shape: Shape) -> list[float]:
    """One column of the committed table, for boots of a shape, hosts alike."""
    index = section.columns.index(name)
    return [row[index] for key, row in TABLES[section.id].items() if key[0] == shape.name]


@pytest.mark.parametrize(
    ("section", "cases"),
    [
        (CV_SECTION, [Case(6, EIGHTH), Case(12, NORMAL)]),
        (SPREAD_SECTION, [Case(12, TAIL)]),
        (RATIO_SECTION, [Case(6, NORMAL)]),
        (TOST_SECTION, [Case(12, EVEN)]),
        (NESTED_SECTION, [Case(6, NORMAL, 2), Case(6, NORMAL, 3, EVEN)]),
    ],
    ids=lambda value: value.id if isinstance(value, Section) else "",
)
def test_the_committed_figures_come_again(section: Section, cases: list[Case]) -> None:
    assert f"Seed {SEED}." in TEXT
    assert f"{REPLICATES} simulations a figure" in TEXT
    assert f"BCa: {BOOTSTRAP_REPLICATES} simulations" in TEXT
    for row in rows(section, cases):
        wanted = TABLES[section.id][row.shape, row.hosts, row.boots]
        drawn = [float("nan") if p is None else p for p in row.percents]
        assert drawn == pytest.approx(wanted, abs=ROUNDING, nan_ok=True)


def test_every_case_has_its_row_and_no_other() -> None:
    for section in FLAT_SECTIONS:
        assert set(TABLES[section.id]) == {(c.name, c.hosts, c.boots) for c in flat_cases()}
    assert set(TABLES["nested"]) == {(c.name, c.hosts, c.boots) for c in nested_cases()}


@pytest.mark.parametrize("section", [*FLAT_SECTIONS, NESTED_SECTION], ids=lambda s: s.id)
def test_normal_boots_are_covered_as_claimed_in_a_fast_version(section: Section) -> None:
    case = Case(6, NORMAL, 4 if section is NESTED_SECTION else 0)
    (row,) = rows(section, [case], replicates=2000)
    for name, percent in zip(section.columns, row.percents, strict=True):
        if name in section.bootstrap or name in ("kurtosis", "widest", "total SD, Satterthwaite"):
            continue
        assert percent == pytest.approx(95.5, abs=2.0), name


def test_what_the_page_says_of_the_cv() -> None:
    def of(name: str, shape: Shape) -> list[float]:
        return column(CV_SECTION, name, shape)

    assert all(94 < p < 96 for p in of("vangel (tables)", NORMAL))
    assert min(of("vangel (tables)", EVEN)) > 95
    # More boots do not mend it; widest at 24 does better by far.
    assert max(of("vangel (tables)", EIGHTH)) < 75
    assert of("vangel (tables)", TAIL) == sorted(of("vangel (tables)", TAIL), reverse=True)
    for shape in (EIGHTH, TAIL):
        assert of("widest", shape)[-1] > max(90, of("vangel (tables)", shape)[-1] + 10)
    for shape in SHAPES:
        assert np.all(np.array(of("widest", shape)) >= of("vangel (tables)", shape))
    # A slow group that no boot met is told of by no interval.
    for boots, best in zip((6, 12), (56, 80), strict=True):
        met = 100 * (1 - (7 / 8) ** boots)
        assert met == pytest.approx(best, abs=1)
        assert max(TABLES["cv"][EIGHTH.name, 0, boots]) < met + 1


def test_what_the_page_says_of_spreads_and_ratios() -> None:
    for shape in SHAPES:
        assert min(column(SPREAD_SECTION, SPREAD_SECTION.columns[2], shape)) > 93
        assert min(column(RATIO_SECTION, "two such arms, Welch", shape)) > 94
        assert min(column(RATIO_SECTION, "two such arms in blocks, t", shape)) > 94
        assert min(column(TOST_SECTION, "two arms, Welch", shape)) > 94
        assert min(column(TOST_SECTION, "two arms in blocks", shape)) > 94
    for shape in (EIGHTH, TAIL):
        mads, fs = (column(SPREAD_SECTION, n, shape) for n in ("MAD interval", "F interval"))
        assert all(mad > f + 4 for mad, f in zip(mads, fs, strict=True))
        assert column(TOST_SECTION, "against a figure", shape)[-1] < 93
    assert column(RATIO_SECTION, "one arm, t", EIGHTH)[-1] < 93


def test_what_the_page_says_of_hosts() -> None:
    for shape in (NORMAL, EVEN, EIGHTH, TAIL):
        for name in ("mean, t", "host SD, MLS", "host SD, Williams-Tukey"):
            assert all(94 <= p <= 96 for p in column(NESTED_SECTION, name, shape)), name
        assert min(column(NESTED_SECTION, "total SD, MLS", shape)) >= 93
        assert max(column(NESTED_SECTION, "total SD, Satterthwaite", shape)[:12]) < 97
        assert np.nanmax(column(NESTED_SECTION, "mean, BCa of hosts", shape)) < 92
    assert max(column(NESTED_SECTION, "boot SD", EIGHTH)) < 85


def test_what_is_tried_is_what_the_tables_call() -> None:
    """Many samples at once give what the public functions give for one."""
    rng = np.random.default_rng(SEED)
    many = 1 + 0.1 * rng.normal(size=(3, 8))
    for method in ("vangel", "mckay", "naive", "kurtosis", "widest"):
        _, low, high = cv_bounds(many, 0.95, method)
        one = cv_interval(many[1], method=method)
        assert (one.low, one.high) == pytest.approx((low[1], high[1]), rel=1e-12)
    difference, error, free = log_ratio_errors(np.log(many), np.log(many[::-1]))
    assert tost_ratio(many[0], many[2], 0.05).ratio == pytest.approx(np.exp(difference[0]))
    assert (error > 0).all()
    assert ((free > 7) & (free <= 14)).all()
    nested = many[..., None] + 0.1 * rng.normal(size=(3, 8, 4))
    squares = balanced_squares(nested)
    found, other = variance_components(nested[2]), nested_effects(nested[2])
    assert found.mean_high - found.mean == pytest.approx(mean_reach(squares, 0.025)[2])
    assert found.host.high**2 == pytest.approx(host_bounds(squares, 0.025)[1][2])
    assert found.total.low**2 == pytest.approx(total_bounds(squares, 0.025)[0][2])
    assert found.share_high == pytest.approx(share_bounds(squares, 0.025)[1][2])
    assert found.boot == other.boot


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_shapes_have_mean_0_and_variance_1(shape: Shape) -> None:
    drawn = shape.draw(np.random.default_rng(SEED), (400_000,))
    assert drawn.mean() == pytest.approx(0, abs=0.01)
    assert drawn.var() == pytest.approx(1, abs=0.02)
    if shape.slow:
        assert np.mean(drawn < -0.5) == pytest.approx(shape.slow, abs=0.01)


def test_the_page_marks_what_is_outside_and_docstrings_point_to_it() -> None:
    (row,) = rows(CV_SECTION, [Case(6, EIGHTH)], replicates=500)
    made = page([(CV_SECTION, [row])])
    assert f"**{row.percents[0]:.1f}**" in made
    assert "- vangel (tables): too rarely: one boot in eight slow" in made
    for name in ("cv_interval", "spread_ratio", "tost_against", "bca_interval", "nested_effects"):
        assert "COVERAGE.md" in (getattr(analysis.statistics, name).__doc__ or ""), name
    assert Path(analysis.statistics.__file__).with_name("COVERAGE.md") == PAGE
