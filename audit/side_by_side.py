"""Where acceptance of two arms is set side by side whose texts differ, and nothing says so.

Invariant: arms are held to what they answered in the very windows that are spoken of; where that is
not known (prompts of their own, tokens drawn at random) nothing is said.

Set side by side is what one claim compares, and what one finding, or one paragraph elsewhere, cites
of two arms in one window, be it of one study or of two studies of a plan. A table that lists arms
is no sentence about them. It is said where the same document cites how many prompts the two
answered alike, or otherwise: of the two, or of each with the same third arm, in any study of the
plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from analysis.claiming.claim import Value
from analysis.claiming.documents import Citation, Document
from analysis.claiming.evaluation import Evaluation
from analysis.claiming.quantities import other_answers, same_answers
from analysis.texts import arms_apart
from audit.paper import PaperView

_ACCEPTANCE_UNIT = "tokens/step"
_FINDINGS = "paper/findings/"
_TABLE_BEGINS, _TABLE_ENDS = "\\begin{tabular", "\\end{tabular"


@dataclass(frozen=True, order=True, slots=True)
class Side:
    """One arm of one study."""

    arm: str
    study: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arms in one window, of one study each; `one` is the arm that is first by name."""

    window: str
    one: Side
    two: Side

    @property
    def arms(self) -> tuple[str, str]:
        """Their names."""
        return (self.one.arm, self.two.arm)


@dataclass(frozen=True, slots=True)
class Unsaid:
    """Two arms and the citation that sets them side by side. `apart`: how their texts differ."""

    at: Citation
    value: Value
    apart: str
    companion: str


def unsaid(view: PaperView) -> Iterator[Unsaid]:
    """Each such pair once a document, at the place that names the second of the two."""
    for document in view.documents:
        cited = cited_in(view, document)
        joined = _joined(view.evaluation, [value for _, value in cited])
        found: set[tuple[str, str, tuple[str, str]]] = set()
        for passage in passages(document, cited):
            for pair, at, value in _side_by_side(view.evaluation, passage):
                key = (view.evaluation.studies[pair.one.study].plan, pair.window, pair.arms)
                if key in found or _are_joined(*key, joined):
                    continue
                apart = _apart(view.evaluation, pair)
                if apart:
                    found.add(key)
                    beside = f"{pair.one.arm}-vs-{pair.two.arm}.{pair.window}.texts.same"
                    yield Unsaid(at, value, apart, f"{pair.one.study}.{beside}")


Cited = tuple[Citation, Value]


def cited_in(view: PaperView, document: Document) -> list[Cited]:
    """Each claim that the document cites and that has a value, with the place."""
    values = view.evaluation.values
    return [
        (one, values[one.id])
        for one in view.citations
        if one.file == document.name and one.scheme == "claim" and one.id in values
    ]


def passages(document: Document, cited: list[Cited]) -> Iterator[list[Cited]]:
    """What is read as one statement; what one claim compares is one wherever it stands."""
    yield from ([one] for one in cited if _compares(one[1]))
    if document.name.startswith(_FINDINGS):
        yield cited
        return
    places = _paragraphs(document)
    for paragraph in sorted({place for place in places if place}):
        yield [one for one in cited if places[one[0].line - 1] == paragraph]


def _paragraphs(document: Document) -> list[int]:
    """The number of each line's paragraph, from 1; 0 within a table."""
    number, table, found = 1, False, []
    # A line that holds a comment alone ends no paragraph: only the text as it is has it.
    for line, written in zip(document.lines, document.text.split("\n"), strict=True):
        table = table or _TABLE_BEGINS in line
        found.append(0 if table or line.lstrip().startswith("|") else number)
        table = table and _TABLE_ENDS not in line
        number += not written.strip()
    return found


def _side_by_side(
    evaluation: Evaluation, passage: Iterable[Cited]
) -> Iterator[tuple[Pair, Citation, Value]]:
    """Arms of one study first: what is said of them need not be said again across studies."""
    seen: dict[tuple[str, str], dict[Side, Cited]] = {}
    for at, value in passage:
        study = value.claim.study
        for made in value.comparisons:
            if made.acceptance:
                one, two = sorted((made.first, made.second))
                yield Pair(made.window, Side(one, study), Side(two, study)), at, value
        if value.claim.unit == _ACCEPTANCE_UNIT and len(value.arms) == 1:
            for window in {use.window for use in value.measured}:
                of = seen.setdefault((evaluation.studies[study].plan, window), {})
                of.setdefault(Side(value.arms[0], study), (at, value))
    for (_, window), of in sorted(seen.items()):
        pairs = [Pair(window, *both) for both in combinations(sorted(of), 2)]
        for pair in sorted(pairs, key=lambda pair: pair.one.study != pair.two.study):
            if pair.one.arm != pair.two.arm:
                at, value = max(of[pair.one], of[pair.two], key=lambda found: found[0].line)
                yield pair, at, value


def _compares(value: Value) -> bool:
    return any(made.acceptance for made in value.comparisons)


def _joined(
    evaluation: Evaluation, values: Iterable[Value]
) -> dict[tuple[str, str], list[set[str]]]:
    """Groups of arms whose texts are told of each other, by plan and window."""
    found: dict[tuple[str, str], list[set[str]]] = {}
    for value in values:
        function = value.claim.function
        if not (isinstance(function, partial) and function.func in (same_answers, other_answers)):
            continue
        plan = evaluation.studies[value.claim.study].plan
        for window in {use.window for use in value.measured}:
            groups = found.setdefault((plan, window), [])
            touched = [group for group in groups if group & set(value.arms)]
            groups[:] = [group for group in groups if group not in touched]
            groups.append(set(value.arms).union(*touched))
    return found


def _are_joined(
    plan: str,
    window: str,
    arms: tuple[str, str],
    joined: dict[tuple[str, str], list[set[str]]],
) -> bool:
    return any(set(arms) <= group for group in joined.get((plan, window), ()))


def _apart(evaluation: Evaluation, pair: Pair) -> str:
    """That the two answered prompts differently, in words; "" where they did not."""
    windows = [
        one
        for side in (pair.one, pair.two)
        for run in evaluation.studies[side.study].runs
        for one in evaluation.runs[run].metrics
        if (one.window, one.arm) == (pair.window, side.arm)
    ]
    return next(arms_apart([pair.arms], windows), "")
