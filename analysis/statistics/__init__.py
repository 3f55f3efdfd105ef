"""Statistics over boots: dispersion, equivalence, resampling, nesting, power, agreement.

Invariant: pure functions; whatever draws random numbers takes a seed and returns it.
"""

from analysis.statistics.agreement import Agreement, agreement
from analysis.statistics.dispersion import (
    CvInterval,
    SpreadRatio,
    brown_forsythe,
    cv_interval,
    spread_ratio,
)
from analysis.statistics.equivalence import Equivalence, tost_against, tost_ratio
from analysis.statistics.nested import NestedEffects, SdInterval, nested_effects
from analysis.statistics.percentiles import percentiles
from analysis.statistics.power import (
    SimulatedPower,
    brown_forsythe_power,
    f_test_power,
    tost_power,
)
from analysis.statistics.resampling import BootstrapInterval, bca_interval

__all__ = [
    "Agreement",
    "BootstrapInterval",
    "CvInterval",
    "Equivalence",
    "NestedEffects",
    "SdInterval",
    "SimulatedPower",
    "SpreadRatio",
    "agreement",
    "bca_interval",
    "brown_forsythe",
    "brown_forsythe_power",
    "cv_interval",
    "f_test_power",
    "nested_effects",
    "percentiles",
    "spread_ratio",
    "tost_against",
    "tost_power",
    "tost_ratio",
]
