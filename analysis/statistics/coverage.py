"""How often the intervals hold the truth, by simulation: normal, bimodal and skewed boots.

Invariant: a row's figures follow from SEED and the row's own name, so that any row can be drawn
again alone; the intervals tried are the functions that the tables call.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.statistics.components import (
    boot_bounds,
    host_bounds,
    mean_reach,
    share_bounds,
    total_bounds,
)
from analysis.statistics.dispersion import cv_bounds, mad_bounds, spread_bounds
from analysis.statistics.equivalence import log_ratio_errors
from analysis.statistics.mean_squares import balanced_squares
from analysis.statistics.nested import williams_tukey_bounds
from analysis.statistics.resampling import bca_bounds, coefficient_of_variation, mean
from analysis.statistics.samples import Floats
from analysis.statistics.shapes import EIGHTH, EVEN, NORMAL, SHAPES, TAIL, Shape

SEED = 20261130
REPLICATES = 20_000
# The bootstrap costs as many draws as it has resamples.
BOOTSTRAP_REPLICATES, RESAMPLES, _AT_ONCE = 4_000, 999, 250
BOOTS = (6, 12, 24)
HOSTS = (2, 3, 4, 5)
MANY_HOSTS = 10
CONFIDENCE = 0.95
ALPHA = 0.05
CV = 0.10
MARGIN = 0.05

Bounds = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class Row:
    """Percent of simulations that held, by the columns of the row's section.

    `hosts` 0: all boots alike. None where an interval does not exist.
    """

    shape: str
    hosts: int
    boots: int
    percents: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One table: what is counted, its columns, and how a row of it is drawn.

    `bootstrap` names the columns that rest on BOOTSTRAP_REPLICATES.
    """

    id: str
    title: str
    columns: tuple[str, ...]
    draw: Callable[[Case, int], tuple[float | None, ...]]
    bootstrap: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Case:
    """What one row draws: boots of a shape, in hosts that have one too."""

    boots: int
    shape: Shape
    hosts: int = 0
    host_shape: Shape = NORMAL

    @property
    def name(self) -> str:
        """The shape as the row shows it."""
        if self.host_shape is NORMAL:
            return self.shape.name
        return f"{self.shape.name}; hosts in {self.host_shape.name}"

    def generator(self, section: str) -> np.random.Generator:
        """The source of this row's numbers, which no other row shares."""
        key = f"{section}/{self.name}/{self.hosts}/{self.boots}"
        return np.random.default_rng([SEED, zlib.crc32(key.encode())])


def rows(section: Section, cases: Sequence[Case], replicates: int = REPLICATES) -> Iterator[Row]:
    """Draw the rows of a section; fewer replicates draw other numbers, not the first of these."""
    for case in cases:
        yield Row(case.name, case.hosts, case.boots, section.draw(case, replicates))


def flat_cases() -> tuple[Case, ...]:
    """Every shape with every number of boots, hosts not told apart."""
    return tuple(Case(boots, shape) for shape in SHAPES for boots in BOOTS)


def nested_cases() -> tuple[Case, ...]:
    """Boots of several shapes in hosts, and hosts that come in two groups themselves."""
    found = []
    for shape in (NORMAL, EVEN, EIGHTH, TAIL):
        found += [Case(boots, shape, hosts) for hosts in HOSTS for boots in BOOTS]
        found.append(Case(BOOTS[0], shape, MANY_HOSTS))
    found += [Case(BOOTS[0], NORMAL, hosts, EVEN) for hosts in (*HOSTS, MANY_HOSTS)]
    return tuple(found)


def _cv(case: Case, replicates: int) -> tuple[float | None, ...]:
    values = 1 + CV * case.shape.draw(case.generator("cv"), (replicates, case.boots))
    closed = [
        _held(cv_bounds(values, CONFIDENCE, method)[1:], CV)
        for method in ("vangel", "kurtosis", "widest")
    ]
    return (*closed, _held(_bca(values, coefficient_of_variation), CV))


def _spread(case: Case, replicates: int) -> tuple[float | None, ...]:
    rng = case.generator("spread")
    one, two = (case.shape.draw(rng, (replicates, case.boots)) for _ in range(2))
    deviations = [np.abs(v - np.median(v, axis=-1, keepdims=True)) for v in (one, two)]
    # Of two groups the Brown-Forsythe test is the pooled t test of the deviations.
    p = np.asarray(stats.ttest_ind(*deviations, axis=-1).pvalue)
    return (
        _held(spread_bounds(one, two, CONFIDENCE)[1:], 1.0),
        _held(mad_bounds(one, two, CONFIDENCE)[1:], 1.0),
        100 * float(np.mean(p >= ALPHA)),
    )


def _ratio(case: Case, replicates: int) -> tuple[float | None, ...]:
    rng = case.generator("ratio")
    size = (replicates, case.boots)
    one, two = CV * case.shape.draw(rng, size), CV * case.shape.draw(rng, size)
    quiet = CV / 10 * rng.normal(size=size)
    block = CV * rng.normal(size=size)
    free = case.boots - 1
    paired = (one + block) - (two + block)
    return (
        _held_t(one.mean(axis=-1), _error(one), free),
        _held(_bca(one, mean), 0.0),
        _held_t(*log_ratio_errors(one, two)),
        _held_t(*log_ratio_errors(one, quiet)),
        _held_t(paired.mean(axis=-1), _error(paired), free),
    )


def _tost(case: Case, replicates: int) -> tuple[float | None, ...]:
    """Percent not called equivalent although the ratio is exactly at the margin, the worse one."""
    rng = case.generator("tost")
    size, free = (replicates, case.boots), case.boots - 1
    found = []
    for edge in (np.log1p(-MARGIN), np.log1p(MARGIN)):
        one = edge + MARGIN / 2 * case.shape.draw(rng, size)
        two = MARGIN / 2 * case.shape.draw(rng, size)
        block = MARGIN / 2 * rng.normal(size=size)
        paired = (one + block) - (two + block)
        found.append(
            (
                _not_equivalent(one.mean(axis=-1), _error(one), np.asarray(free)),
                _not_equivalent(*log_ratio_errors(one, two)),
                _not_equivalent(paired.mean(axis=-1), _error(paired), np.asarray(free)),
            )
        )
    return tuple(min(both) for both in zip(*found, strict=True))


def _nested(case: Case, replicates: int) -> tuple[float | None, ...]:
    """Hosts that differ as much as boots do: both SDs 1, the share one half."""
    rng = case.generator("nested")
    of_host = case.host_shape.draw(rng, (replicates, case.hosts))
    values = of_host[..., None] + case.shape.draw(rng, (replicates, case.hosts, case.boots))
    squares, tail = balanced_squares(values), (1 - CONFIDENCE) / 2
    means = values.mean(axis=(-2, -1))
    reach = mean_reach(squares, tail)
    return (
        _held((means - reach, means + reach), 0.0),
        # With equal numbers of boots the mean over whole hosts is the mean of their means.
        _held(_bca(values.mean(axis=-1), mean), 0.0) if case.hosts > 2 else None,
        _held(williams_tukey_bounds(squares, tail), 1.0),
        _held(host_bounds(squares, tail), 1.0),
        _held(boot_bounds(squares, tail), 1.0),
        _held(total_bounds(squares, tail), 2.0),
        _held(total_bounds(squares, tail, "satterthwaite"), 2.0),
        _held(share_bounds(squares, tail), 0.5),
    )


def _held(bounds: Sequence[Floats], truth: float) -> float:
    low, high = bounds
    return 100 * float(np.mean((low <= truth) & (truth <= high)))


def _held_t(middle: Floats, error: Floats, free: Floats | int) -> float:
    reach = stats.t.isf((1 - CONFIDENCE) / 2, free) * error
    return _held((middle - reach, middle + reach), 0.0)


def _not_equivalent(middle: Floats, error: Floats, free: Floats) -> float:
    reach = stats.t.isf(ALPHA, free) * error
    inside = (middle - reach > np.log1p(-MARGIN)) & (middle + reach < np.log1p(MARGIN))
    return 100 * float(np.mean(~inside))


def _error(values: Floats) -> Floats:
    return np.asarray(values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1]))


def _bca(values: Floats, statistic: Callable[[Floats], Floats]) -> Bounds:
    """BCa bounds of the first samples, a few at once: all resamples stand in memory together."""
    few = values[:BOOTSTRAP_REPLICATES]
    parts = [
        bca_bounds(
            few[start : start + _AT_ONCE],
            statistic,
            seed=SEED + start,
            confidence=CONFIDENCE,
            resamples=RESAMPLES,
        )
        for start in range(0, len(few), _AT_ONCE)
    ]
    return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])


CV_SECTION = Section(
    "cv",
    "The CV of one arm",
    ("vangel (tables)", "kurtosis", "widest", "BCa"),
    _cv,
    frozenset({"BCa"}),
)
SPREAD_SECTION = Section(
    "spread",
    "Two arms of the same spread and shape",
    ("F interval", "MAD interval", "Brown-Forsythe test at 5 % accepts"),
    _spread,
)
RATIO_SECTION = Section(
    "ratio",
    "Means of log values: one arm, and ratios of two",
    (
        "one arm, t",
        "one arm, BCa",
        "two such arms, Welch",
        "over a normal arm of a tenth the spread, Welch",
        "two such arms in blocks, t",
    ),
    _ratio,
    frozenset({"one arm, BCa"}),
)
TOST_SECTION = Section(
    "tost",
    "TOST at 5 %: not called equivalent at the edge of the margin",
    ("against a figure", "two arms, Welch", "two arms in blocks"),
    _tost,
)
NESTED_SECTION = Section(
    "nested",
    "Boots in hosts that differ as much as boots do",
    (
        "mean, t",
        "mean, BCa of hosts",
        "host SD, Williams-Tukey",
        "host SD, MLS",
        "boot SD",
        "total SD, MLS",
        "total SD, Satterthwaite",
        "share",
    ),
    _nested,
    frozenset({"mean, BCa of hosts"}),
)
FLAT_SECTIONS = (CV_SECTION, SPREAD_SECTION, RATIO_SECTION, TOST_SECTION)
