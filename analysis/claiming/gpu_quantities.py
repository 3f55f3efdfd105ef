"""The functions of claims on kernels, spreads, warm-up and clients.

Invariant: as in `quantities`: one value a boot, deterministic, units in the names. What is held
against each other as cause and effect goes through `Reading.compare`, which the audit refuses where
the arms differ in more than their factor; what is only set side by side goes through `rank`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from analysis.claiming.leading import lead, output_lead, output_spread
from analysis.claiming.needed import boots_to_tell
from analysis.claiming.quantities import Measure, throughput
from analysis.claiming.reading import Reading
from analysis.metrics import WindowMetrics
from analysis.statistics.blocking import blocked_ratio, same_ratio
from records.errors import ClaimError


def ratio_bound(
    end: str,
    measure: Measure,
    first: str,
    second: str,
    factor: str,
    window: str,
    reading: Reading,
) -> float:
    """One end, "low" or "high", of the 95 % interval of a ratio of arms, from pairs in blocks.

    Of geometric means, by the paired t interval of log ratios (`analysis.statistics.blocking`).
    """
    one, two = reading.compare(first, second, factor, window)
    return _bound(end, measure, one, two)


def uncontrolled_ratio(
    measure: Measure, first: str, second: str, window: str, reading: Reading
) -> float:
    """Mean over boots of the first arm over that of the second, whatever the two differ in.

    What a comparison would have read that does not look at what the engine decided: a ranking of
    two arms, from which no cause may be read.
    """
    found = reading.rank((first, second), window)
    if measure is throughput:
        reading.leads(output_lead(first, found[first], second, found[second]))
    return _over(measure, found[first], found[second])


def left_over_ratio(
    measure: Measure, first: str, second: str, window: str, reading: Reading
) -> float:
    """As `uncontrolled_ratio`, where it is not said that the two differ: it may be 1."""
    found = reading.rank((first, second), window)
    return _over(measure, found[first], found[second])


def uncontrolled_bound(
    end: str, measure: Measure, first: str, second: str, window: str, reading: Reading
) -> float:
    """One end of the 95 % interval of `uncontrolled_ratio`."""
    found = reading.rank((first, second), window)
    return _bound(end, measure, found[first], found[second])


def spread_ratio(measure: Measure, first: str, second: str, window: str, reading: Reading) -> float:
    """CV over boots of the first arm over that of the second."""
    found = reading.rank((first, second), window)
    one, two = (_cv(list(map(measure, found[arm]))) for arm in (first, second))
    if two == 0:
        raise ClaimError(f"arm {second}, window {window}: its boots do not differ")
    if measure is throughput:
        spreads = [output_spread(found[arm]) for arm in (first, second)]
        reading.leads(lead(first, spreads[0], second, spreads[1], "%", found[first][0]))
    return one / two


def kernels_compiled(which: str, arm: str, reading: Reading) -> int:
    """Kernels that the engine logged as compiled in the "first" warm-up round, or in the "last".

    The most over boots: a window that began without a warm-up would have held them.
    """
    rounds = [event.jit_lines for event in reading.warmed(arm)]
    if not all(rounds):
        raise ClaimError(f"arm {arm}: a boot without a round of warm-up")
    return max(lines[0 if which == "first" else -1] for lines in rounds)


def peer_excess_ms(quantity: str, arm: str, window: str, peer: str, reading: Reading) -> float:
    """Median over boots of the plain client's p95 minus the kit's, of one latency, ms."""
    found = []
    for kit, other in reading.by_both_clients(arm, window, peer):
        ours, theirs = kit.latency_of(quantity).p95, other.latency_of(quantity).p95
        if ours is None or theirs is None:
            raise ClaimError(f"boot {kit.boot}: {quantity} is undefined")
        found.append(theirs - ours)
    return statistics.median(found)


def over_server_ms(quantity: str, arm: str, window: str, reading: Reading) -> float:
    """Median over boots of the client's mean minus that of the server's own clock, ms.

    `quantity`: an id of `analysis.server_clock.QUANTITIES`; what lies between is told there.
    """
    return statistics.median(_over_server(quantity, arm, window, reading).values())


def peer_over_server_ms(quantity: str, arm: str, window: str, peer: str, reading: Reading) -> float:
    """Median over boots of the plain client's excess over the server's clock minus the kit's, ms.

    What the engine did differently between the two windows is in both clocks, so not in it.
    """
    return statistics.median(_peer_over_server(quantity, arm, window, peer, reading))


def boots_to_tell_peer(quantity: str, arm: str, window: str, peer: str, reading: Reading) -> int:
    """Boots that tell the mean of `peer_over_server_ms` from nothing, with a chance of 80 %.

    By the mean and the spread of the boots at hand; t test at 5 %.
    """
    return boots_to_tell(_peer_over_server(quantity, arm, window, peer, reading))


def _peer_over_server(
    quantity: str, arm: str, window: str, peer: str, reading: Reading
) -> list[float]:
    """The plain client's excess over the server's clock minus the kit's, by boot, ms."""
    ours = _over_server(quantity, arm, window, reading)
    theirs = _over_server(quantity, arm, peer, reading)
    found = [theirs[boot] - ours[boot] for boot in theirs if boot in ours]
    if not found:
        raise ClaimError(f"arm {arm}: no boot has both window {window} and window {peer}")
    return found


def _over_server(
    quantity: str, arm: str, window: str, reading: Reading
) -> dict[tuple[str, str], float]:
    """By run and boot. ClaimError where one boot's pages do not tell."""
    found = {}
    for one in reading.clocks(arm, window):
        means = one.means[quantity]
        if means.over_server_ms is None:
            raise ClaimError(f"boot {one.boot}, window {window}, {quantity}: {means.why}")
        found[one.run_id, one.boot] = means.over_server_ms
    return found


def _over(measure: Measure, one: Sequence[WindowMetrics], two: Sequence[WindowMetrics]) -> float:
    return statistics.fmean(map(measure, one)) / statistics.fmean(map(measure, two))


def _bound(
    end: str, measure: Measure, one: Sequence[WindowMetrics], two: Sequence[WindowMetrics]
) -> float:
    firsts, seconds = (
        {(window.run_id, window.block): measure(window) for window in arm} for arm in (one, two)
    )
    blocks = [block for block in firsts if block in seconds]
    if len(blocks) < 2:
        raise ClaimError("one block gives no interval")
    over, under = ([arm[block] for block in blocks] for arm in (firsts, seconds))
    if same_ratio(over, under):
        return over[0] / under[0]
    found = blocked_ratio(over, under)
    return found.low if end == "low" else found.high


def _cv(values: list[float]) -> float:
    if len(values) < 2:
        raise ClaimError("one boot has no spread")
    return statistics.stdev(values) / statistics.fmean(values)
