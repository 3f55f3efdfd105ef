"""What a comparison comes to: one of four outcomes, with everything it was decided by.

Invariant: an outcome other than "not applicable" follows from the test, the margin and the records
named in the verdict alone; margin and test are fixed before the records are seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from analysis.claiming.reading import Line

Outcome = Literal["reproduced", "contradicted", "inconclusive", "not applicable"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends, in the unit of the value between them; `confidence` a fraction."""

    low: float
    high: float
    confidence: float = 0.90


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim, or one quantity, held against records of one stratum.

    `id`: a claim of paper/published.toml, or `<plan>.<arm>.<window>.<quantity>`. `published`: the
    figure held against, as printed there; `measured`: ours as printed, "" where there is none, and
    `value` the same unrounded in `unit`. `interval`: of `value`, or of the ratio where the test is
    of one. `margin`: in words; `bounds` its two ends in the unit of the interval.
    `p`: of the test by itself; `p_holm`: adjusted for the family of verdicts made together.
    `needed_boots`: how many (a side, where there are two) would decide what is inconclusive.
    `stratum`: on what it was measured, in words. `runs`, `lines`: the records it rests on.
    """

    id: str
    text: str
    published: str
    unit: str
    outcome: Outcome
    reason: str
    test: str
    margin: str = ""
    measured: str = ""
    value: float | None = None
    interval: Interval | None = None
    bounds: Interval | None = None
    boots: int = 0
    hosts: int = 0
    p: float | None = None
    p_holm: float | None = None
    needed_boots: int | None = None
    stratum: str = ""
    runs: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
