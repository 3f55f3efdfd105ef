"""Claims that hold or do not: which backend was chosen, and whether an objective is met at all.

Invariant: decided only where every boot says the same; a state that the engine did not log decides
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import stats

from analysis.claiming.reading import Reading
from analysis.comparing.decisions import decision
from analysis.comparing.verdict import Outcome
from analysis.goodput import Goodput
from analysis.metrics import WindowMetrics
from analysis.published import Published
from analysis.statistics.equivalence import log_ratio_errors
from records.errors import ClaimError

# How the abstract spells what the engine calls these.
_NAMES = {"FLASH_ATTN": "FlashAttention", "FLASHINFER": "FlashInfer"}
_LEAST_BOOTS = 2


@dataclass(frozen=True, slots=True)
class Found:
    """What the records say of a claim of kind, and whether it is what was published."""

    outcome: Outcome
    measured: str
    reason: str
    boots: int
    value: float | None = None


def chosen(published: Published, arm: str, reading: Reading) -> Found:
    """One decision of the engine, in every boot of the arm, held against the word published."""
    facts = [event.facts for event in reading.decisions(arm)]
    name = backend_name if published.quantity == "target-backend" else chosen_apart
    found = sorted({name(fact) for fact in facts})
    shown, boots = " / ".join(word or "unlogged" for word in found), len(facts)
    if len(found) > 1:
        return Found("inconclusive", shown, "the boots of this arm did not decide alike", boots)
    if not found[0]:
        why = "the engine's log does not tell: it logs a choice once per distinct text"
        return Found("inconclusive", shown, why, boots)
    if found[0] == published.figure:
        return Found("reproduced", shown, f"as published, in {_every(boots)}", boots)
    why = f"published {published.figure}, here {shown} in {_every(boots)}"
    return Found("contradicted", shown, why, boots)


def backend_name(facts: Mapping[str, object]) -> str:
    """The target's backend as the abstract would spell it; "" where the log does not tell."""
    backend = decision(facts, "target.backend")
    if not backend.isupper():
        return ""
    version = decision(facts, "target.flash_attention_version")
    name = _NAMES.get(backend, backend)
    if name == "FlashAttention":
        return f"{name}-{version}" if version.isdecimal() else ""
    return name


def chosen_apart(facts: Mapping[str, object]) -> str:
    """Whether the draft came to another backend than the target; "" where it is not logged."""
    target, draft = decision(facts, "target.backend"), decision(facts, "draft.backend")
    if not (draft.isupper() and target.isupper()):
        return ""
    return "yes" if draft != target else "no"


def none_meets(published: Published, arms: Sequence[str], window: str, reading: Reading) -> Found:
    """Whether no request of the fastest arm meets the objective where some of another arm do.

    An arm whose throughput cannot be told from that of the fastest (one-sided Welch test of the log
    ratio at 0.05) might be the fastest: then all of them must come out alike. A request that lies
    nearer to the threshold than the client's stamps are exact decides nothing.
    """
    quantity = published.quantity.removeprefix("goodput.")
    first, last = published.thresholds_ms
    found = reading.rank(arms, window)
    throughputs = {a: np.log([w.output_tokens_per_s for w in ws]) for a, ws in found.items()}
    fastest = max(sorted(found), key=lambda arm: float(throughputs[arm].mean()))
    boots = min(len(windows) for windows in found.values())
    met = {
        arm: [_met(window, quantity, first, last) for window in windows]
        for arm, windows in found.items()
    }
    rate = fmean(one.per_second for one in met[fastest])
    shown = f"{rate:.3f} req/s at {last} ms, arm {fastest}"
    if boots < _LEAST_BOOTS:
        return Found("inconclusive", shown, "an arm with one boot repeats nothing", boots, rate)
    tied = [arm for arm in found if not _slower(throughputs[arm], throughputs[fastest])]
    near = sum(one.possibly for arm in tied for one in met[arm] if not one.surely)
    outcomes = {(one.surely == 0) for arm in tied for one in met[arm]}
    others = [one.surely for arm in found if arm not in tied for one in met[arm]]
    might = f"{fastest} is the fastest" if len(tied) == 1 else f"any of {', '.join(tied)} may be"
    if near:
        why = f"{might}, and in a boot no request but {near} within the client's error may meet it"
        return Found("inconclusive", shown, why, boots, rate)
    if outcomes == {False}:
        why = f"{might}, and requests of it meet the objective in every boot"
        return Found("contradicted", shown, why, boots, rate)
    if len(outcomes) > 1:
        why = f"{might}: some boots have requests that meet the objective, others none"
        return Found("inconclusive", shown, why, boots, rate)
    if not any(others):
        why = f"{might} and meets it nowhere, but neither does another arm: no ranking is inverted"
        return Found("inconclusive", shown, why, boots, rate)
    why = f"{might} and meets it nowhere from {first} to {last} ms; slower arms do"
    return Found("reproduced", shown, why, boots, rate)


def _met(window: WindowMetrics, quantity: str, first: int, last: int) -> Goodput:
    """At the largest threshold, which is the easiest to meet."""
    thresholds = {
        round(one.threshold_ms): one for one in window.goodput if one.quantity == quantity
    }
    if first not in thresholds or last not in thresholds:
        raise ClaimError(f"the plan names no thresholds of {first} and {last} ms for {quantity}")
    return thresholds[last]


def _slower(one: np.ndarray, fastest: np.ndarray) -> bool:
    difference, error, free = map(float, log_ratio_errors(fastest, one))
    if error == 0:
        return difference > 0
    return float(stats.t.sf(difference / error, free)) <= 0.05


def _every(boots: int) -> str:
    return f"every one of {boots} boots" if boots > 1 else "the one boot"
