"""What a host's processors are worth, worked out a second time from the facts of host.observed.

Invariant: as of audit/counted.py: nothing of analysis/ and none of the formulas of
records/processors.py; what is not of the form that records/FORMAT.md tells is passed over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from records.decode import from_object
from records.errors import FormatError
from records.processors import Pair, Processors

# Of fewer times than these nothing is told.
_FEWEST = 3


def worth(facts: Mapping[str, Any]) -> float:
    """The engine's processors at once, in processors; NaN where it is not told."""
    timed = _timed(facts)
    if timed is None:
        return math.nan
    alone = {one.cpu: _middle(one.times_ns) for one in timed.alone}
    at_once = {one.cpu: _whole(one.times_ns) for one in timed.together}
    shares = [alone[cpu] / at_once[cpu] for cpu in alone if cpu in at_once]
    told = [share for share in shares if not math.isnan(share)]
    return len(at_once) * sum(told) / len(told) if told else math.nan


def beside_the_client(facts: Mapping[str, Any]) -> float:
    """How many times as long the slowest pair takes together; NaN where none is told."""
    timed = _timed(facts)
    pairs = [] if timed is None else [_slowdown(pair) for pair in timed.pairs]
    return max((one for one in pairs if not math.isnan(one)), default=math.nan)


def _timed(facts: Mapping[str, Any]) -> Processors | None:
    try:
        return from_object(Processors, facts.get("processors"))
    except FormatError:
        return None


def _slowdown(pair: Pair) -> float:
    one = _middle(pair.one_both_ns) / _middle(pair.one_alone_ns)
    other = _middle(pair.other_both_ns) / _middle(pair.other_alone_ns)
    return math.nan if math.isnan(one + other) else min(one, other)


def _whole(times_ns: Sequence[int]) -> float:
    """Time a piece, all interruptions included; NaN as of `_middle`."""
    return math.nan if math.isnan(_middle(times_ns)) else sum(times_ns) / len(times_ns)


def _middle(times_ns: Sequence[int]) -> float:
    """The median; NaN of fewer than three times, or where one is no time."""
    ordered = sorted(times_ns)
    if len(ordered) < _FEWEST or ordered[0] <= 0:
        return math.nan
    half = len(ordered) // 2
    return (ordered[half] + ordered[~half]) / 2
