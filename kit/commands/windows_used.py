"""How many windows of runs that just ended are used, and by which rules the others are not.

Invariant: every window that was begun is counted once; those of other clients apart, as the table
of boots leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from analysis.claiming.reading import StudyRun

# Rules of remote/void.py that a machine breaks which has other things to do.
_BUSY = frozenset({"client-lag", "client-cpu", "host-steal"})


@dataclass(slots=True)
class _Counted:
    """What became of the windows of one kind of client."""

    used: int = 0
    void: int = 0
    of_other_boots: int = 0
    rules: set[str] = field(default_factory=set)

    @property
    def whole(self) -> int:
        return self.used + self.void + self.of_other_boots

    def add(self, reasons: Sequence[str], *, counts: bool) -> None:
        if not counts:
            self.of_other_boots += 1
        elif reasons:
            self.void += 1
            self.rules.update(reason.partition(":")[0] for reason in reasons)
        else:
            self.used += 1

    def lost(self) -> str:
        """What was not used, each part after a semicolon; "" where nothing was lost."""
        told = f"; {self.of_other_boots} of boots that did not complete"
        told = told if self.of_other_boots else ""
        if self.void:
            why = ": the machine was busy" if self.rules <= _BUSY else ""
            told = f"{told}; {self.void} void ({', '.join(sorted(self.rules))}){why}"
        return told


def windows_line(runs: Iterable[StudyRun]) -> str:
    """One line on the windows of all these runs; "" where none was begun."""
    own, other = _Counted(), _Counted()
    for run in runs:
        peers = {window.id for window in run.plan.windows if window.by_peer}
        for boot in run.boots:
            counts = boot.outcome == "completed" and not boot.cut_off
            for window, reasons in boot.windows:
                (other if window in peers else own).add(reasons, counts=counts)
    if not own.whole + other.whole:
        return ""
    line = f"{own.used} of {own.whole} window{'' if own.whole == 1 else 's'} used{own.lost()}"
    if other.whole:
        line = f"{line}; of other clients {other.used} of {other.whole}{other.lost()}"
    again = "; --new measures again" if own.void or other.void else ""
    return f"{line}{again}"
