"""The quantities that claims print, computed a second time from what was counted of each run.

Invariant: as of audit/counted.py: nothing of analysis/ is used, and no numpy, so that no mistake
stands on both sides. What is not computed here is None, never a guess.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence

from audit import counted_states
from audit.counted import CLOCKS, Counted, RunCount
from audit.quantiles import chi_square
from audit.recount_within import within_boots

_NS_PER_S, _NS_PER_US = 1e9, 1e3
# Of the plans for compute capability 9.0: what is compared where there are most tokens.
_MOST = "c64"
_PARTS = {
    "uncontrolled": ("fa2-fp8", "fa2"),
    "precision": ("flashinfer-fp8", "flashinfer"),
    "kernel": ("flashinfer", "fa2-piecewise"),
    "graphs": ("fa2-piecewise", "fa2"),
    "precision-fa3": ("fp8", "draft"),
    "rest": ("fa2-fp8", "flashinfer-fp8"),
}
_LENGTHS = (("draft", "draft-n2", "draft-n8", "ngram", "none"), ("bf16", "n2", "n8", "none"))
# The ends of an interval of 95 %: chi-square stays below with this chance.
_BOUNDS = {"cv-low": 0.975, "cv-high": 0.025}
_THRESHOLDS_MS = (20, 25, 30, 40, 50, 75)


def value_of(claim_id: str, study: str, runs: Sequence[RunCount]) -> float | str | None:
    """What a claim of a study comes to; None for one whose words are not counted here.

    NaN where it is undefined of these records.
    """
    counts: tuple[Callable[[str, Sequence[RunCount]], float | str | None], ...]
    words = claim_id.removeprefix(f"{study}.")
    if words == claim_id:  # of the plans for compute capability 9.0, by their common name
        words = words.removeprefix("sm90.").removeprefix("shape8b.")
        counts = (_clocked, _taken_apart, _inverted, within_boots)
    else:
        counts = (_conduct, _ranked, _measured, _clocked, _taken_apart, _inverted, within_boots)
    for count in counts:
        try:
            value = count(words, runs)
        except ZeroDivisionError:  # undefined of these records: it equals no number
            return math.nan
        if value is not None:
            return value
    return None


def _conduct(words: str, runs: Sequence[RunCount]) -> float | None:
    arm, _, last = words.rpartition(".boots.") if ".boots." in words else ("", "", words)
    if words.startswith("boots."):
        arm, last = "", words.removeprefix("boots.")
    if ".boots." in words or words.startswith("boots."):
        ends = [end for run in runs for end in run.outcomes.values()]
        return sum(outcome == last and arm in ("", of) for of, outcome in ends)
    if words == "windows.void":
        return sum(sum(run.void.values()) for run in runs)
    if words.endswith(".windows.void"):
        return sum(run.void.get(words.removesuffix(".windows.void"), 0) for run in runs)
    if words.startswith("calibration.") and words.endswith(".p99"):
        concurrency = int(words.split(".")[1])
        return max(run.calibrated_ns.get(concurrency, 0) for run in runs) / _NS_PER_US
    if words == "host.processors.worth":
        return min(_told(one for run in runs for one in run.worths), default=None)
    if words == "host.processors.beside-client":
        return max(_told(one for run in runs for one in run.beside_client), default=None)
    return counted_states.value_of(words, (one for run in runs for one in run.states.values()))


def _told(values: Iterable[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def _ranked(words: str, runs: Sequence[RunCount]) -> str | None:
    """The arm that is first; by name where two are equal."""
    window, _, rank = words.partition(".")
    arms = sorted({arm for run in runs for arm in _arms(run)})
    of = _of_one_block(runs, [arm for arm in arms if any(_cell(runs, arm, window))], window)
    if rank == "fastest" and of:
        return max(of, key=lambda arm: statistics.fmean(w.throughput for w in of[arm]))
    if rank.endswith(".least") and of:
        name = rank.removesuffix(".least")
        return min(of, key=lambda arm: statistics.median(w.p95(name) for w in of[arm]))
    return None


def _measured(words: str, runs: Sequence[RunCount]) -> float | None:
    who, window, quantity = (*words.split(".", 2), "", "")[:3]
    of = {arm: [*_cell(runs, arm, window)] for run in runs for arm in _arms(run)}
    for one in of:
        for two in of:
            if who == f"{one}-vs-{two}":
                if quantity.startswith("texts."):
                    return _same_texts(quantity, of[one], of[two])
                beside = _of_one_block(runs, (one, two), window)
                return _pair(quantity, beside[one], beside[two]) if beside else None
    found = of.get(who)
    return _single(quantity, found) if found else None


def _taken_apart(words: str, runs: Sequence[RunCount]) -> float | None:
    """kv.<part>, a ratio of throughput; spread.<one>-over-<two>, one of its CVs."""
    what, _, rest = words.partition(".")
    pair = _PARTS.get(rest) if what == "kv" else tuple(rest.split("-over-"))
    if what not in ("kv", "spread") or pair is None or len(pair) != 2:
        return None
    beside = _of_one_block(runs, pair, _MOST)
    if not beside:
        return None
    quantity = "throughput.ratio" if what == "kv" else "throughput.cv"
    one, two = (beside[arm] for arm in pair)
    if what == "kv":
        return _pair(quantity, one, two)
    first, second = _single(quantity, one), _single(quantity, two)
    return first / second if first and second else None


def _inverted(words: str, runs: Sequence[RunCount]) -> float | str | None:
    """inversion.<quantity>; most-goodput.<quantity>.<n>ms; goodput-of-fastest."""
    what, _, quantity = words.partition(".")
    beside: dict[str, list[Counted]] = {}
    for arms in _LENGTHS:
        beside = beside or _of_one_block(runs, arms, _MOST)
    if not beside or what not in ("inversion", "most-goodput", "goodput-of-fastest"):
        return None
    order = sorted(beside)
    fastest = max(order, key=lambda arm: statistics.fmean(w.throughput for w in beside[arm]))
    if what == "goodput-of-fastest":
        return max(_goodput(beside[fastest], "p95-step-gap", at) for at in _THRESHOLDS_MS)
    if what == "most-goodput":
        quantity, _, threshold = quantity.removesuffix("ms").rpartition(".")
        rates = {arm: _goodput(beside[arm], quantity, int(threshold)) for arm in order}
        best = max(order, key=lambda arm: rates[arm])
        return best if rates[best] else "none"
    lost = 0
    for at in _THRESHOLDS_MS:
        rates = {arm: _goodput(beside[arm], quantity, at) for arm in order}
        lost += max(rates.values()) > rates[fastest]
    return lost


def _goodput(windows: Sequence[Counted], quantity: str, threshold_ms: int) -> float:
    """Requests per second that meet the objective, mean over boots."""
    return statistics.fmean(
        sum(value <= threshold_ms for value in w.objectives.get(quantity, ()))
        / (w.wall_ns / _NS_PER_S)
        for w in windows
    )


def _clocked(words: str, runs: Sequence[RunCount]) -> float | None:
    """over-server.<arm>.<kit or plain>.<quantity>; plain-client.<arm>.<quantity>.over-server."""
    windows = {"kit": "c64", "plain": "c64-plain"}
    what, _, rest = words.partition(".")
    arm, _, rest = rest.partition(".")
    if what == "over-server":
        who, _, quantity = rest.partition(".")
        found = _over_server(runs, arm, windows.get(who, ""), quantity)
        return _median(found.values())
    quantity, _, last = rest.rpartition(".")
    if (what, last) != ("plain-client", "over-server"):
        return None
    kit, plain = (_over_server(runs, arm, window, quantity) for window in windows.values())
    return _median([plain[boot] - kit[boot] for boot in plain if boot in kit])


def _over_server(
    runs: Sequence[RunCount], arm: str, window: str, quantity: str
) -> dict[tuple[int, str], float]:
    """By place of the run and boot."""
    if quantity not in CLOCKS:
        return {}
    return {
        (place, one.boot): one.over_server_ms(quantity)
        for place, run in enumerate(runs)
        for one in _cell([run], arm, window)
    }


def _median(values: Iterable[float]) -> float | None:
    """None of no values, or where one of them is not known."""
    found = list(values)
    return statistics.median(found) if found and not any(map(math.isnan, found)) else None


def _arms(run: RunCount) -> set[str]:
    return {window.arm for window in run.windows}


def _cell(runs: Iterable[RunCount], arm: str, window: str) -> Iterator[Counted]:
    for run in runs:
        for one in run.windows:
            if (one.arm, one.window) == (arm, window):
                yield one


def _of_one_block(
    runs: Iterable[RunCount], arms: Sequence[str], window: str
) -> dict[str, list[Counted]]:
    """Of each block of a run that holds all of these arms their windows; empty where none does.

    records/plan.py: arms are compared within the blocks that hold them all.
    """
    found: dict[str, list[Counted]] = {}
    for run in runs:
        holding: dict[int, set[str]] = {}
        beside = [one for one in run.windows if one.window == window and one.arm in arms]
        for one in beside:
            holding.setdefault(one.block, set()).add(one.arm)
        for one in beside:
            if len(holding[one.block]) == len(set(arms)):
                found.setdefault(one.arm, []).append(one)
    return found


def _single(quantity: str, windows: Sequence[Counted]) -> float | None:
    measures: dict[str, Callable[[Counted], float]] = {
        "throughput": lambda w: w.throughput,
        "acceptance": lambda w: w.acceptance,
    }
    name, _, what = quantity.partition(".")
    if name in measures and what in ("mean", "cv", *_BOUNDS):
        values = [measures[name](window) for window in windows]
        mean = statistics.fmean(values)
        if what == "mean":
            return mean
        cv = statistics.stdev(values) / mean
        return 100 * (_cv_bound(cv, len(values), _BOUNDS[what]) if what in _BOUNDS else cv)
    if quantity == "acceptance.distinct":
        return len({(w.drafts, w.accepted) for w in windows})
    if quantity in ("texts.prompts", "texts.distinct"):
        texts = _texts(windows)
        return len(texts) if quantity == "texts.prompts" else sum(map(len, texts.values()))
    if quantity.startswith("meeting.") and quantity.endswith("ms"):
        name, _, threshold = quantity.removeprefix("meeting.").removesuffix("ms").rpartition(".")
        values = [value for w in windows for value in w.objectives.get(name, ())]
        return 100 * sum(v <= int(threshold) for v in values) / len(values) if values else None
    if quantity.endswith(".p95"):
        return statistics.median(w.p95(quantity.removesuffix(".p95")) for w in windows)
    return None


def _cv_bound(cv: float, boots: int, share: float) -> float:
    """An end of the interval of M. G. Vangel, The American Statistician 50 (1996) 21-26."""
    chi = chi_square(share, boots - 1)
    square = ((chi + 2) / boots - 1) * cv**2 + chi / (boots - 1)
    return cv / math.sqrt(square) if square > 0 else math.inf


def _texts(windows: Iterable[Counted]) -> dict[int, set[str]]:
    """Prompt -> all that it was answered with."""
    found: dict[int, set[str]] = {}
    for window in windows:
        for asked, answers in window.answers.items():
            found.setdefault(asked, set()).update(answers)
    return found


def _pair(quantity: str, one: Sequence[Counted], two: Sequence[Counted]) -> float | None:
    if quantity == "throughput.ratio":
        first, second = (statistics.fmean(w.throughput for w in side) for side in (one, two))
        return first / second
    if quantity == "acceptance.ratio":
        first, second = (statistics.fmean(w.acceptance for w in side) for side in (one, two))
        return first / second
    if quantity.endswith(".p95.difference"):
        name = quantity.removesuffix(".p95.difference")
        first, second = (statistics.median(w.p95(name) for w in side) for side in (one, two))
        return first - second
    return None


def _same_texts(quantity: str, one: Sequence[Counted], two: Sequence[Counted]) -> int:
    """Of all blocks of each: the likeliest token does not change with a host's speed."""
    here, there = _texts(one), _texts(two)
    alike = [len(here[asked] | there[asked]) == 1 for asked in here if asked in there]
    return alike.count(quantity == "texts.same")
