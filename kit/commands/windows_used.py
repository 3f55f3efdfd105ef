"""How many windows of runs that just ended are used, and by which rules the others are not.

Invariant: counted as the table of boots counts them, windows of other clients left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from analysis.claiming.reading import StudyRun

# Rules of remote/void.py that a machine breaks which has other things to do.
_BUSY = frozenset({"client-lag", "client-cpu", "host-steal"})


def windows_line(runs: Iterable[StudyRun]) -> str:
    """One line on the windows of all these runs; "" where none was begun."""
    used = void = of_other_boots = 0
    rules: set[str] = set()
    for run in runs:
        peers = {window.id for window in run.plan.windows if window.by_peer}
        for boot in run.boots:
            for window, reasons in boot.windows:
                if window in peers:
                    continue
                if boot.outcome != "completed" or boot.cut_off:
                    of_other_boots += 1
                elif reasons:
                    void += 1
                    rules.update(reason.partition(":")[0] for reason in reasons)
                else:
                    used += 1
    whole = used + void + of_other_boots
    if not whole:
        return ""
    line = f"{used} of {whole} window{'' if whole == 1 else 's'} used"
    if of_other_boots:
        line = f"{line}; {of_other_boots} of boots that did not complete"
    if void:
        why = ": the machine was busy" if rules <= _BUSY else ""
        line = f"{line}; {void} void ({', '.join(sorted(rules))}){why}; --new measures again"
    return line
