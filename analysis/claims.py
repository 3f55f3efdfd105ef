"""Every number that paper, findings and README may print: id, function, records, unit, rounding.

Invariant: a number is printed through a claim or not at all. Two kinds: NAMED, the ones the
project speaks of, which must be cited somewhere once they have evidence; and those that every study
of paper/evidence.toml has by its plan, `<study>.<arm>.<window>.<quantity>` and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations

from analysis.answers import why_untold
from analysis.claiming import host_quantities as h
from analysis.claiming import needed
from analysis.claiming import quantities as q
from analysis.claiming import rankings as r
from analysis.claiming import window_states as w
from analysis.claiming.claim import Claim
from analysis.claiming.planned import has_steady, side_by_side
from analysis.claiming.sm90 import SM90, sm90_claims
from analysis.goodput import QUANTITIES
from records.plan import Arm, Plan

_L4 = "l4-confounds"
_L4_ARMS = ("draft-bf16-eager", "draft-bf16-graph", "ngram-bf16-graph", "none-bf16-graph")
_THRESHOLDS_MS = tuple(range(20, 80, 5))
_LATENCIES = (
    ("step-gap", "step gap", "ms"),
    ("tpot.n-1", "TPOT(n-1)", "ms/token"),
    ("tpot.n-k1", "TPOT(n-k1)", "ms/token"),
    ("ntpot", "NTPOT", "ms/token"),
)


def _backend(kv: str, arm: str) -> Claim:
    return Claim(
        f"backend.{kv}",
        f"effective attention backend of the target at {kv} KV",
        _L4,
        partial(q.decided, ("target", "backend"), arm),
        "",
        0,
    )


def _dispersion(name: str, arm: str) -> Claim:
    return Claim(
        f"dispersion.{name}.cv",
        f"CV of throughput over boots, arm {arm}, concurrency 64",
        _L4,
        partial(q.cv_percent, q.throughput, arm, "c64"),
        "%",
        2,
    )


# The same ids as in paper/published.toml, each by this kit's own records. Evidence for them comes
# with a run of l4-confounds; until then they cannot be cited. Those of the SM90 plans follow them.
NAMED: tuple[Claim, ...] = (
    *SM90,
    _backend("bf16", "draft-bf16-graph"),
    _backend("fp8", "draft-fp8-graph"),
    Claim(
        "backend.independent",
        "whether target and draft come to different backends when the target's alone is pinned",
        _L4,
        partial(q.chosen_apart, "draft-bf16-target-pinned"),
        "",
        0,
    ),
    _dispersion("graph", "draft-bf16-graph"),
    _dispersion("eager", "draft-bf16-eager"),
    _dispersion("ngram", "ngram-bf16-graph"),
    Claim(
        "acceptance.cv",
        "CV of acceptance length over boots, arm draft-bf16-graph, concurrency 64",
        _L4,
        partial(q.cv_percent, q.acceptance_length, "draft-bf16-graph", "c64"),
        "%",
        2,
    ),
    Claim(
        "goodput.inversion",
        "the most goodput of the arm with the highest throughput at concurrency 64, objective on "
        "the p95 of step gaps, thresholds from 20 to 75 ms",
        _L4,
        partial(r.goodput_of_fastest, "p95-step-gap", _THRESHOLDS_MS, _L4_ARMS, "c64"),
        "req/s",
        3,
    ),
)


def arms_of_claims(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The arms of the plan that each named claim of it is made of, in the plan's order."""
    found = {}
    for claim in NAMED:
        if claim.study == plan.id:
            used = set(_words(claim.function))
            found[claim.id] = tuple(arm.id for arm in plan.arms if arm.id in used)
    return found


def _words(value: object) -> Iterator[str]:
    """Every text that is bound in a claim's function, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, partial):
        for one in (*value.args, *value.keywords.values()):
            yield from _words(one)
    elif isinstance(value, tuple):
        for one in value:
            yield from _words(one)


def claims_of(study: str, plan: Plan) -> tuple[Claim, ...]:
    """The claims that a study has by its plan: for each arm, window, pair of arms, concurrency.

    What the plan itself rules out is none (`analysis.claiming.planned`).
    """
    return (
        *_conduct(study, plan),
        *[c for arm in plan.arms for w in _windows(plan) for c in _cell(study, plan, arm, w)],
        *_pairs(study, plan),
        *_rankings(study, plan),
        *_calibrations(study, plan),
        *_hosts(study),
        *_states(study, plan),
        *sm90_claims(study, study, plan.id),
    )


def _windows(plan: Plan) -> tuple[str, ...]:
    """The windows that the kit's own client measures."""
    return tuple(window.id for window in plan.windows if not window.by_peer)


def _fixed_windows(plan: Plan) -> frozenset[str]:
    """Those of them in which the answers of boots and arms may be held against each other."""
    return frozenset(w.id for w in plan.windows if not w.by_peer and not why_untold(w))


def _steady_windows(plan: Plan) -> frozenset[str]:
    """Those of them in which a request can come after the ramp; latencies are of such alone."""
    return frozenset(w.id for w in plan.windows if not w.by_peer and has_steady(w))


def _cell(study: str, plan: Plan, arm: Arm, window: str) -> Iterator[Claim]:
    prefix, where = f"{study}.{arm.id}.{window}", f"arm {arm.id}, window {window}"

    def claim(name: str, text: str, function: q.Statistic, unit: str, digits: int) -> Claim:
        bound = partial(function, arm.id, window)
        return Claim(f"{prefix}.{name}", f"{text}, {where}", study, bound, unit, digits)

    yield from _spread(claim, "throughput", "output throughput", q.throughput, "tok/s", 2)
    yield claim(
        "throughput.boots-to-find-10",
        "boots an arm that find a difference of 10 % in output throughput with a chance of 80 %",
        partial(needed.boots_to_find, 10),
        "",
        0,
    )
    yield claim(
        "throughput.boots-to-repeat",
        "boots of which another study finds the CV of output throughput within 50 %, with 80 %",
        partial(needed.boots_to_repeat, 50),
        "",
        0,
    )
    if arm.speculative_config:
        yield from _spread(
            claim, "acceptance", "acceptance length", q.acceptance_length, "tokens/step", 4
        )
        yield claim(
            "acceptance.distinct",
            "different counts of drafts and accepted tokens among the boots",
            q.distinct_acceptances,
            "",
            0,
        )
    if window in _fixed_windows(plan):
        yield claim(
            "texts.prompts", "prompts that completed requests sent", q.prompts_answered, "", 0
        )
        yield claim(
            "texts.distinct",
            "different answers over all boots, as many as prompts where all boots answered alike",
            q.distinct_answers,
            "",
            0,
        )
    for id_, name, unit in _LATENCIES if window in _steady_windows(plan) else ():
        measure = partial(q.p95_ms, id_)
        yield claim(
            f"{id_}.p95",
            f"median over boots of the p95 {name}",
            partial(q.median, measure),
            unit,
            2,
        )
    for quantity in QUANTITIES:
        for threshold_ms in plan.thresholds_ms:
            yield claim(
                f"meeting.{quantity}.{threshold_ms}ms",
                f"share of requests with {quantity} of at most {threshold_ms} ms",
                partial(q.compliant_percent, quantity, threshold_ms),
                "%",
                1,
            )


def _spread(
    claim: q.Maker, name: str, text: str, measure: q.Measure, unit: str, digits: int
) -> Iterator[Claim]:
    yield claim(
        f"{name}.mean", f"mean over boots of {text}", partial(q.mean, measure), unit, digits
    )
    for suffix, what, function in (
        ("cv", "CV over boots", q.cv_percent),
        ("cv-low", "lower 95 % bound of the CV over boots", q.cv_low_percent),
        ("cv-high", "upper 95 % bound of the CV over boots", q.cv_high_percent),
    ):
        yield claim(f"{name}.{suffix}", f"{what} of {text}", partial(function, measure), "%", 2)


def _pairs(study: str, plan: Plan) -> Iterator[Claim]:
    for one, two, factor in compared_pairs(plan):
        for window in _windows(plan):
            if side_by_side(plan, (one, two)):
                yield from _compared(study, plan, one, two, factor, window)
            if window in _fixed_windows(plan):
                yield from _answered(study, one, two, window)


def _compared(
    study: str, plan: Plan, one: Arm, two: Arm, factor: str, window: str
) -> Iterator[Claim]:
    where = f"{one.id} over {two.id} (factor {factor}), window {window}"
    prefix = f"{study}.{one.id}-vs-{two.id}.{window}"
    arms = (one.id, two.id, factor, window)
    yield Claim(
        f"{prefix}.throughput.ratio",
        f"ratio of mean output throughput, {where}",
        study,
        partial(q.ratio, q.throughput, *arms),
        "",
        3,
    )
    if one.speculative_config and two.speculative_config:
        yield Claim(
            f"{prefix}.acceptance.ratio",
            f"ratio of mean acceptance length, {where}",
            study,
            partial(q.ratio, q.acceptance_length, *arms),
            "",
            3,
        )
    for id_, name, unit in _LATENCIES if window in _steady_windows(plan) else ():
        yield Claim(
            f"{prefix}.{id_}.p95.difference",
            f"difference of the median p95 {name}, {where}",
            study,
            partial(q.p95_difference_ms, id_, *arms),
            unit,
            2,
        )


def _answered(study: str, one: Arm, two: Arm, window: str) -> Iterator[Claim]:
    for name, text, function in (
        ("same", "the very same tokens in every request", q.same_answers),
        ("other", "other tokens in at least one request", q.other_answers),
    ):
        yield Claim(
            f"{study}.{one.id}-vs-{two.id}.{window}.texts.{name}",
            f"prompts that {one.id} and {two.id} answered with {text}, window {window}",
            study,
            partial(function, one.id, two.id, window),
            "",
            0,
        )


def _rankings(study: str, plan: Plan) -> Iterator[Claim]:
    if not side_by_side(plan, plan.arms):
        return
    arms = tuple(sorted(arm.id for arm in plan.arms))
    for window in _windows(plan):
        prefix = f"{study}.{window}"
        yield Claim(
            f"{prefix}.fastest",
            f"arm with the highest mean output throughput, window {window}",
            study,
            partial(r.fastest, arms, window),
            "",
            0,
        )
        for id_, name, _ in _LATENCIES if window in _steady_windows(plan) else ():
            yield Claim(
                f"{prefix}.{id_}.least",
                f"arm with the least median p95 {name}, window {window}",
                study,
                partial(r.least_p95, id_, arms, window),
                "",
                0,
            )


def _calibrations(study: str, plan: Plan) -> Iterator[Claim]:
    for concurrency in sorted({window.load.concurrency for window in plan.windows}):
        yield Claim(
            f"{study}.calibration.{concurrency}.p99",
            f"p99 error of the client's stamps at concurrency {concurrency}, worst of the study",
            study,
            partial(q.calibrated_p99_us, concurrency),
            "µs",
            1,
        )


def _hosts(study: str) -> Iterator[Claim]:
    for name, text, function, unit in (
        ("worth", "work that the engine's do at once", h.processors_worth, "processors"),
        ("beside-client", "times as long beside the client, slowest pair", h.beside_the_client, ""),
    ):
        id_, where = f"{study}.host.processors.{name}", "worst of the study"
        yield Claim(id_, f"processors of the host: {text}, {where}", study, function, unit, 2)


def _states(study: str, plan: Plan) -> Iterator[Claim]:
    """Of plans that need a GPU."""
    if not plan.requirements.compute_capability:
        return
    every = "of any window, void ones included"
    for name, text, function, unit, digits in (
        ("gpu.power-peak", "most power that a GPU was sampled at", w.power_peak_w, "W", 1),
        (
            "gpu.clock-lowest",
            "lowest clock that a GPU's multiprocessors were sampled at",
            partial(w.sampled, "least", "sm_clock_mhz"),
            "MHz",
            0,
        ),
        (
            "gpu.clock-highest",
            "highest clock that a GPU's multiprocessors were sampled at",
            partial(w.sampled, "greatest", "sm_clock_mhz"),
            "MHz",
            0,
        ),
        (
            "thread.waited-most",
            "share of a window that the engine's busiest thread waited for a processor, the most",
            w.thread_waited_percent,
            "%",
            2,
        ),
    ):
        yield Claim(f"{study}.{name}", f"{text}, {every}", study, function, unit, digits)
    for arm in plan.arms:
        yield Claim(
            f"{study}.{arm.id}.thread.ran",
            f"share of a window that the engine's busiest thread ran, median, arm {arm.id}",
            study,
            partial(w.thread_ran_percent, arm.id),
            "%",
            1,
        )


def _conduct(study: str, plan: Plan) -> Iterator[Claim]:
    for arm in ("", *[arm.id for arm in plan.arms]):
        prefix = f"{study}.{arm}" if arm else study
        where = f"arm {arm}" if arm else "all arms"
        for outcome in ("completed", "failed"):
            yield Claim(
                f"{prefix}.boots.{outcome}",
                f"planned boots that {outcome}, {where}",
                study,
                partial(q.boots_counted, outcome, arm),
                "",
                0,
            )
        yield Claim(
            f"{prefix}.windows.void",
            f"void windows of completed boots, {where}",
            study,
            partial(q.void_windows, arm),
            "",
            0,
        )


def compared_pairs(plan: Plan) -> Iterator[tuple[Arm, Arm, str]]:
    """Arms that are declared to differ in one factor, and which: those alone may be compared."""
    for one, two in combinations(sorted(plan.arms, key=lambda arm: arm.id), 2):
        factors = differing_factors(one, two)
        if len(factors) == 1:
            yield one, two, factors[0]


def differing_factors(one: Arm, two: Arm) -> tuple[str, ...]:
    """The declared factors in which two arms differ, in order of name."""
    names = sorted(one.factors.keys() | two.factors.keys())
    return tuple(name for name in names if one.factors.get(name) != two.factors.get(name))
