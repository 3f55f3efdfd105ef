"""The functions of claims on what a study's hosts are worth, apart from any arm.

Invariant: from the raw times of host.observed by the formulas of records/processors.py; where a
study had its processors timed several times, the worst counts.
"""

from __future__ import annotations

from analysis.claiming.reading import Reading
from records.errors import ClaimError


def processors_worth(reading: Reading) -> float:
    """How many processors' worth of work the engine's do at once: the least of all times."""
    told = [worth for one in reading.processors() if (worth := one.worth) is not None]
    if not told:
        raise ClaimError("something else kept the processors busy each time that they were timed")
    return min(told)


def beside_the_client(reading: Reading) -> float:
    """How many times as long a processor of the engine and one of the client take for their work
    while both work: of the pair that slows itself down most, of all times.
    """
    slowest = [pair for one in reading.processors() if (pair := one.slowest_pair) is not None]
    told = [pair.slowdown for pair in slowest if pair.slowdown is not None]
    if not told:
        raise ClaimError("no pair of an engine's processor and the client's was timed")
    return max(told)
