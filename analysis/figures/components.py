"""Where the spread of throughput comes from: host, block, boot, window within a boot.

Invariant: SDs are of the natural logarithm of throughput, so a share of it whatever its size; what
the records cannot tell apart is said in words and never set to zero.

Model, with arm and window fixed, each pair with a mean of its own: ln y = mean(arm, window) + host
+ block in host + boot (one arm in one block) + window in boot. Mean squares of the balanced layout
and their expectations as in S. R. Searle, G. Casella and C. E. McCulloch, Variance Components
(1992), section 4.3; intervals as in analysis/statistics/nested.py (Williams-Tukey, chi-square).
Only blocks in which each of the arms taken together has every window enter, so that the layout is
balanced; where a plan has arms in some of its blocks only, those arms are taken together that leave
the most degrees of freedom for boots.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.metrics import WindowMetrics
from analysis.plan_order import by_arm, by_window
from analysis.statistics.nested import nested_effects

TOGETHER = "together"
_Floats = NDArray[np.float64]
_TAIL = 0.025


@dataclass(frozen=True, slots=True)
class Component:
    """One source of spread in one scope (an arm, or TOGETHER), in percent.

    `arms`: those in the scope. `df`: degrees of freedom behind it. `why_not`: what the records lack
    to tell it apart; "" where there is an estimate.
    """

    scope: str
    source: str
    df: int
    sd_percent: float | None = None
    low_percent: float | None = None
    high_percent: float | None = None
    why_not: str = ""
    arms: tuple[str, ...] = ()


def components(metrics: Sequence[WindowMetrics], hosts: Mapping[str, str]) -> tuple[Component, ...]:
    """Components over the arms taken together, then of each. `hosts`: run id -> host id."""
    windows = list(dict.fromkeys(m.window for m in sorted(metrics, key=by_window)))
    arms = list(dict.fromkeys(m.arm for m in sorted(metrics, key=by_arm)))
    of_arm = {arm: _complete_blocks(metrics, [arm], windows) for arm in arms}
    together = _most_telling({arm: frozenset(blocks) for arm, blocks in of_arm.items()})
    blocks = _complete_blocks(metrics, together, windows)
    found = [replace(one, arms=together) for one in _over_arms(blocks, hosts)]
    for arm, own in of_arm.items():
        found += [replace(one, arms=(arm,)) for one in _of_one_arm(arm, own)]
    return tuple(found)


def _most_telling(blocks: Mapping[str, frozenset[tuple[str, int]]]) -> tuple[str, ...]:
    """The arms that share the most, by (arms - 1) (blocks - 1); all of them where all share all.

    Taken in order of how many blocks each has: with arms that are in all blocks, and others in
    some, no other choice leaves more.
    """
    order = sorted(blocks, key=lambda arm: (-len(blocks[arm]), arm))
    best, most = tuple(order), 0
    for count in range(2, len(order) + 1):
        shared = frozenset.intersection(*(blocks[arm] for arm in order[:count]))
        free = (count - 1) * (len(shared) - 1)
        if free >= most and shared:
            best, most = tuple(order[:count]), free
    return tuple(arm for arm in blocks if arm in best)


def _complete_blocks(
    metrics: Sequence[WindowMetrics], arms: Sequence[str], windows: Sequence[str]
) -> dict[tuple[str, int], _Floats]:
    """(run, block) -> ln throughput, arms x windows, where none is missing."""
    cells: dict[tuple[str, int], dict[tuple[str, str], float]] = {}
    for m in metrics:
        if m.output_tokens_per_s > 0:
            cell = cells.setdefault((m.run_id, m.block), {})
            cell[m.arm, m.window] = math.log(m.output_tokens_per_s)
    wanted = [(arm, window) for arm in arms for window in windows]
    return {
        key: np.array([cell[one] for one in wanted]).reshape(len(arms), len(windows))
        for key, cell in sorted(cells.items())
        if all(one in cell for one in wanted)
    }


def _over_arms(
    blocks: Mapping[tuple[str, int], _Floats], hosts: Mapping[str, str]
) -> list[Component]:
    few = "" if len(blocks) >= 2 else "fewer than two blocks with every window"
    if few:
        return [_without(TOGETHER, source, few) for source in ("host", "block", "boot", "window")]
    of_host = [hosts.get(run, "") for run, _ in blocks]
    values = np.array(list(blocks.values()))
    centred = values - values.mean(axis=0)
    means = centred.mean(axis=(1, 2))
    _, count_arms, count_windows = values.shape
    by_host = [means[[h == name for h in of_host]] for name in sorted(set(of_host))]
    free_block = len(blocks) - len(by_host)
    square_block = sum(float(np.sum((g - g.mean()) ** 2)) for g in by_host)
    boots = centred.mean(axis=2) - means[:, None]
    free_boot = (count_arms - 1) * (len(blocks) - 1)
    window = _window(TOGETHER, centred - centred.mean(axis=2, keepdims=True), len(blocks) - 1)
    within = _square(window)
    boot_square = _mean_square(count_windows * float(np.sum(boots**2)), free_boot)
    block_square = _mean_square(count_arms * count_windows * square_block, free_block)
    one_arm = "" if count_arms > 1 else "one arm: a block is a boot"
    return [
        _host(by_host),
        _between(TOGETHER, "block", (block_square, free_block), (boot_square, free_boot),
                 count_arms * count_windows, one_arm or _no_block(free_block)),
        _between(TOGETHER, "boot", (boot_square, free_boot), within, count_windows, one_arm),
        window,
    ]  # fmt: skip


def _of_one_arm(arm: str, blocks: Mapping[tuple[str, int], _Floats]) -> list[Component]:
    """Boot (with its block and host, which one arm alone cannot tell from it) and window."""
    if len(blocks) < 2:
        few = "fewer than two boots with every window"
        return [_without(arm, source, few) for source in ("boot", "window")]
    values = np.array([block[0] for block in blocks.values()])
    centred = values - values.mean(axis=0)
    boots = centred.mean(axis=1)
    free = len(values) - 1
    count = values.shape[1]
    window = _window(arm, (centred - boots[:, None])[:, None, :], free)
    square = _mean_square(count * float(np.sum(boots**2)), free)
    return [_between(arm, "boot", (square, free), _square(window), count, ""), window]


def _window(scope: str, residuals: _Floats, free_blocks: int) -> Component:
    """`residuals`: blocks x arms x windows, less the mean of their boot."""
    _, arms, windows = residuals.shape
    free = arms * free_blocks * (windows - 1)
    if not free:
        return _without(scope, "window", "one window a boot: no telling it from the boot")
    square = float(np.sum(residuals**2)) / free
    low, high = (
        math.sqrt(free * square / float(stats.chi2.ppf(share, free)))
        for share in (1 - _TAIL, _TAIL)
    )
    return Component(scope, "window", free, 100 * math.sqrt(square), 100 * low, 100 * high)


def _square(window: Component) -> tuple[float, int]:
    """The mean square within boots; (0, 0) where a boot has one window and takes it in."""
    return (
        ((window.sd_percent / 100) ** 2, window.df) if window.sd_percent is not None else (0.0, 0)
    )


def _between(
    scope: str,
    source: str,
    above: tuple[float, int],
    below: tuple[float, int],
    size: int,
    why_not: str,
) -> Component:
    """The variance (above - below) / size with its Williams-Tukey interval."""
    (square, free), (less, free_less) = above, below
    if why_not:
        return _without(scope, source, why_not)
    bounds = []
    for share in (1 - _TAIL, _TAIL):
        against = less * float(stats.f.ppf(share, free, free_less)) if free_less else 0.0
        chi = float(stats.chi2.ppf(share, free))
        bounds.append(max(0.0, free * (square - against) / (size * chi)))
    low, high = sorted(bounds)
    estimate = max(0.0, (square - less) / size)
    sds = [100 * math.sqrt(variance) for variance in (estimate, low, high)]
    return Component(scope, source, free, sds[0], sds[1], sds[2])


def _host(by_host: Sequence[_Floats]) -> Component:
    if len(by_host) < 2:
        return _without(TOGETHER, "host", "one host")
    if max(map(len, by_host)) < 2:
        return _without(TOGETHER, "host", "one block a host")
    found = nested_effects(by_host)
    sd = found.host
    return Component(TOGETHER, "host", found.hosts - 1, 100 * sd.sd, 100 * sd.low, 100 * sd.high)


def _no_block(free: int) -> str:
    return "" if free else "one block a host: no telling it from the host"


def _mean_square(total: float, free: int) -> float:
    return total / free if free else 0.0


def _without(scope: str, source: str, why: str) -> Component:
    return Component(scope, source, 0, why_not=why)
