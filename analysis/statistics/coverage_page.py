"""COVERAGE.md from the simulations of coverage.py: tables, and what they mean for a reader.

Invariant: every figure on the page is drawn anew; the sentences around them hold no figure of a
simulation, and tests/analysis/test_statistics_coverage.py holds them against the tables.

Usage: python -m analysis.statistics.coverage_page [FILE]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from analysis.statistics.coverage import (
    BOOTSTRAP_REPLICATES,
    CONFIDENCE,
    CV,
    FLAT_SECTIONS,
    NESTED_SECTION,
    REPLICATES,
    RESAMPLES,
    SEED,
    Row,
    Section,
    flat_cases,
    nested_cases,
    rows,
)

PAGE = Path(__file__).with_name("COVERAGE.md")
LOW, HIGH = 93.0, 97.0
_MEANING = {
    "cv": """\
Tables and claims use vangel: it is right for normal boots, and for boots that fall into two even
groups it is wider than it need be, so what it says there is safe. It misses far too often where one
boot in eight is slow, and where boots have a slow tail; more boots do not mend that. Then read
`cv_interval(…, method="widest")`, at 24 boots, beside the boots themselves. At 6 and 12 boots no
method helps: with one boot in eight slow, 45 % of runs of 6 boots and 20 % of runs of 12 meet none,
and a group that was not met cannot be told of. BCa is too narrow with so few boots; it is there for
statistics that have no formula.""",
    "spread": """\
Where the shape is in doubt `mad_ratio` is the interval to read and Brown-Forsythe the test: the
test keeps within two points of its level under every shape here, the interval but for uneven groups
at 6 boots, and one boot in eight slow. The F interval and the F test are for normal boots; with a
rare slow group or a slow tail they find differences of spread that are not there.""",
    "ratio": """\
Ratios of two arms of one shape hold everywhere, blocked or not: what is skewed cancels. One arm
against a figure, or an arm in two groups over one that is not, does not cancel: with one boot in
eight slow the t interval needs more than 24 boots. BCa is no better with few. `tost_blocks`,
`blocked_ratio` and `tost_ratio` are these t intervals.""",
    "tost": """\
95 % or more means that equivalence is claimed no oftener than at most 5 % although the ratio lies
at the edge. Two arms keep to that under every shape here. Against a published figure they do not
where boots fall into uneven groups or have a slow tail, at 24 boots neither: such a verdict is read
with the boots beside it, and a repetition of both arms decides better.""",
    "nested": """\
`variance_components` gives the t interval of the mean and the MLS intervals, which hold with two
to five hosts under every shape of boots; `nested_effects` gives Williams-Tukey's, which holds too.
How wide they are is another matter: with three hosts the host SD is described, not found. The
interval of the boot SD is chi-square, and suffers as vangel does above; that of the hosts' share
suffers a little with it. Satterthwaite's of the total is too narrow with few hosts, and BCa over
whole hosts (`cluster_bca_interval`) by far, with ten still. Where the hosts themselves fall into
two groups the t interval of the mean is too narrow with two to four hosts.""",
}


def page(found: Iterable[tuple[Section, Sequence[Row]]]) -> str:
    """The page, from the rows of each section."""
    parts = [_head()]
    for section, drawn in found:
        parts.append(f"## {section.title}\n\n{_MEANING[section.id]}\n")
        parts.append(_table(section, drawn))
        parts.append(_outside(section, drawn))
    return "\n".join(parts)


def draw_all() -> Iterator[tuple[Section, list[Row]]]:
    """Every section with every row, at full size."""
    for section in FLAT_SECTIONS:
        yield section, list(rows(section, flat_cases()))
    yield NESTED_SECTION, list(rows(NESTED_SECTION, nested_cases()))


def _head() -> str:
    closed, drawn = (
        100 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / n)
        for n in (REPLICATES, BOOTSTRAP_REPLICATES)
    )
    return f"""\
# How often the intervals hold the truth

Made by `make coverage` (analysis/statistics/coverage.py); do not edit. Percent of simulated runs in
which a nominal {100 * CONFIDENCE:.0f} % interval held the true value. **Bold**: outside \
{LOW:.0f} to {HIGH:.0f} %.

- Seed {SEED}.
- {REPLICATES} simulations a figure: standard error {closed:.2f} points at {100 * CONFIDENCE:.0f} %.
- BCa: {BOOTSTRAP_REPLICATES} simulations of {RESAMPLES} resamples: {drawn:.2f} points.

Boots are drawn with a CV of {100 * CV:.0f} % (log values: an SD of {CV}). Shapes: normal; two
groups of boots that do not overlap, even or with one boot in four or in eight slow; a slow tail
(gamma of shape 2, skewness 1.4). How boots fall is a matter of the engine: compare the dots of a
run with these.
"""


def _table(section: Section, drawn: Sequence[Row]) -> str:
    nested = section is NESTED_SECTION
    head = ["boots are", *(["hosts", "boots a host"] if nested else ["boots"]), *section.columns]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for row in drawn:
        counts = [str(row.hosts), str(row.boots)] if nested else [str(row.boots)]
        cells = [row.shape, *counts, *[_cell(percent) for percent in row.percents]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(percent: float | None) -> str:
    if percent is None:
        return "-"
    return f"{percent:.1f}" if LOW <= percent <= HIGH else f"**{percent:.1f}**"


def _outside(section: Section, drawn: Sequence[Row]) -> str:
    """In words, for each column, under which shapes it is outside, and how far."""
    lines = []
    for index, column in enumerate(section.columns):
        said = []
        for word, out in (("too rarely", _below), ("too often", _above)):
            worst: dict[str, float] = {}
            for row in drawn:
                percent = row.percents[index]
                if percent is not None and out(percent):
                    pick = min if out is _below else max
                    worst[row.shape] = pick(percent, worst.get(row.shape, percent))
            if worst:
                shapes = "; ".join(f"{shape} {percent:.1f}" for shape, percent in worst.items())
                said.append(f"{word}: {shapes}")
        lines.append(f"- {column}: {'. '.join(said) if said else 'within, throughout'}.")
    return f"Outside {LOW:.0f} to {HIGH:.0f} %, at worst:\n\n" + "\n".join(lines) + "\n"


def _below(percent: float) -> bool:
    return percent < LOW


def _above(percent: float) -> bool:
    return percent > HIGH


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    target.write_text(page(draw_all()), encoding="utf-8")
    print(f"wrote {target}", file=sys.stderr)
