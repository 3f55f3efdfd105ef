"""Where the numbers of the page come from: sets of journal lines, each under one anchor.

Invariant: the same lines have the same anchor, however many numbers rest on them; anchors count up
in the order in which the page first needs them, so the same records give the same page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from analysis.claiming.reading import BootRecord, Line, StudyRun
from analysis.plan_order import PlanOrder
from analysis.report.model import Origin, Source
from analysis.trace import Trace, places

_BOOT = ("boot.started", "boot.ended")
_MEASURED_BOOT = ("boot.started", "engine.decided", "boot.ended")


class SourceBook:
    """Collects sources while the page is made."""

    def __init__(self, runs: Mapping[str, StudyRun], root: Path, data: Mapping[str, Path]) -> None:
        """`data`: run id -> the directory that holds the run's."""
        self._runs = runs
        self._root = root
        self._data = data
        self._found: dict[tuple[Origin, ...], Source] = {}

    @property
    def sources(self) -> tuple[Source, ...]:
        """What was asked for so far, in that order."""
        return tuple(self._found.values())

    def of_row(self, row: Mapping[str, str], table: str, runs: Sequence[str]) -> str:
        """The anchor of what a row of a table was made of, by what its cells name; "" for nothing.

        `row`: column name -> text, of which run, host, block, boot, arm, window and concurrency are
        looked at.
        """
        chosen = [
            run for run in map(self._runs.__getitem__, runs)
            if _is(row, run=run.run_id, host=run.host_id)
        ]  # fmt: skip
        origins: list[Origin] = []
        for run in chosen:
            if table == "calibration":
                seqs = run.lines.calibrations.get(int(row["concurrency"]), [])
                origins += self._origin(run, f"calibration, {row['concurrency']} streams", seqs)
            elif table == "busiest-thread":
                origins += self._all_windows(run, row)
            elif "window" in row:
                origins += self._windows(run, row)
            else:
                types = _MEASURED_BOOT if table == "decisions" else _BOOT
                origins += self._boots(run, row, types)
        if table == "boots" and not origins:  # none of its boots was begun: that is in the plan
            for run in chosen:
                origins += self._origin(run, "plan and blocks", run.lines.run["run.started"])
        return self._anchor(_title(row), origins, tuple(run.run_id for run in chosen))

    def of_boot(self, run_id: str, boot: str, window: str) -> str:
        """The anchor of a boot's or a window's own lines, usable or not."""
        run = self._runs[run_id]
        seqs = run.lines.boot(boot, *_BOOT) + run.lines.windows.get((boot, window), [])
        label = f"boot {boot}, window {window}" if window else f"boot {boot}"
        return self._anchor(label, self._origin(run, label, seqs), (run_id,))

    def of_lines(self, title: str, lines: Sequence[Line]) -> str:
        """The anchor of lines that somebody else chose; "" for none."""
        origins = [
            one
            for run in dict.fromkeys(line.run for line in lines)
            for one in self._origin(self._runs[run], run, [n.seq for n in lines if n.run == run])
        ]
        return self._anchor(title, origins, tuple(dict.fromkeys(line.run for line in lines)))

    def of_claim(self, trace: Trace) -> str:
        """The anchor of what a claim was computed from."""
        origins = [
            one
            for w in trace.windows
            for one in self._origins(_label(w.arm, w.boot, w.window), w.lines)
        ]
        origins += self._origins("other lines", trace.other_lines)
        order = PlanOrder(self._runs[run.run].plan for run in trace.runs if run.run in self._runs)
        cells = {(w.arm, w.window) for w in trace.windows}
        names = sorted(cells, key=lambda cell: order.cell(*cell))
        title = "; ".join(f"arm {arm}, window {window}" for arm, window in names)
        runs = tuple(run.run for run in trace.runs)
        return self._anchor(title or f"study {trace.study}", origins, runs)

    def _windows(self, run: StudyRun, row: Mapping[str, str]) -> Iterable[Origin]:
        for one in (*run.metrics, *run.peers):
            if _is(row, arm=one.arm, window=one.window, boot=one.boot):
                seqs = run.lines.windows.get((one.boot, one.window), [])
                seqs = [*seqs, *run.lines.boot(one.boot, *_MEASURED_BOOT)]
                yield from self._origin(run, _label(one.arm, one.boot, one.window), seqs)

    def _all_windows(self, run: StudyRun, row: Mapping[str, str]) -> Iterable[Origin]:
        """Also those that are void, of which there are no metrics."""
        arms = {boot.started.boot: boot.started.arm for boot in run.boots}
        for (boot, window), seqs in run.lines.windows.items():
            if _is(row, arm=arms.get(boot, ""), window=window):
                yield from self._origin(run, _label(arms[boot], boot, window), seqs)

    def _boots(
        self, run: StudyRun, row: Mapping[str, str], types: tuple[str, ...]
    ) -> Iterable[Origin]:
        for boot in run.boots:
            names = (boot.started.boot, boot.planned.id)
            named = row.get("boot", names[0]) in names
            if named and _is(row, arm=boot.started.arm, block=str(boot.planned.block)):
                seqs = run.lines.boot(boot.started.boot, *types)
                yield from self._origin(run, _boot_label(boot), seqs)

    def _origin(self, run: StudyRun, label: str, seqs: Iterable[int]) -> list[Origin]:
        lines = [Line(run.run_id, seq) for seq in sorted(seqs)]
        return list(self._origins(label, places(lines, self._root, self._data[run.run_id])))

    def _origins(self, label: str, found: Iterable[str]) -> Iterator[Origin]:
        """`file:line` by file, without the directories above the records: the reader's affair."""
        above = sorted({f"{path.parent.as_posix()}/" for path in self._data.values()})
        by_file: dict[str, list[str]] = {}
        for place in found:
            file, _, lines = place.rpartition(":")
            top = next((one for one in above if file.startswith(one)), "")
            by_file.setdefault(file.removeprefix(top), []).append(lines)
        for file, parts in by_file.items():
            yield Origin(label, file, ", ".join(parts))

    def _anchor(self, title: str, origins: Iterable[Origin], runs: tuple[str, ...]) -> str:
        key = tuple(origins)
        if not key:
            return ""
        if key not in self._found:
            self._found[key] = Source(f"s{len(self._found) + 1}", title, key, runs)
        return self._found[key].anchor


def _is(row: Mapping[str, str], **cells: str) -> bool:
    return all(row.get(name, cell) == cell for name, cell in cells.items())


def _label(arm: str, boot: str, window: str) -> str:
    return f"arm {arm}, boot {boot}, window {window}"


def _boot_label(boot: BootRecord) -> str:
    return f"arm {boot.started.arm}, boot {boot.started.boot}"


def _title(row: Mapping[str, str]) -> str:
    named = [
        f"{name} {row[name]}" for name in ("arm", "window", "boot", "concurrency") if name in row
    ]
    return ", ".join(named)
