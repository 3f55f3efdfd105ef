"""Which answers the arms gave to the same prompts: a table, and notes where compared arms differ.

Invariant: only completed requests of usable windows whose prompts are fixed and whose sampling is
greedy. There two answers differ by the engine's arithmetic alone, and from the first other token on
all that follows is another text, with another acceptance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analysis.answers import Agreement, Answers, agreement, together, why_untold
from analysis.claims import compared_pairs
from analysis.metrics import WindowMetrics
from analysis.plan_order import PlanOrder, by_arm, by_window
from analysis.reading import Run
from analysis.table import MISSING, Column, Table, words
from records.plan import Arm, Plan

# So many pairs of arms have a sentence each.
_SENTENCES = 3
_Cells = dict[tuple[str, str], list[WindowMetrics]]


def texts_table(runs: Sequence[Run], metrics: Sequence[WindowMetrics]) -> Table:
    """Answers by arm and window, and how many are those of the reference arm.

    `runs`: of one plan; `metrics`: of their usable windows.
    """
    plans = _plans(runs)
    cells = _cells(metrics)
    arms = list({arm.id: arm for plan in plans for arm in plan.arms}.values())
    rows = []
    for (arm, window), group in cells.items():
        found = _answers(group)
        reference = _reference(arms, window, cells)
        agreed = None
        if reference != arm:
            agreed = agreement(found, _answers(cells[reference, window]))
        rows.append(
            (
                arm,
                window,
                str(len(group)),
                str(found.prompts) if found.told else MISSING,
                str(found.distinct) if found.told else MISSING,
                str(agreed.same) if agreed else MISSING,
                str(agreed.compared) if agreed else MISSING,
                MISSING if reference == arm else reference,
            )
        )
    return Table(
        "texts",
        "Answers to the same prompts, by arm",
        (
            (
                "Greedy sampling and fixed prompts alone. Prompts: those that a completed request "
                "sent. Answers: different ones over all boots, by the digest of their token ids: "
                "as many as prompts where every boot answered alike."
            ),
            (
                "Same: prompts that both arms answered with the very same tokens in every request "
                "of every boot, of those compared, which both answered. Reference: the arm without "
                "speculation, else the first of the plan, that has usable windows; it is not held "
                "against itself."
            ),
            (
                "Arithmetic in another order (other kernels, graphs, batches) may make another "
                "token the likeliest, and then all that follows is another text."
            ),
            *_left_out(plans),
        ),
        (
            *words("arm", "window"),
            Column("boots"),
            Column("prompts"),
            Column("answers"),
            Column("same"),
            Column("compared"),
            *words("reference"),
        ),
        tuple(rows),
    )


def different_texts(runs: Sequence[Run], metrics: Sequence[WindowMetrics]) -> tuple[str, ...]:
    """A sentence for each two arms that the plan compares and that answered prompts differently.

    Of many pairs one sentence names them all. Arguments as of `texts_table`.
    """
    plans = _plans(runs)
    order = PlanOrder(plans)
    pairs = {(one.id, two.id) for plan in plans for one, two, _ in compared_pairs(plan)}
    listed = sorted(pairs, key=lambda pair: (order.arm(pair[0]), order.arm(pair[1])))
    found = list(_apart(listed, metrics))
    if len(found) <= _SENTENCES:
        return tuple(f"A{_sentence(*one)[1:]}." for one in found)
    named = "; ".join(f"{one} and {two} {told}" for one, two, told in found)
    return (
        (
            "Compared arms that answered with other tokens, so that their acceptance and latency "
            f"are of different texts: {named}."
        ),
    )


def arms_apart(pairs: Iterable[tuple[str, str]], metrics: Sequence[WindowMetrics]) -> Iterator[str]:
    """Each pair of arms that answered any prompt of any of these windows differently, in words."""
    return (_sentence(*one) for one in _apart(pairs, metrics))


def _sentence(one: str, two: str, told: str) -> str:
    return (
        f"arms {one} and {two} answered {told} with other tokens: "
        "their acceptance and latency are of different texts"
    )


def _apart(
    pairs: Iterable[tuple[str, str]], metrics: Sequence[WindowMetrics]
) -> Iterator[tuple[str, str, str]]:
    """Both arms, and how many prompts of which windows they answered differently."""
    cells = {cell: _answers(group) for cell, group in _cells(metrics).items()}
    windows = dict.fromkeys(m.window for m in sorted(metrics, key=by_window))
    for one, two in pairs:
        found = [(w, agreement(cells.get((one, w)), cells.get((two, w)))) for w in windows]
        apart = [f"{_other(both)} (window {w})" for w, both in found if both and both.other]
        if apart:
            yield one, two, ", ".join(apart)


def apart_in_text(one: Sequence[WindowMetrics], two: Sequence[WindowMetrics]) -> str:
    """What sets two sides of one arm and window apart in their answers; "" where nothing does."""
    agreed = agreement(_answers(one), _answers(two)) if _told(one) and _told(two) else None
    if agreed is None or not agreed.other:
        return ""
    return (
        f"the two sides answered {_other(agreed)} with other tokens: "
        "acceptance and latency are of different texts"
    )


def _other(agreed: Agreement) -> str:
    plural = "" if agreed.compared == 1 else "s"
    return f"{agreed.other} of {agreed.compared} prompt{plural}"


def _told(windows: Iterable[WindowMetrics]) -> bool:
    return all(one.answers is not None for one in windows)


def _answers(windows: Iterable[WindowMetrics]) -> Answers:
    return together(one.answers for one in windows if one.answers is not None)


def _cells(metrics: Sequence[WindowMetrics]) -> _Cells:
    """Windows whose answers may be compared, by arm and window as the plan has them."""
    found: _Cells = {}
    for one in sorted(metrics, key=by_arm):
        if one.answers is not None:
            found.setdefault((one.arm, one.window), []).append(one)
    return found


def _reference(arms: Sequence[Arm], window: str, cells: _Cells) -> str:
    """The arm that the others are held against in this window, which some arm has."""
    usable = [arm for arm in arms if (arm.id, window) in cells]
    plain = [arm for arm in usable if not arm.speculative_config]
    return (plain or usable)[0].id


def _plans(runs: Sequence[Run]) -> list[Plan]:
    # Plans have no hash: there are maps in them.
    found: list[Plan] = []
    for run in runs:
        if run.started.plan not in found:
            found.append(run.started.plan)
    return found


def _left_out(plans: Sequence[Plan]) -> Iterator[str]:
    windows = {w.id: why_untold(w) for plan in plans for w in plan.windows if not w.by_peer}
    told = [f"{id_} ({why})" for id_, why in windows.items() if why]
    if told:
        yield f"Left out: {', '.join(told)}."
