"""What changes within a boot, and what an engine told of itself, computed a second time.

Invariant: as of audit/counted.py: nothing of analysis/ is used, no numpy and no scipy; what is not
computed here is None, never a guess. Windows are those of the plans for compute capability 9.0.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from audit.counted import Counted, RunCount, percentile
from audit.quantiles import f_alike

_MOST, _AGAIN, _ONE = "c64", "c64-plain", "c1"
_NS_PER_MS = 1e6
# p95 over p5, in per cent, from which on steps took two times.
_TWO_SPEEDS = 150
_TAIL = 0.025
_DECIDED = {
    "backend": ("target", "backend"),
    "version": ("target", "flash_attention_version"),
    "graphs": ("cudagraph_effective",),
}


def within_boots(words: str, runs: Sequence[RunCount]) -> float | str | None:
    """repeat.*, speed.*, pace.*, jit.*, plain-client.<arm>.<latency>; backend, version, graphs."""
    what, _, rest = words.partition(".")
    arm, _, last = rest.partition(".")
    if what == "repeat":
        return _repeated(last, list(_pairs(runs, arm)))
    if what == "plain-client" and last in ("step-gap", "ttft.sent"):
        found = [two.p95(last) - one.p95(last) for one, two in _pairs(runs, arm)]
        return statistics.median(found) if found and not any(map(math.isnan, found)) else None
    if what == "speed":
        return _speeds(last, list(_of(runs, arm, _ONE)))
    if what == "pace" and last in ("fastest", "slowest"):
        times = [ns for one in _of(runs, arm, _MOST) for ns in one.pace_ns if ns > 0]
        return (min if last == "fastest" else max)(times) / _NS_PER_MS if times else None
    if what == "jit" and last in ("first", "last"):
        rounds = [lines for run in runs for of, lines in run.warmed.values() if of == arm and lines]
        return max((lines[0 if last == "first" else -1] for lines in rounds), default=None)
    if what in _DECIDED and not last:
        return _decided(_DECIDED[what], arm, runs)
    return None


def _of(runs: Sequence[RunCount], arm: str, window: str) -> Iterator[Counted]:
    for run in runs:
        yield from (one for one in run.windows if (one.arm, one.window) == (arm, window))


def _pairs(runs: Sequence[RunCount], arm: str) -> Iterator[tuple[Counted, Counted]]:
    """Of each boot that has both usable: the window of most load, and the same load again."""
    for run in runs:
        firsts = {one.boot: one for one in _of([run], arm, _MOST)}
        for two in _of([run], arm, _AGAIN):
            if two.boot in firsts:
                yield firsts[two.boot], two


def _repeated(last: str, pairs: Sequence[tuple[Counted, Counted]]) -> float | None:
    """Of two windows a boot all follows from the sums and the differences of their logarithms."""
    if last == "throughput":
        return statistics.fmean(two.throughput for _, two in pairs) if pairs else None
    if len(pairs) < 2 or any(one.tokens <= 0 for pair in pairs for one in pair):
        return None
    logs = [(math.log(one.throughput), math.log(two.throughput)) for one, two in pairs]
    within = statistics.variance([one - two for one, two in logs]) / 2
    if last == "within-cv":
        return 100 * math.sqrt(math.expm1(within))
    reach = {"between-boots": 0, "between-boots-low": -1, "between-boots-high": 1}.get(last)
    if reach is None or within <= 0:
        return None
    ratio = statistics.variance([one + two for one, two in logs]) / 2 / within
    ratio *= f_alike(_TAIL, len(pairs) - 1) ** reach if reach else 1
    return 100 * max(0.0, (ratio - 1) / (ratio + 1))


def _speeds(last: str, windows: Sequence[Counted]) -> float | None:
    gaps = [one.per_request.get("step-gap", ()) for one in windows]
    if not gaps or not all(gaps):
        return None
    if last == "two-speeds":
        return sum(
            100 * percentile(some, 0.95) >= _TWO_SPEEDS * percentile(some, 0.05) for some in gaps
        )
    if last in ("least-median", "greatest-median"):
        return (min if last == "least-median" else max)(map(statistics.median, gaps))
    return None


def _decided(path: Sequence[str], arm: str, runs: Sequence[RunCount]) -> str | None:
    """What all completed boots of the arm decided; all that they did where they differ."""
    found = set()
    for run in runs:
        for of, facts in run.decided.values():
            value: object = facts
            for key in path:
                value = value.get(key, "absent") if isinstance(value, dict) else "absent"
            if of == arm:
                found.add(str(value))
    return ", ".join(sorted(found)) or None
