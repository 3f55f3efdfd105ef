"""Statistics over boots: dispersion, equivalence, blocks, resampling, nesting, power, agreement.

Invariant: pure functions; whatever draws random numbers takes a seed and returns it. COVERAGE.md,
beside this file, says how often each interval holds the truth, and is made by coverage.py.
"""

from analysis.statistics.agreement import Agreement, agreement
from analysis.statistics.blocking import (
    BlockAnalysis,
    BlockedRatio,
    blocked_ratio,
    randomised_blocks,
)
from analysis.statistics.components import (
    RemlComponents,
    VarianceComponents,
    reml_components,
    variance_components,
)
from analysis.statistics.dispersion import (
    CvInterval,
    MadRatio,
    SpreadRatio,
    brown_forsythe,
    cv_interval,
    mad_ratio,
    spread_ratio,
)
from analysis.statistics.equivalence import Equivalence, tost_against, tost_blocks, tost_ratio
from analysis.statistics.multiplicity import benjamini_hochberg, holm
from analysis.statistics.nested import NestedEffects, SdInterval, nested_effects
from analysis.statistics.percentiles import percentiles
from analysis.statistics.power import (
    SimulatedPower,
    brown_forsythe_power,
    f_test_power,
    tost_power,
)
from analysis.statistics.resampling import BootstrapInterval, bca_interval, cluster_bca_interval

__all__ = [
    "Agreement",
    "BlockAnalysis",
    "BlockedRatio",
    "BootstrapInterval",
    "CvInterval",
    "Equivalence",
    "MadRatio",
    "NestedEffects",
    "RemlComponents",
    "SdInterval",
    "SimulatedPower",
    "SpreadRatio",
    "VarianceComponents",
    "agreement",
    "bca_interval",
    "benjamini_hochberg",
    "blocked_ratio",
    "brown_forsythe",
    "brown_forsythe_power",
    "cluster_bca_interval",
    "cv_interval",
    "f_test_power",
    "holm",
    "mad_ratio",
    "nested_effects",
    "percentiles",
    "randomised_blocks",
    "reml_components",
    "spread_ratio",
    "tost_against",
    "tost_blocks",
    "tost_power",
    "tost_ratio",
    "variance_components",
]
