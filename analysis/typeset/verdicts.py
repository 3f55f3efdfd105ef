"""Published against ours: the table of verdicts, and the entries that its numbers lead to.

Invariant: every published claim has a row, also the one that nothing here decides; nothing is
decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.comparing.verdict import Interval, Verdict
from analysis.table import number
from analysis.typeset.provenance import RunName, records_text
from analysis.typeset.words import code, command, escaped, joined, sentence

# The whole of it: LaTeX cannot read the rows of a table from a file of their own.
_HEAD = (
    r"\begin{longtable}{>{\raggedright}p{0.31\linewidth}l",
    r">{\raggedright}p{0.1\linewidth}>{\raggedright}p{0.15\linewidth}l}",
    r"\caption{Verdicts. Each leads to its test, margin and records. On: the runs",
    r"that it is of, as Section~\ref{sec:runs} names them.}",
    r"\label{tab:verdicts} \\",
)
_TITLES = (r"\toprule", r"published claim & published & on & ours & verdict \\", r"\midrule")
_REPEATED = (r"\endfirsthead", *_TITLES, r"\endhead", r"\bottomrule", r"\endfoot")
_FOOT = (r"\end{longtable}",)


def verdict_table_tex(verdicts: Sequence[Verdict], run_names: Mapping[str, RunName]) -> bytes:
    """A table of five columns: claim, published, on, ours, verdict; a claim is named once.

    It may go on over pages: a claim has a verdict on each stratum.
    """
    rows, told = [], ""
    for place, one in enumerate(verdicts, 1):
        claim = ("", "") if one.id == told else (escaped(one.text), command("published", one.id))
        outcome = command("kitlink", _anchor(one, place), escaped(one.outcome))
        cells = (*claim, _on(one, run_names), _ours(one, place), outcome)
        rows.append((r"\addlinespace " if one.id != told else "") + " & ".join(cells) + r" \\")
        told = one.id
    return joined([*_HEAD, *_TITLES, *_REPEATED, *rows, *_FOOT])


def verdicts_tex(verdicts: Sequence[Verdict], run_names: Mapping[str, RunName]) -> bytes:
    """An entry a verdict: outcome, reason, test, margin, interval, what it was measured on."""
    lines = []
    for place, one in enumerate(verdicts, 1):
        facts = [
            sentence(one.text),
            sentence(one.reason),
            *_labelled("Test", one.test),
            *_labelled("Margin", one.margin),
            *_labelled("Interval", _interval(one.interval)),
            *_labelled("Bounds", _ends(one.bounds)),
            *_labelled("p", _p(one)),
            *_labelled("Boots", str(one.boots or "")),
            *_labelled("Hosts", str(one.hosts or "")),
            *_labelled("Boots that would decide", str(one.needed_boots or "")),
            *_labelled("Measured on", one.stratum),
        ]
        if one.lines:
            facts.append(f"Records: {records_text(one.lines, run_names)}.")
        facts.append(f"Made again by {code('kit compare')}")
        value = f"{escaped(one.outcome)}{f', {escaped(one.measured)}' if one.measured else ''}"
        lines.append(
            command("kitentry", _anchor(one, place), escaped(one.id), value, " ".join(facts))
        )
    return joined(lines)


def _ours(one: Verdict, place: int) -> str:
    return command("kitlink", _anchor(one, place), escaped(one.measured)) if one.measured else "--"


def _on(one: Verdict, run_names: Mapping[str, RunName]) -> str:
    known = [command("kitrun", run, run_names[run].short) for run in one.runs if run in run_names]
    return ", ".join(known) or "--"


def _anchor(one: Verdict, place: int) -> str:
    # A claim may have a verdict on several strata.
    return f"verdict:{one.id}:{place}"


def _labelled(label: str, text: str) -> list[str]:
    return [f"{label}: {escaped(text)}."] if text and text != "none" else []


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f"{_ends(interval)} ({100 * interval.confidence:g} %)"


def _ends(interval: Interval | None) -> str:
    return "" if interval is None else f"{number(interval.low, 4)} to {number(interval.high, 4)}"


def _p(one: Verdict) -> str:
    if one.p is None:
        return ""
    adjusted = f", adjusted {one.p_holm:.3g}" if one.p_holm is not None else ""
    return f"{one.p:.3g}{adjusted}"
