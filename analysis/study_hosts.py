"""Hosts of one study: what they and their boots each contribute to the spread, and who is apart.

Invariant: a host is named an outlier only after reckoning with all hosts and cells looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from analysis.metrics import WindowMetrics
from analysis.plan_order import PlanOrder
from analysis.statistics.multiplicity import holm
from analysis.statistics.nested import NestedEffects, nested_effects
from analysis.statistics.samples import Floats
from analysis.study import StudyStratum
from records.errors import FormatError

ALPHA = 0.05
# Two hosts differ, but nothing tells which of the two is apart.
_LEAST_HOSTS = 3
# Logs of equal means differ by no more than this.
_ROUNDING = 1e-12

Measure = Callable[[WindowMetrics], float | None]
MEASURES: tuple[tuple[str, str, Measure], ...] = (
    ("throughput", "tok/s", lambda m: m.output_tokens_per_s),
    ("acceptance", "tok/step", lambda m: m.acceptance.server_length),
    ("step gap p50", "ms", lambda m: m.latency_of("step-gap").p50),
)


@dataclass(frozen=True, slots=True)
class HostMean:
    """One host in one arm and window: mean over its boots, over the mean of the other hosts.

    `p`: of the difference from the others, adjusted for all that were looked at (Holm); None with
    too few hosts to tell.
    """

    arm: str
    window: str
    host: str
    boots: int
    mean: float
    against_others: float | None
    p: float | None

    @property
    def outlier(self) -> bool:
        """Whether it is apart from the others."""
        return self.p is not None and self.p <= ALPHA


@dataclass(frozen=True, slots=True)
class Effects:
    """The variance components of one quantity in one arm and window, or why there are none."""

    arm: str
    window: str
    quantity: str
    unit: str
    hosts: int
    boots: int
    found: NestedEffects | None
    problem: str


def host_means(study: StudyStratum) -> tuple[HostMean, ...]:
    """Throughput of each host, arm and window, with the test of each host against the others.

    The test: the log of a host's mean against the mean of the others', as a t statistic with k - 2
    degrees of freedom; of the largest among k hosts it is the test of F. E. Grubbs (Technometrics
    11 (1969) 1-21). Hosts weigh alike, whatever their number of boots.
    """
    found = [one for cell in _cells(study, MEASURES[0][2]) for one in _means(*cell)]
    tested = [one.p for one in found if one.p is not None]
    adjusted = iter(holm(tested) if tested else ())
    return tuple(one if one.p is None else replace(one, p=next(adjusted)) for one in found)


def host_effects(study: StudyStratum) -> tuple[Effects, ...]:
    """Boots within hosts, for each quantity, arm and window that at least two hosts measured."""
    return tuple(
        _effects(arm, window, name, unit, by_host)
        for name, unit, measure in MEASURES
        for arm, window, by_host in _cells(study, measure)
        if len(by_host) > 1
    )


def _effects(
    arm: str, window: str, name: str, unit: str, by_host: Mapping[str, Sequence[float]]
) -> Effects:
    boots = sum(map(len, by_host.values()))
    found, problem = None, ""
    try:
        found = nested_effects(list(by_host.values()))
    except FormatError as error:
        problem = error.message
    return Effects(arm, window, name, unit, len(by_host), boots, found, problem)


def _cells(
    study: StudyStratum, measure: Measure
) -> Iterator[tuple[str, str, dict[str, list[float]]]]:
    """Values by host, for each arm and window of the plan that has any."""
    cells: dict[tuple[str, str], dict[str, list[float]]] = {}
    for run in study.runs:
        hosts = run.boot_hosts
        for metrics in run.metrics:
            value = measure(metrics)
            if value is not None:
                by_host = cells.setdefault((metrics.arm, metrics.window), {})
                by_host.setdefault(hosts[metrics.boot], []).append(value)
    order = PlanOrder([study.plan])
    for arm, window in sorted(cells, key=lambda cell: order.cell(*cell)):
        yield arm, window, dict(sorted(cells[arm, window].items()))


def _means(arm: str, window: str, by_host: Mapping[str, Sequence[float]]) -> Iterator[HostMean]:
    means = np.array([np.mean(values) for values in by_host.values()])
    count = means.size
    ratios: list[float | None] = [None] * count
    tails: list[float | None] = [None] * count
    if count > 1 and np.all(means > 0):
        logs = np.log(means)
        others = (logs.sum() - logs) / (count - 1)
        ratios = [float(ratio) for ratio in np.exp(logs - others)]
        if count >= _LEAST_HOSTS:
            tails = [float(tail) for tail in _tails(logs - others, logs)]
    for place, (host, values) in enumerate(by_host.items()):
        yield HostMean(
            arm, window, host, len(values), float(means[place]), ratios[place], tails[place]
        )


def _tails(apart: Floats, logs: Floats) -> Floats:
    """Two-sided p of each host's distance from the mean of the others, by their spread alone."""
    count = logs.size
    apart = np.where(np.abs(apart) < _ROUNDING, 0.0, apart)
    squares = float(np.sum((logs - logs.mean()) ** 2))
    # Taking one value out of k lowers the sum of squares by (k - 1) / k of its distance squared.
    left = np.maximum(squares - apart**2 * (count - 1) / count, 0.0)
    spread = np.sqrt(left / max(count - 2, 1) * (1 + 1 / (count - 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(apart == 0, 0.0, np.abs(apart) / spread)
    statistic = np.where(np.isnan(statistic), math.inf, statistic)
    return np.asarray(2 * stats.t.sf(statistic, count - 2))
