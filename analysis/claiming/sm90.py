"""The numbers that the project speaks of from the plans of compute capability 9.0.

Invariant: arms and windows are those of kit/plans/sm90-confounds.toml and sm90-shape8b.toml; a test
holds each claim to the plans. Spreads, latencies, shares and ratios of single factors need nothing
here: every study has them by its plan (analysis/claims.py). A study of these plans on another host
is another study: it has the same claims under its own name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

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
_LENGTHS = ("draft-n2", "draft", "draft-n8", "ngram", "none")
_SHAPE_LENGTHS = ("none", "n2", "bf16", "n8")
# The parts of what a comparison by KV dtype reads with FlashAttention 2 asked for.
_APART = (
    ("precision", "flashinfer-fp8", "flashinfer", "kv", "FP8 over BF16 KV, both on FlashInfer"),
    ("kernel", "flashinfer", "fa2-piecewise", "backend", "FlashInfer over FlashAttention 2, BF16"),
    ("graphs", "fa2-piecewise", "fa2", "graphs", "piecewise graphs over full ones, version 2"),
    ("precision-fa3", "fp8", "draft", "kv", "FP8 over BF16 KV at the default backend"),
)


def _decisions(prefix: str, study: str) -> Iterator[Claim]:
    def decided(name: str, text: str, path: tuple[str, ...], arm: str) -> Claim:
        function = partial(q.decided, path, arm)
        return Claim(f"{prefix}.{name}", f"{text}, arm {arm}", study, function, "", 0)

    for arm in ("draft", "fp8", "fa2", "fa2-fp8", "flashinfer", "flashinfer-fp8"):
        yield decided(
            f"backend.{arm}", "attention backend of the target", ("target", "backend"), arm
        )
        yield decided(f"graphs.{arm}", "CUDA-graph mode in effect", ("cudagraph_effective",), arm)
    for arm in ("draft", "fp8", "fa2"):
        yield decided(
            f"version.{arm}",
            "FlashAttention version of the target",
            ("target", "flash_attention_version"),
            arm,
        )
    yield Claim(
        f"{prefix}.backend.independent",
        "whether target and draft come to different backends when the target's alone is pinned",
        study,
        partial(q.chosen_apart, "flashinfer-target"),
        "",
        0,
    )


def _with_bounds(
    name: str, text: str, study: str, value: Function, low: Function, high: Function
) -> Iterator[Claim]:
    yield Claim(name, text, study, value, "", 3)
    yield Claim(f"{name}-low", f"lower 95 % bound: {text}", study, low, "", 3)
    yield Claim(f"{name}-high", f"upper 95 % bound: {text}", study, high, "", 3)


def _decomposition(prefix: str, study: str) -> Iterator[Claim]:
    naive = (q.throughput, "fa2-fp8", "fa2", _AT)
    yield from _with_bounds(
        f"{prefix}.kv.uncontrolled",
        "throughput ratio that a comparison by KV dtype alone reads, FlashAttention 2 asked for",
        study,
        partial(g.uncontrolled_ratio, *naive),
        partial(g.uncontrolled_bound, "low", *naive),
        partial(g.uncontrolled_bound, "high", *naive),
    )
    for part, first, second, factor, text in _APART:
        arms = (q.throughput, first, second, factor, _AT)
        yield from _with_bounds(
            f"{prefix}.kv.{part}",
            f"throughput ratio, {text}",
            study,
            partial(q.ratio, *arms),
            partial(g.ratio_bound, "low", *arms),
            partial(g.ratio_bound, "high", *arms),
        )
    same = (q.throughput, "fa2-fp8", "flashinfer-fp8", _AT)
    yield from _with_bounds(
        f"{prefix}.kv.rest",
        "throughput ratio of two arms that come to one configuration: what the parts leave over",
        study,
        partial(g.left_over_ratio, *same),
        partial(g.uncontrolled_bound, "low", *same),
        partial(g.uncontrolled_bound, "high", *same),
    )


def _dispersion(prefix: str, study: str) -> Iterator[Claim]:
    for other in ("draft-eager", "ngram"):
        yield Claim(
            f"{prefix}.spread.draft-over-{other}",
            f"CV of throughput over boots, arm draft over arm {other}, concurrency 64",
            study,
            partial(g.spread_ratio, q.throughput, "draft", other, _AT),
            "",
            2,
        )


def _inversion(prefix: str, study: str, arms: tuple[str, ...]) -> Iterator[Claim]:
    for quantity in QUANTITIES:
        yield Claim(
            f"{prefix}.inversion.{quantity}",
            f"of the thresholds from 20 to 75 ms on {quantity}, those at which the arm with the "
            "highest throughput at concurrency 64 has not the most goodput",
            study,
            partial(r.thresholds_lost, quantity, _THRESHOLDS_MS, arms, _AT),
            "",
            0,
        )
    for quantity in ("p95-step-gap", "tpot.n-1"):
        yield Claim(
            f"{prefix}.most-goodput.{quantity}.25ms",
            f"arm with the most goodput at concurrency 64, {quantity} of at most 25 ms",
            study,
            partial(r.most_goodput, quantity, 25, arms, _AT),
            "",
            0,
        )
    yield Claim(
        f"{prefix}.goodput-of-fastest",
        "the most goodput of the arm with the highest throughput at concurrency 64, objective on "
        "the p95 of step gaps, thresholds from 20 to 75 ms",
        study,
        partial(r.goodput_of_fastest, "p95-step-gap", _THRESHOLDS_MS, arms, _AT),
        "req/s",
        3,
    )


def _warm_up(prefix: str, study: str) -> Iterator[Claim]:
    for arm in ("draft", "draft-eager", "ngram", "none"):
        for which in ("first", "last"):
            yield Claim(
                f"{prefix}.jit.{arm}.{which}",
                f"most kernels compiled in the {which} round of warm-up, over boots of arm {arm}",
                study,
                partial(g.kernels_compiled, which, arm),
                "",
                0,
            )


def _clients(prefix: str, study: str) -> Iterator[Claim]:
    for arm in ("draft", "ngram", "none"):
        for quantity, name in (("step-gap", "step gap"), ("ttft.sent", "TTFT from sending")):
            yield Claim(
                f"{prefix}.plain-client.{arm}.{quantity}",
                f"p95 {name} by a plain client minus that by the kit's on the same boots, what the "
                f"engine did differently in the two windows included, arm {arm}, concurrency 64",
                study,
                partial(g.peer_excess_ms, quantity, arm, _AT, f"{_AT}-plain"),
                "ms",
                2,
            )
        for quantity, name in (("whole", "end-to-end time"), ("ttft.sent", "TTFT from sending")):
            over = f"mean {name}, over the server's own clock"
            where = f"arm {arm}, concurrency 64"
            for window, who in ((_AT, "kit"), (f"{_AT}-plain", "plain")):
                yield Claim(
                    f"{prefix}.over-server.{arm}.{who}.{quantity}",
                    f"{over}, by the {who} client, {where}",
                    study,
                    partial(g.over_server_ms, quantity, arm, window),
                    "ms",
                    2,
                )
            yield Claim(
                f"{prefix}.plain-client.{arm}.{quantity}.over-server",
                f"{over}: the plain client's minus the kit's on the same boots, {where}",
                study,
                partial(g.peer_over_server_ms, quantity, arm, _AT, f"{_AT}-plain"),
                "ms",
                2,
            )
            yield Claim(
                f"{prefix}.plain-client.{arm}.{quantity}.boots-to-tell",
                f"boots that tell the mean of that difference from nothing, {name}, {where}",
                study,
                partial(g.boots_to_tell_peer, quantity, arm, _AT, f"{_AT}-plain"),
                "",
                0,
            )


def _repeats(prefix: str, study: str) -> Iterator[Claim]:
    """Of the load that each boot measures twice: what tells boots apart, and what does not."""
    repeat = f"{_AT}-plain"
    for arm in ("draft", "draft-eager", "ngram", "none", "fa2", "fa2-fp8"):
        where = f"arm {arm}, concurrency 64"
        yield Claim(
            f"{prefix}.repeat.{arm}.throughput",
            f"output throughput of the second window of each boot, of the same load, {where}",
            study,
            partial(again.repeat_throughput, arm, _AT, repeat),
            "tok/s",
            2,
        )
        yield Claim(
            f"{prefix}.repeat.{arm}.within-cv",
            f"CV of throughput over windows of one boot, {where}",
            study,
            partial(again.within_boots_percent, arm, _AT, repeat),
            "%",
            2,
        )
        for end, text in (("", ""), ("low", "lower 95 % bound: "), ("high", "upper 95 % bound: ")):
            yield Claim(
                f"{prefix}.repeat.{arm}.between-boots{f'-{end}' if end else ''}",
                f"{text}part of the variance of throughput that lies between boots, the rest "
                f"between the two windows of one boot, {where}",
                study,
                partial(again.between_boots_percent, end, arm, _AT, repeat),
                "%",
                1,
            )
        for end in ("least", "greatest"):
            yield Claim(
                f"{prefix}.speed.{arm}.{end}-median",
                f"{end} median step gap of a boot, arm {arm}, concurrency 1",
                study,
                partial(again.median_gap_ms, end, arm, "c1"),
                "ms",
                1,
            )
        yield Claim(
            f"{prefix}.speed.{arm}.two-speeds",
            "boots within whose window the p95 of step gaps is at least 1.5 times the p5, "
            f"arm {arm}, concurrency 1",
            study,
            partial(again.boots_of_two_speeds, 150, arm, "c1"),
            "",
            0,
        )
        for end in ("fastest", "slowest"):
            yield Claim(
                f"{prefix}.pace.{arm}.{end}",
                f"{end} time of a fixed piece of work before and after windows, {where}",
                study,
                partial(again.pace_ms, end, arm, _AT),
                "ms",
                2,
            )


def sm90_claims(prefix: str, study: str, plan_id: str) -> tuple[Claim, ...]:
    """Every claim of a study of one of these plans; none for another plan."""
    if plan_id == _CONFOUNDS:
        return (
            *_decisions(prefix, study),
            *_decomposition(prefix, study),
            *_dispersion(prefix, study),
            *_inversion(prefix, study, _LENGTHS),
            *_warm_up(prefix, study),
            *_clients(prefix, study),
            *_repeats(prefix, study),
        )
    if plan_id == _SHAPE:
        return tuple(_inversion(prefix, study, _SHAPE_LENGTHS))
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
