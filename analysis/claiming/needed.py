"""How many boots would decide what those at hand do not.

Invariant: by the spread that the study itself found, on one host; `kit plan power --from` agrees.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from analysis.claiming.quantities import cv_percent, throughput
from analysis.claiming.reading import Reading
from analysis.statistics.planning import Design, detects_ratio, fewest_boots, repeats_cv
from analysis.statistics.power import difference_power
from records.errors import ClaimError

_ANY = 2  # of boots: the design that the fewest are looked for from


def boots_to_find(percent: int, arm: str, window: str, reading: Reading) -> int:
    """Boots an arm, in blocks, that find a throughput higher by so much, with a chance of 80 %.

    Of two arms that spread as this one does; t test of paired logs at 5 %.
    """
    cv = cv_percent(throughput, arm, window, reading) / 100
    return _fewest(fewest_boots(Design(_ANY), detects_ratio(percent / 100, cv, cv)), arm, window)


def boots_to_repeat(within_percent: int, arm: str, window: str, reading: Reading) -> int:
    """Boots of the arm of which another such study finds the CV within so much, with 80 %."""
    cv = cv_percent(throughput, arm, window, reading) / 100
    return _fewest(fewest_boots(Design(_ANY), repeats_cv(within_percent / 100, cv)), arm, window)


def boots_to_tell(differences: Sequence[float]) -> int:
    """Boots that tell the mean of these differences, one a boot, from nothing with 80 %.

    t test at 5 %, were their mean and standard deviation the true ones.
    """
    if len(differences) < 2:
        raise ClaimError("one boot does not tell how many are needed")
    mean, sd = abs(statistics.fmean(differences)), statistics.stdev(differences)
    if sd == 0 and mean:
        return _ANY

    def enough(design: Design) -> bool:
        error = sd / math.sqrt(design.boots)
        if error == 0:
            return False
        return difference_power(error, design.boots - 1, mean, design.alpha) >= design.power

    boots = fewest_boots(Design(_ANY), enough)
    if boots is None:
        raise ClaimError("the differences spread too much for any number of boots to tell")
    return boots


def _fewest(boots: int | None, arm: str, window: str) -> int:
    if boots is None:
        raise ClaimError(f"arm {arm}, window {window}: spreads too much for any number of boots")
    return boots
