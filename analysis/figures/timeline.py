"""Boots over time: starting, warming up, the windows, what voided them, and the GPU's clocks.

Invariant: each span lies where the harness's own clock put it, in seconds from the boot's start;
clock samples are evenly spaced within their window, since only their order is recorded.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from analysis.facts import integers, part, parts
from analysis.figures.figure import Figure
from analysis.figures.rows import Row, grouped, rows_of
from analysis.figures.style import MARK, WIDE
from analysis.reading import Boot, MeasuredWindow, Run
from analysis.table import MISSING, Column, Table, number, words
from records.schema import WindowEnded
from records.void_words import reason_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_S = 1e9
_MOST_BOOTS = 16
_START, _WARM, _WINDOW, _VOID, _END = "start", "warm-up", "window", "void window", "end"
_CLOCK = "SM clock"
_FILLS = {
    _START: ("#999999", ""),
    _WARM: ("#E69F00", "////"),
    _WINDOW: ("#56B4E9", ""),
    _VOID: ("#FFFFFF", "xxxx"),
    _END: ("#DDDDDD", "----"),
}
_ROW_IN = 0.22
_NOTE_WIDTH = 44
# A character's breadth, and that of the bars and what is said beside them where names are long.
_CHARACTER_IN, _BARS_IN = 0.065, 4.6

_Cells = tuple[str, ...]


def timeline_figure(runs: Sequence[Run]) -> Figure:
    """A bar for each boot, with its parts; beneath it the clocks where the host shows any."""
    data = timeline_data(runs)
    boots = {row[:2] for row in data.rows}
    clocks = any(row[3] == _CLOCK for row in data.rows)
    return Figure(
        "timeline",
        "Boots over time",
        "One bar a boot, from its start: until the engine answered, warm-up, the windows by name, "
        "and what it took to read the last counters and to stop. Crossed windows are void. Beside "
        "the bar: kernels compiled in warm-up and inside windows, and what ended a boot early. "
        "Below, where the host has a GPU, its SM clock over the windows, one dot a sample. Of many "
        "boots the first of each arm is shown, and those that had trouble.",
        "Horizontal bars, one a boot, each divided into start, warm-up, windows and end, in "
        "seconds since the boot's start.",
        data,
        (WIDE, 0.9 + _ROW_IN * max(len(boots), 2) + (1.3 if clocks else 0)),
        draw_timeline,
        absent="" if data.rows else "no boot in these records",
    )


def timeline_data(runs: Sequence[Run]) -> Table:
    """One row a span, and one a clock sample."""
    chosen = _chosen([(run, boot) for run in runs for boot in run.boots])
    rows = [cells for run, boot in chosen for cells in _spans(run, boot)]
    return Table(
        "timeline",
        "Boots over time",
        (
            "Seconds from the start of each boot.",
            "Compiled: kernels compiled by the engine's JIT in the span, as its log tells.",
        ),
        (
            *words("run", "boot", "arm", "what", "window"),
            Column("from", "s"),
            Column("to", "s"),
            Column("compiled"),
            Column("clock", "MHz"),
            *words("note"),
        ),
        tuple(rows),
    )


def _chosen(boots: Sequence[tuple[Run, Boot]]) -> list[tuple[Run, Boot]]:
    if len(boots) <= _MOST_BOOTS:
        return list(boots)
    completed = [boot for _, boot in boots if boot.outcome == "completed" and boot.planned]
    first = {boot.started.arm: id(boot) for boot in reversed(completed)}
    trouble = {
        id(boot)
        for _, boot in boots
        if boot.outcome != "completed" or any(window.void for window in boot.windows)
    }
    kept = [one for one in boots if id(one[1]) in {*first.values(), *trouble}]
    return (kept or list(boots))[:_MOST_BOOTS]


def _spans(run: Run, boot: Boot) -> Iterator[_Cells]:
    head = (run.run_id, boot.started.boot, boot.started.arm)
    zero = boot.started.clock.monotonic_ns
    told = boot.ended is not None or boot.gone
    ended = boot.cause if told and boot.outcome != "completed" else ""
    cause = f"{boot.outcome}: {ended}" if ended else MISSING
    end = max(boot.ended_ns - zero, 0)
    answered = boot.healthy.after_ns if boot.healthy else end
    yield _span(head, _START, "", (0, answered), MISSING, cause)
    if boot.warmed is not None:
        compiled = str(sum(boot.warmed.jit_lines))
        yield _span(head, _WARM, "", (answered, answered + boot.warmed.elapsed_ns), compiled)
        answered += boot.warmed.elapsed_ns
    last = answered
    for window in boot.windows:
        if window.ended is not None:
            yield from _window(head, window, window.ended, zero)
            last = window.ended.start_ns + window.ended.report.wall_ns - zero
    if end > last:
        yield _span(head, _END, "", (last, end), MISSING)


def _window(
    head: _Cells, window: MeasuredWindow, ended: WindowEnded, zero: int
) -> Iterator[_Cells]:
    begun_ns, length = ended.start_ns - zero, ended.report.wall_ns
    what = _VOID if window.void else _WINDOW
    compiled = str(len(ended.jit_lines))
    note = "; ".join(map(reason_text, window.void)) or MISSING
    yield _span(head, what, window.window.id, (begun_ns, begun_ns + length), compiled, note)
    for trace in parts(part(ended.facts, "gpu"), "traces"):
        samples = integers(trace, "sm_clock_mhz")
        for place, mhz in enumerate(samples):
            at = number((begun_ns + length * (place + 0.5) / len(samples)) / _S, 3)
            clock = MISSING if mhz < 0 else str(mhz)
            gpu = str(trace.get("uuid", MISSING))
            yield (*head, _CLOCK, window.window.id, at, at, MISSING, clock, gpu)


def _span(
    head: _Cells, what: str, window: str, at: tuple[int, int], compiled: str, note: str = MISSING
) -> _Cells:
    start, end = (number(ns / _S, 3) for ns in at)
    return (*head, what, window or MISSING, start, end, compiled, MISSING, note)


def draw_timeline(canvas: Canvas, data: Table) -> None:
    """Bars above, clocks below on the same axis of time."""
    rows = rows_of(data)
    bars = [row for row in rows if row["what"] != _CLOCK]
    clocks = [row for row in rows if row["what"] == _CLOCK and row["clock_mhz"] is not None]
    for row in rows:
        row["label"] = _label(row, len({one["run"] for one in rows}))
    boots = grouped(bars, "label")
    ratios = (max(len(boots), 2) * _ROW_IN, 1.2)
    if clocks:
        above, below = canvas.subplots(2, 1, sharex=True, height_ratios=ratios)
        _clocks(below, clocks)
        below.set_xlabel("time since the boot's start (s)")
    else:
        above = canvas.subplots()
        above.set_xlabel("time since the boot's start (s)")
    end = max((row["to_s"] for row in bars), default=1.0) or 1.0
    # Of windows named in a bar, those alone whose name fits it.
    narrowest = 1.45 * end * _CHARACTER_IN / _BARS_IN
    noted = False
    for place, group in enumerate(boots.values()):
        noted |= _boot(above, place, group, end, narrowest)
    above.set_yticks(range(len(boots)), list(boots))
    above.set_ylim(len(boots) - 0.4, -0.6)
    above.set_xlim(0, (1.45 if noted else 1.02) * end)
    above.grid(axis="y", visible=False)
    from matplotlib.patches import Patch  # the caller has it imported already

    kinds = {row["what"] for row in bars}
    handles = [
        Patch(facecolor=fill, hatch=hatch, edgecolor="black", linewidth=0.4, label=what)
        for what, (fill, hatch) in _FILLS.items()
        if what in kinds
    ]
    canvas.legend(handles=handles, loc="outside upper left", ncols=len(handles))


def _label(row: Row, runs: int) -> str:
    """The boot's id; of several runs with the run's time and mark, which tell runs apart."""
    if runs == 1:
        return str(row["boot"])
    day, _, rest = str(row["run"]).partition("T")
    return f"{row['boot']}\n({day} {rest[:6]} {rest.rpartition('-')[2]})"


def _boot(axis: Axes, place: int, rows: Sequence[Row], end: float, narrowest: float) -> bool:
    """Draw one boot; whether there was something to say beside it. `narrowest`: a character, s."""
    notes = []
    for row in rows:
        fill, hatch = _FILLS[row["what"]]
        length = row["to_s"] - row["from_s"]
        axis.barh(
            place, length, left=row["from_s"], height=0.7, color=fill, hatch=hatch,
            edgecolor="black", linewidth=0.4,
        )  # fmt: skip
        if row["what"] in (_WINDOW, _VOID) and length > narrowest * (0.5 + len(row["window"])):
            axis.text(
                row["from_s"] + length / 2, place, row["window"], ha="center", va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1}
                if row["what"] == _VOID else None,
            )  # fmt: skip
        if row["compiled"]:
            notes.append(f"{row['compiled']} compiled in {row['what']}")
        if row["what"] == _START and row["note"] != MISSING:
            notes.append(row["note"])
    if notes:
        last = max(row["to_s"] for row in rows)
        said = textwrap.shorten("; ".join(notes), _NOTE_WIDTH, placeholder=" …")
        axis.text(last + 0.01 * end, place, said, va="center", color=MARK)
    return bool(notes)


def _clocks(axis: Axes, rows: Sequence[Row]) -> None:
    axis.plot(
        [row["from_s"] for row in rows], [row["clock_mhz"] for row in rows], linestyle="none",
        marker="o", markersize=2.5, color="#0072B2", alpha=0.5, markeredgewidth=0,
    )  # fmt: skip
    axis.set_ylabel("SM clock (MHz)")
    axis.margins(y=0.15)
