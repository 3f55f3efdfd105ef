"""The claims that the page prints, each with its trace.

Invariant: a claim is shown only with the value that `kit trace` gives it; what has no value has no
anchor, and its number then opens the records of its row instead.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analysis.claiming.evaluation import Evaluation
from analysis.report.model import ClaimView
from analysis.report.sources import SourceBook
from analysis.trace import cited_places, trace


class ClaimBook:
    """Collects claims while the page is made. `data`: the directory of the evidence."""

    def __init__(self, evaluation: Evaluation, sources: SourceBook, root: Path, data: Path) -> None:
        self._evaluation = evaluation
        self._sources = sources
        self._root = root
        self._cited = cited_places(root)
        self._data = data
        self._found: dict[str, ClaimView] = {}
        self._notes = 0

    @property
    def claims(self) -> tuple[ClaimView, ...]:
        """What was asked for so far and has a value: by endnote, then in that order."""
        return tuple(sorted(self._found.values(), key=lambda one: one.number or self._notes + 1))

    def view(self, id_: str) -> ClaimView | None:
        """The claim; None where it has no value."""
        if id_ not in self._evaluation.values:
            return None
        if id_ not in self._found:
            found = trace(id_, self._evaluation, self._root, self._data, self._cited)
            self._found[id_] = ClaimView(
                0,
                f"claim-{id_}",
                id_,
                found.printed,
                found.text,
                found.study,
                found.function,
                found.defined,
                found.cited,
                self._sources.of_claim(found),
                (*(f"compared: {told}" for told in found.blocks), *found.spread),
            )
        return self._found[id_]

    def noted(self, id_: str) -> ClaimView | None:
        """The claim with the number of an endnote; None where it has no value."""
        found = self.view(id_)
        if found and not found.number:
            self._notes += 1
            self._found[id_] = found = replace(found, number=self._notes)
        return found

    def anchor(self, id_: str) -> str:
        """Where its trace stands; "" where it has no value."""
        found = self.view(id_)
        return found.anchor if found else ""
