"""The numbers that the project speaks of from the plans of compute capability 9.0.

Invariant: arms and windows are those of kit/plans/sm90-confounds.toml and sm90-shape8b.toml; a test
holds each claim to the plans. Spreads, latencies, shares and ratios of single factors need nothing
here: every study has them by its plan (analysis/claims.py). A study of these plans on another host
is another study: it has the same claims under its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol

from analysis.claiming import gpu_quantities as g
from analysis.claiming import quantities as q
from analysis.claiming import rankings as r
from analysis.claiming import repeats as again
from analysis.claiming.claim import Claim, Function
from analysis.goodput import QUANTITIES

_CONFOUNDS, _SHAPE = "sm90-confounds", "sm90-shape8b"
_THRESHOLDS_MS = (20, 25, 30, 40, 50, 75)
# Throughput is compared where there are most tokens, and so the least noise.
_AT = "c64"
# The same load again in the same boot, by a plain client.
_REPEAT = "c64-plain"
_LENGTHS = ("draft-n2", "draft", "draft-n8", "ngram", "none")
_SHAPE_LENGTHS = ("none", "n2", "bf16", "n8")
# The parts of what a comparison by KV dtype reads with FlashAttention 2 asked for.
_APART = (
    ("precision", "flashinfer-fp8", "flashinfer", "kv", "FP8 over BF16 KV, both on FlashInfer"),
    ("kernel", "flashinfer", "fa2-piecewise", "backend", "FlashInfer over FlashAttention 2, BF16"),
    ("graphs", "fa2-piecewise", "fa2", "graphs", "piecewise graphs over full ones, version 2"),
    ("precision-fa3", "fp8", "draft", "kv", "FP8 over BF16 KV at the default backend"),
)
# A measure, two arms, the factor that they differ in, a window.
_Compared = tuple[q.Measure, str, str, str, str]


class _Maker(Protocol):
    """Makes the claim of this name, text, function, unit and number of decimals for one study."""

    def __call__(
        self, name: str, text: str, function: Function, unit: str = "", digits: int = 0, /
    ) -> Claim: ...


def _decisions(claim: _Maker, flash: Iterable[str], other: Iterable[str]) -> Iterator[Claim]:
    """Backend and graphs of each arm; of those in `flash` the version of FlashAttention, too."""

    def decided(arm: str, name: str, text: str, *path: str) -> Claim:
        return claim(f"{name}.{arm}", f"{text}, arm {arm}", partial(q.decided, path, arm))

    for arm in (*flash, *other):
        yield decided(arm, "backend", "attention backend of the target", "target", "backend")
        yield decided(arm, "graphs", "CUDA-graph mode in effect", "cudagraph_effective")
    for arm in flash:
        version = "target", "flash_attention_version"
        yield decided(arm, "version", "FlashAttention version of the target", *version)


def _independence(claim: _Maker) -> Iterator[Claim]:
    yield claim(
        "backend.independent",
        "whether target and draft come to different backends when the target's alone is pinned",
        partial(q.chosen_apart, "flashinfer-target"),
    )


def _with_bounds(
    claim: _Maker, name: str, text: str, value: Function, bound: Callable[[str], Function]
) -> Iterator[Claim]:
    """A ratio and both ends of its interval; `bound`: the function of "low" or "high"."""
    yield claim(name, text, value, "", 3)
    yield claim(f"{name}-low", f"lower 95 % bound: {text}", bound("low"), "", 3)
    yield claim(f"{name}-high", f"upper 95 % bound: {text}", bound("high"), "", 3)


def _decomposition(claim: _Maker) -> Iterator[Claim]:
    def apart(
        name: str, text: str, ratio: Callable[..., float], one: str, two: str
    ) -> Iterator[Claim]:
        def bound(end: str) -> Function:
            return partial(g.uncontrolled_bound, end, q.throughput, one, two, _AT)

        return _with_bounds(claim, name, text, partial(ratio, q.throughput, one, two, _AT), bound)

    yield from apart(
        "kv.uncontrolled",
        "throughput ratio that a comparison by KV dtype alone reads, FlashAttention 2 asked for",
        g.uncontrolled_ratio,
        "fa2-fp8",
        "fa2",
    )
    for part, one, two, factor, text in _APART:
        arms = (q.throughput, one, two, factor, _AT)

        def bound(end: str, arms: _Compared = arms) -> Function:
            return partial(g.ratio_bound, end, *arms)

        ratio = partial(q.ratio, *arms)
        yield from _with_bounds(claim, f"kv.{part}", f"throughput ratio, {text}", ratio, bound)
    yield from apart(
        "kv.rest",
        "throughput ratio of two arms that come to one configuration: what the parts leave over",
        g.left_over_ratio,
        "fa2-fp8",
        "flashinfer-fp8",
    )


def _dispersion(claim: _Maker) -> Iterator[Claim]:
    for other in ("draft-eager", "ngram"):
        yield claim(
            f"spread.draft-over-{other}",
            f"CV of throughput over boots, arm draft over arm {other}, concurrency 64",
            partial(g.spread_ratio, q.throughput, "draft", other, _AT),
            "",
            2,
        )


def _inversion(claim: _Maker, arms: tuple[str, ...]) -> Iterator[Claim]:
    for quantity in QUANTITIES:
        yield claim(
            f"inversion.{quantity}",
            f"of the thresholds from 20 to 75 ms on {quantity}, those at which the arm with the "
            "highest throughput at concurrency 64 has not the most goodput",
            partial(r.thresholds_lost, quantity, _THRESHOLDS_MS, arms, _AT),
        )
    for quantity in ("p95-step-gap", "tpot.n-1"):
        yield claim(
            f"most-goodput.{quantity}.25ms",
            f"arm with the most goodput at concurrency 64, {quantity} of at most 25 ms",
            partial(r.most_goodput, quantity, 25, arms, _AT),
        )
    yield claim(
        "goodput-of-fastest",
        "the most goodput of the arm with the highest throughput at concurrency 64, objective on "
        "the p95 of step gaps, thresholds from 20 to 75 ms",
        partial(r.goodput_of_fastest, "p95-step-gap", _THRESHOLDS_MS, arms, _AT),
        "req/s",
        3,
    )


def _warm_up(claim: _Maker) -> Iterator[Claim]:
    for arm in ("draft", "draft-eager", "ngram", "none"):
        for which in ("first", "last"):
            yield claim(
                f"jit.{arm}.{which}",
                f"most kernels compiled in the {which} round of warm-up, over boots of arm {arm}",
                partial(g.kernels_compiled, which, arm),
            )


def _clients(claim: _Maker) -> Iterator[Claim]:
    for arm in ("draft", "ngram", "none"):
        where, both = f"arm {arm}, concurrency 64", (arm, _AT, _REPEAT)
        for quantity, name in (("step-gap", "step gap"), ("ttft.sent", "TTFT from sending")):
            yield claim(
                f"plain-client.{arm}.{quantity}",
                f"p95 {name} by a plain client minus that by the kit's on the same boots, what the "
                f"engine did differently in the two windows included, {where}",
                partial(g.peer_excess_ms, quantity, *both),
                "ms",
                2,
            )
        for quantity, name in (("whole", "end-to-end time"), ("ttft.sent", "TTFT from sending")):
            over = f"mean {name}, over the server's own clock"
            for window, who in ((_AT, "kit"), (_REPEAT, "plain")):
                yield claim(
                    f"over-server.{arm}.{who}.{quantity}",
                    f"{over}, by the {who} client, {where}",
                    partial(g.over_server_ms, quantity, arm, window),
                    "ms",
                    2,
                )
            yield claim(
                f"plain-client.{arm}.{quantity}.over-server",
                f"{over}: the plain client's minus the kit's on the same boots, {where}",
                partial(g.peer_over_server_ms, quantity, *both),
                "ms",
                2,
            )
            yield claim(
                f"plain-client.{arm}.{quantity}.boots-to-tell",
                f"boots that tell the mean of that difference from nothing, {name}, {where}",
                partial(g.boots_to_tell_peer, quantity, *both),
            )


def _repeats(claim: _Maker) -> Iterator[Claim]:
    """Of the load that each boot measures twice: what tells boots apart, and what does not."""
    for arm in ("draft", "draft-eager", "ngram", "none", "fa2", "fa2-fp8"):
        where, both = f"arm {arm}, concurrency 64", (arm, _AT, _REPEAT)
        yield claim(
            f"repeat.{arm}.throughput",
            f"output throughput of the second window of each boot, of the same load, {where}",
            partial(again.repeat_throughput, *both),
            "tok/s",
            2,
        )
        yield claim(
            f"repeat.{arm}.within-cv",
            f"CV of throughput over windows of one boot, {where}",
            partial(again.within_boots_percent, *both),
            "%",
            2,
        )
        for end, text in (("", ""), ("low", "lower 95 % bound: "), ("high", "upper 95 % bound: ")):
            yield claim(
                f"repeat.{arm}.between-boots{f'-{end}' if end else ''}",
                f"{text}part of the variance of throughput that lies between boots, the rest "
                f"between the two windows of one boot, {where}",
                partial(again.between_boots_percent, end, *both),
                "%",
                1,
            )
        alone = f"arm {arm}, concurrency 1"
        for end in ("least", "greatest"):
            yield claim(
                f"speed.{arm}.{end}-median",
                f"{end} median step gap of a boot, {alone}",
                partial(again.median_gap_ms, end, arm, "c1"),
                "ms",
                1,
            )
        yield claim(
            f"speed.{arm}.two-speeds",
            f"boots within whose window the p95 of step gaps is at least 1.5 times the p5, {alone}",
            partial(again.boots_of_two_speeds, 150, arm, "c1"),
        )
        for end in ("fastest", "slowest"):
            yield claim(
                f"pace.{arm}.{end}",
                f"{end} time of a fixed piece of work before and after windows, {where}",
                partial(again.pace_ms, end, arm, _AT),
                "ms",
                2,
            )


def sm90_claims(prefix: str, study: str, plan_id: str) -> tuple[Claim, ...]:
    """Every claim of a study of one of these plans; none for another plan."""

    def claim(
        name: str, text: str, function: Function, unit: str = "", digits: int = 0, /
    ) -> Claim:
        return Claim(f"{prefix}.{name}", text, study, function, unit, digits)

    if plan_id == _CONFOUNDS:
        return (
            *_decisions(
                claim, ("draft", "fp8", "fa2"), ("fa2-fp8", "flashinfer", "flashinfer-fp8")
            ),
            *_independence(claim),
            *_decomposition(claim),
            *_dispersion(claim),
            *_inversion(claim, _LENGTHS),
            *_warm_up(claim),
            *_clients(claim),
            *_repeats(claim),
        )
    if plan_id == _SHAPE:
        return (*_decisions(claim, ("bf16", "kv8"), ()), *_inversion(claim, _SHAPE_LENGTHS))
    return ()


# Of these the project speaks: once they have evidence they must be cited somewhere.
_SPOKEN_OF = (
    "backend.draft",
    "backend.fp8",
    "backend.fa2",
    "backend.fa2-fp8",
    "backend.independent",
    "graphs.fa2",
    "graphs.fa2-fp8",
    "kv.uncontrolled",
    "kv.precision",
    "kv.kernel",
    "kv.graphs",
    "kv.precision-fa3",
    "spread.draft-over-draft-eager",
    "inversion.p95-step-gap",
    "inversion.tpot.n-1",
    "goodput-of-fastest",
    "jit.draft.first",
    "jit.draft.last",
    "plain-client.draft.step-gap",
    "plain-client.draft.whole.over-server",
)
_ALL = (
    *sm90_claims("sm90", _CONFOUNDS, _CONFOUNDS),
    *sm90_claims("sm90.shape8b", _SHAPE, _SHAPE),
)
SM90: tuple[Claim, ...] = tuple(
    claim for claim in _ALL if claim.id.removeprefix("sm90.").removeprefix("shape8b.") in _SPOKEN_OF
)
