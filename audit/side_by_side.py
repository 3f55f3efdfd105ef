"""Where acceptance of two arms is set side by side whose texts differ, and nothing says so.

Invariant: arms are held to what they answered in the very windows that are spoken of; where that is
not known (prompts of their own, tokens drawn at random) nothing is said.

Set side by side is what one claim compares, and what one finding, or one paragraph elsewhere, cites
of two arms in one window. A table that lists arms is no sentence about them. It is said where the
same document cites how many prompts the two answered alike, or otherwise: of the two, or of each
with the same third arm, in any study of the plan.
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
class Cell:
    """One window of one study."""

    study: str
    window: str


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
        cited = _cited(view, document)
        joined = _joined(view.evaluation, [value for _, value in cited])
        found: set[tuple[Cell, tuple[str, ...]]] = set()
        for passage in _passages(document, cited):
            for cell, pair, at, value in _side_by_side(passage):
                if (cell, pair) in found or _are_joined(view.evaluation, cell, pair, joined):
                    continue
                apart = _apart(view.evaluation, cell, pair)
                if apart:
                    found.add((cell, pair))
                    companion = f"{cell.study}.{pair[0]}-vs-{pair[1]}.{cell.window}.texts.same"
                    yield Unsaid(at, value, apart, companion)


_Cited = tuple[Citation, Value]


def _cited(view: PaperView, document: Document) -> list[_Cited]:
    values = view.evaluation.values
    return [
        (one, values[one.id])
        for one in view.citations
        if one.file == document.name and one.scheme == "claim" and one.id in values
    ]


def _passages(document: Document, cited: list[_Cited]) -> Iterator[list[_Cited]]:
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
    passage: Iterable[_Cited],
) -> Iterator[tuple[Cell, tuple[str, str], Citation, Value]]:
    seen: dict[Cell, dict[str, _Cited]] = {}
    for at, value in passage:
        for made in value.comparisons:
            if made.acceptance:
                cell = Cell(value.claim.study, made.window)
                yield cell, _pair(made.first, made.second), at, value
        if value.claim.unit == _ACCEPTANCE_UNIT and len(value.arms) == 1:
            for window in {use.window for use in value.measured}:
                of = seen.setdefault(Cell(value.claim.study, window), {})
                of.setdefault(value.arms[0], (at, value))
    for cell, of in sorted(seen.items()):
        for one, two in combinations(sorted(of), 2):
            at, value = max(of[one], of[two], key=lambda found: found[0].line)
            yield cell, (one, two), at, value


def _compares(value: Value) -> bool:
    return any(made.acceptance for made in value.comparisons)


def _pair(one: str, two: str) -> tuple[str, str]:
    return (one, two) if one < two else (two, one)


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
    evaluation: Evaluation,
    cell: Cell,
    pair: tuple[str, str],
    joined: dict[tuple[str, str], list[set[str]]],
) -> bool:
    plan = evaluation.studies[cell.study].plan
    return any(set(pair) <= group for group in joined.get((plan, cell.window), ()))


def _apart(evaluation: Evaluation, cell: Cell, pair: tuple[str, str]) -> str:
    """That the two answered prompts differently, in words; "" where they did not."""
    windows = [
        one
        for run in evaluation.studies[cell.study].runs
        for one in evaluation.runs[run].metrics
        if one.window == cell.window and one.arm in pair
    ]
    return next(arms_apart([pair], windows), "")
