"""The records of one study handed to one claim's function, with a note of all it asks for.

Invariant: a function has no other way to the records, so what is noted is what was used. Windows
come only from completed boots and only where nothing voids them (analysis/reading.py); of several
arms that are set side by side only from blocks that hold all of them (`common_blocks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from analysis.claiming.common_blocks import Abreast, abreast, by_arm_told, within
from analysis.claiming.comparison import Comparison
from analysis.claiming.leading import Lead, Verge
from analysis.claiming.line_index import LineIndex, index_lines
from analysis.metrics import WindowMetrics, peer_metrics, run_metrics
from analysis.processor_table import processors_of
from analysis.reading import Run, read_run
from analysis.server_clock import WindowClock, window_clocks
from records import schema
from records.errors import ClaimError
from records.plan import Plan, PlannedBoot
from records.processors import Processors
from records.run_directory import RunDirectory

_OfWindow = TypeVar("_OfWindow", WindowMetrics, WindowClock)
_BOOT_LINES = ("boot.started", "boot.ended")
_MEASURED_BOOT_LINES = ("boot.started", "engine.decided", "boot.ended")


@dataclass(frozen=True, order=True, slots=True)
class WindowUse:
    """One measured window that entered a value."""

    run: str
    boot: str
    window: str
    arm: str


@dataclass(frozen=True, order=True, slots=True)
class Line:
    """One journal line that was read: `number` counts from 1, as editors do."""

    run: str
    seq: int

    @property
    def number(self) -> int:
        """The line's number in events.jsonl."""
        return self.seq + 1


@dataclass(frozen=True, slots=True)
class BootRecord:
    """One attempt at a planned boot, without its requests. `windows`: id -> reasons to void it.

    `facts`: those of each window that ended. `host_id`: the host that it was made on. `cut_off`: as
    in analysis/reading.py.
    """

    run: str
    started: schema.BootStarted
    planned: PlannedBoot
    decided: schema.EngineDecided | None
    outcome: str
    windows: tuple[tuple[str, tuple[str, ...]], ...]
    warmed: schema.BootWarmed | None = None
    host_id: str = ""
    cut_off: bool = False
    facts: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class StudyRun:
    """What is kept of one verified run: metrics by window, all but its requests, line numbers.

    `peers`: metrics of the windows that other clients than the kit's measured; only where there are
    such are there `clocks`. `host_id`: where it began; each boot has its own. `closed`: how it was
    closed, where its host went away for good. `left_out`: blocks not begun for want of time.
    """

    started: schema.RunStarted
    host_id: str
    metrics: tuple[WindowMetrics, ...]
    boots: tuple[BootRecord, ...]
    calibrations: tuple[schema.Calibrated, ...]
    engines: tuple[schema.EngineBound, ...]
    models: tuple[schema.ModelBound, ...]
    hosts: tuple[schema.HostObserved, ...]
    lines: LineIndex
    peers: tuple[WindowMetrics, ...] = ()
    clocks: tuple[WindowClock, ...] = ()
    closed: schema.RunClosed | None = None
    left_out: tuple[int, ...] = ()

    @property
    def run_id(self) -> str:
        """The run's own name for itself."""
        return self.started.run_id

    @property
    def plan(self) -> Plan:
        """The plan that it carried out."""
        return self.started.plan

    @property
    def boot_hosts(self) -> dict[str, str]:
        """The host of each attempt at a planned boot."""
        return {boot.started.boot: boot.host_id for boot in self.boots}


def read_study_run(directory: RunDirectory) -> StudyRun:
    """Verify and read one run. ChainError, FormatError: the records do not hold."""
    return study_run(read_run(directory), directory)


def study_run(run: Run, directory: RunDirectory) -> StudyRun:
    """What is kept of a run that was read already from this directory."""
    peers = tuple(peer_metrics(run))
    return StudyRun(
        run.started,
        run.host_id,
        tuple(run_metrics(run)),
        tuple(_boot_records(run)),
        tuple(run.calibrations),
        tuple(run.engines),
        tuple(run.models),
        tuple(run.hosts),
        index_lines(directory.events),
        peers,
        tuple(window_clocks(run)) if peers else (),
        closed=run.closed,
        left_out=run.left_out,
    )


def _boot_records(run: Run) -> Iterable[BootRecord]:
    for boot in run.boots:
        if boot.planned is not None:
            windows = tuple((w.window.id, w.void) for w in boot.windows)
            yield BootRecord(
                run.run_id,
                boot.started,
                boot.planned,
                boot.decided,
                boot.outcome,
                windows,
                boot.warmed,
                boot.host_id,
                boot.cut_off,
                tuple(w.ended.facts for w in boot.windows if w.ended is not None),
            )


class Reading:
    """One claim's view of a study. Errors of all methods: ClaimError where there is nothing."""

    def __init__(self, study: str, runs: tuple[StudyRun, ...]) -> None:
        self._study = study
        # Blocks that were cut off as their host went away count nowhere (analysis/study.py).
        self._runs = tuple(
            replace(run, boots=tuple(boot for boot in run.boots if not boot.cut_off))
            for run in runs
        )
        self._measured: set[WindowUse] = set()
        self._lines: set[Line] = set()
        self._comparisons: list[Comparison] = []
        self._ranked: set[str] = set()
        self._leads: list[Lead] = []
        self._verges: list[Verge] = []
        self._abreast: list[Abreast] = []

    def windows(self, arm: str, window: str) -> tuple[WindowMetrics, ...]:
        """The usable windows of one arm, one a boot, in order of run and boot."""
        return self._measured_in(arm, window, lambda run: run.metrics)

    def by_both_clients(
        self, arm: str, window: str, peer: str
    ) -> tuple[tuple[WindowMetrics, WindowMetrics], ...]:
        """The kit's window and the other client's of each boot of an arm that has both, usable."""
        kits = {(one.run_id, one.boot): one for one in self.windows(arm, window)}
        found = []
        for run in self._runs:
            for one in run.peers:
                kit = kits.get((one.run_id, one.boot))
                if kit is not None and (one.arm, one.window) == (arm, peer):
                    found.append((kit, one))
                    self._measured.add(WindowUse(run.run_id, one.boot, peer, arm))
                    self._note(run, run.lines.windows.get((one.boot, peer), []))
        if not found:
            raise ClaimError(f"study {self._study}: arm {arm!r} has no usable window {peer!r}")
        return tuple(found)

    def clocks(self, arm: str, window: str) -> tuple[WindowClock, ...]:
        """Both clocks of the usable windows of one arm, one a boot; of any client."""
        return self._measured_in(arm, window, lambda run: run.clocks)

    def _measured_in(
        self, arm: str, window: str, of: Callable[[StudyRun], Iterable[_OfWindow]]
    ) -> tuple[_OfWindow, ...]:
        """What `of` gives of an arm's windows of that name, noted as read. ClaimError: nothing."""
        found = self._held(arm, window, of)
        for run, one in found:
            self._use(run, one)
        return tuple(one for _, one in found)

    def _held(
        self, arm: str, window: str, of: Callable[[StudyRun], Iterable[_OfWindow]]
    ) -> list[tuple[StudyRun, _OfWindow]]:
        """What there is of an arm's windows of that name, not noted yet. ClaimError: nothing."""
        found = [
            (run, one)
            for run in self._runs
            for one in of(run)
            if (one.arm, one.window) == (arm, window)
        ]
        if not found:
            raise ClaimError(f"study {self._study}: no usable window {window!r} of arm {arm!r}")
        return found

    def _use(self, run: StudyRun, one: WindowMetrics | WindowClock) -> None:
        self._measured.add(WindowUse(run.run_id, one.boot, one.window, one.arm))
        self._note(run, run.lines.windows.get((one.boot, one.window), []))
        self._note(run, run.lines.boot(one.boot, *_MEASURED_BOOT_LINES))

    def _side_by_side(
        self, arms: Iterable[str], window: str
    ) -> dict[str, tuple[WindowMetrics, ...]]:
        """The usable windows of each arm within the blocks that hold all of them."""
        held = {arm: self._held(arm, window, lambda run: run.metrics) for arm in arms}
        found = {arm: [one for _, one in windows] for arm, windows in held.items()}
        shared = abreast(window, found)
        if not shared.common:
            raise ClaimError(
                f"study {self._study}: no block holds a usable window {window!r} of every arm: "
                f"{by_arm_told(found)}"
            )
        self._abreast.append(shared)
        blocks = frozenset(shared.common)
        for windows in held.values():
            for run, one in windows:
                if (one.run_id, one.block) in blocks:
                    self._use(run, one)
        return {arm: within(blocks, windows) for arm, windows in found.items()}

    def warmed(self, arm: str) -> tuple[schema.BootWarmed, ...]:
        """How each completed boot of one arm was warmed up."""
        found = []
        for run in self._runs:
            for boot in run.boots:
                if boot.started.arm == arm and boot.outcome == "completed" and boot.warmed:
                    found.append(boot.warmed)
                    self._note(run, run.lines.boot(boot.started.boot, "boot.warmed"))
        if not found:
            raise ClaimError(f"study {self._study}: no boot of arm {arm!r} was warmed up")
        return tuple(found)

    def compare(
        self, first: str, second: str, factor: str, window: str
    ) -> tuple[tuple[WindowMetrics, ...], tuple[WindowMetrics, ...]]:
        """The windows of two arms that are to differ in `factor` alone; the audit holds them to it.

        Of the blocks that hold both, one after the other. Follow it by `effect_ms` where the
        difference claimed is one of times, by `leads` where one is ahead in a rate, by
        `of_acceptance` where it is acceptance that is compared.
        """
        found = self._side_by_side((first, second), window)
        one, two = found[first], found[second]
        self._comparisons.append(
            Comparison(first, second, factor, window, one[0].concurrency, None)
        )
        return one, two

    def effect_ms(self, effect: float, latency: str) -> None:
        """Note the size of the difference that the last comparison claims, and of which latency."""
        self._comparisons[-1] = replace(self._comparisons[-1], effect_ms=effect, latency=latency)

    def rank(self, arms: Iterable[str], window: str) -> dict[str, tuple[WindowMetrics, ...]]:
        """The windows of several arms, to be put in order; no cause may be read from that.

        Of blocks that hold all of them. Follow it by `leads` where it is claimed who is first.
        """
        found = self._side_by_side(arms, window)
        self._ranked.update(found)
        return found

    def wherever(self, arms: Iterable[str], window: str) -> dict[str, tuple[WindowMetrics, ...]]:
        """The windows of several arms, each of all its blocks, to be set side by side.

        Only for what no host's speed touches, as the tokens of an answer; for the rest `rank`.
        """
        found = {arm: self.windows(arm, window) for arm in arms}
        self._ranked.update(found)
        return found

    def of_acceptance(self) -> None:
        """Note that the last comparison is one of acceptance lengths."""
        self._comparisons[-1] = replace(self._comparisons[-1], acceptance=True)

    def leads(self, lead: Lead) -> None:
        """Note that one arm is said to be ahead of another, and what parts them."""
        self._leads.append(lead)

    def verges(self, verge: Verge) -> None:
        """Note requests on which alone it turns whether an objective is met."""
        self._verges.append(verge)

    def boots(self, arm: str = "") -> tuple[BootRecord, ...]:
        """Every attempt at a planned boot, whatever became of it; of one arm, or of all."""
        found = []
        for run in self._runs:
            for boot in run.boots:
                if arm in ("", boot.started.arm):
                    found.append(boot)
                    self._note(run, run.lines.boot(boot.started.boot, *_BOOT_LINES))
                    for window, _ in boot.windows:
                        seqs = run.lines.windows.get((boot.started.boot, window), [])
                        self._note(run, seqs[-1:])
        if not found:
            raise ClaimError(f"study {self._study}: no boot of {arm or 'any arm'}")
        return tuple(found)

    def window_facts(self, arm: str = "") -> tuple[Mapping[str, Any], ...]:
        """The facts of each window of completed boots, void ones too; of one arm, or of all."""
        completed = [boot for boot in self.boots(arm) if boot.outcome == "completed"]
        return tuple(facts for boot in completed for facts in boot.facts)

    def calibrations(self, concurrency: int) -> tuple[schema.Calibrated, ...]:
        """What the client was found to be worth at this concurrency, in every run."""
        found = []
        for run in self._runs:
            found += [c for c in run.calibrations if c.concurrency == concurrency]
            self._note(run, run.lines.calibrations.get(concurrency, []))
        if not found:
            raise ClaimError(f"study {self._study}: no calibration at concurrency {concurrency}")
        return tuple(found)

    def processors(self) -> tuple[Processors, ...]:
        """What the hosts' processors did each time that they were timed."""
        found = []
        for run in self._runs:
            told = [processors_of(event.facts) for event in run.hosts]
            found += [one for one in told if one is not None]
            self._note(run, run.lines.run.get(schema.HostObserved.TYPE, []))
        if not found:
            raise ClaimError(f"study {self._study}: no run timed its processors")
        return tuple(found)

    def decisions(self, arm: str) -> tuple[schema.EngineDecided, ...]:
        """What the engine decided in each completed boot of one arm."""
        found = []
        for run in self._runs:
            for boot in run.boots:
                if boot.started.arm == arm and boot.outcome == "completed" and boot.decided:
                    found.append(boot.decided)
                    self._note(run, run.lines.boot(boot.started.boot, "engine.decided"))
        if not found:
            raise ClaimError(f"study {self._study}: no boot of arm {arm!r} says what it decided")
        return tuple(found)

    @property
    def measured(self) -> tuple[WindowUse, ...]:
        """The windows given out so far."""
        return tuple(sorted(self._measured))

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines behind all that was given out so far."""
        return tuple(sorted(self._lines))

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The comparisons made so far."""
        return tuple(self._comparisons)

    @property
    def ranked(self) -> tuple[str, ...]:
        """The arms put in order so far."""
        return tuple(sorted(self._ranked))

    @property
    def abreast(self) -> tuple[Abreast, ...]:
        """Within which blocks arms were set side by side so far, each once."""
        return tuple(dict.fromkeys(self._abreast))

    @property
    def led(self) -> tuple[Lead, ...]:
        """Which arms were said to be ahead of which so far."""
        return tuple(self._leads)

    @property
    def on_verge(self) -> tuple[Verge, ...]:
        """The requests noted so far on which alone something turns."""
        return tuple(self._verges)

    def _note(self, run: StudyRun, seqs: Iterable[int]) -> None:
        self._lines.update(Line(run.run_id, seq) for seq in seqs)
