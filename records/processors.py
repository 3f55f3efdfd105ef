"""What a host's processors are worth: times of a fixed piece of work, and what follows from them.

Invariant: raw times are kept as they were taken (remote/host/bursts.py); every figure here is a
ratio of times of one processor, so that neither the piece's size nor the interpreter counts.

A median tells how fast a processor works while it works: what two threads of a core take from each
other shows in it. What others take by turns (another program, time that a hypervisor steals)
stops a processor for whole milliseconds, and shows in a mean alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# Two hyperthreads of one core take each about 1.3 to 2 times as long for scalar work as either
# alone (Intel 64 and IA-32 Optimization Reference Manual, on Hyper-Threading: what they share);
# two cores that share caches and power differ by a few percent.
SHARED_CORE = 1.2
# Of fewer times one interruption decides the median.
FEWEST = 3


@dataclass(frozen=True, slots=True)
class Place:
    """Where the kernel says a processor is, in its own words: "absent" for what it does not tell.

    `siblings`: the processors of the same core, itself included, such as "0,8". A virtual machine
    often has none though its processors share cores: the times tell.
    """

    cpu: int
    siblings: str
    package: str
    node: str


@dataclass(frozen=True, slots=True)
class Burst:
    """Times of the piece on one processor, one after the other."""

    cpu: int
    times_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Times of the piece on two processors, each alone and while both work; in 15 ms."""

    one: int
    other: int
    one_alone_ns: tuple[int, ...]
    one_both_ns: tuple[int, ...]
    other_alone_ns: tuple[int, ...]
    other_both_ns: tuple[int, ...]

    @property
    def slowdown(self) -> float | None:
        """How many times as long each takes while the other works: the smaller of both ratios.

        A core that they share slows down both; whatever else comes between, mostly one. None where
        one of the four was not taken three times: something else kept the processors busy.
        """
        ratios = [
            _ratio(self.one_both_ns, self.one_alone_ns),
            _ratio(self.other_both_ns, self.other_alone_ns),
        ]
        known = [ratio for ratio in ratios if ratio is not None]
        return min(known) if len(known) == len(ratios) else None

    @property
    def is_shared(self) -> bool:
        """Whether the two slow each other down as two threads of one core do."""
        return self.slowdown is not None and self.slowdown >= SHARED_CORE


@dataclass(frozen=True, slots=True)
class Processors:
    """The engine's and the client's processors, and what they did; the piece adds `addends` times.

    `engine`, `client`: as they were chosen, empty where the kernel chooses among all that the
    harness may use. `alone`: of the engine's one after the other, 32 at most; `together`: all of
    the engine's at once. `pairs`: one of the engine's and one of the client's, as many as there was
    time for.
    """

    engine: tuple[int, ...]
    client: tuple[int, ...]
    addends: int
    places: tuple[Place, ...]
    alone: tuple[Burst, ...]
    together: tuple[Burst, ...]
    pairs: tuple[Pair, ...]

    @property
    def worth(self) -> float | None:
        """How many processors' worth of work the engine's do at once; None where not told.

        Each does median time alone / mean time together of what it does alone, for a mean counts
        all that kept it from its work: the mean of that over those that were timed both ways, times
        the number that worked together.
        """
        alone = {burst.cpu: burst.times_ns for burst in self.alone if _is_told(burst.times_ns)}
        shares = [
            statistics.median(alone[burst.cpu]) / statistics.fmean(burst.times_ns)
            for burst in self.together
            if burst.cpu in alone and _is_told(burst.times_ns)
        ]
        return statistics.fmean(shares) * len(self.together) if shares else None

    @property
    def alone_ns(self) -> tuple[float, ...]:
        """Median time of each processor that was timed alone."""
        return tuple(statistics.median(b.times_ns) for b in self.alone if b.times_ns)

    @property
    def told_pairs(self) -> tuple[Pair, ...]:
        """The pairs of which the times tell something."""
        return tuple(pair for pair in self.pairs if pair.slowdown is not None)

    @property
    def shared_pairs(self) -> tuple[Pair, ...]:
        """The pairs that slow each other down as threads of one core do, the slowest first."""
        shared = [pair for pair in self.pairs if pair.is_shared]
        return tuple(sorted(shared, key=lambda pair: (-(pair.slowdown or 0), pair.one, pair.other)))

    @property
    def slowest_pair(self) -> Pair | None:
        """The pair that slows itself down most; None where none was timed."""
        return max(self.told_pairs, key=lambda pair: pair.slowdown or 0, default=None)


def _ratio(above_ns: Sequence[int], below_ns: Sequence[int]) -> float | None:
    if not _is_told(above_ns) or not _is_told(below_ns):
        return None
    return statistics.median(above_ns) / statistics.median(below_ns)


def _is_told(times_ns: Sequence[int]) -> bool:
    return len(times_ns) >= FEWEST and min(times_ns) > 0
