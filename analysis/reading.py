"""One run directory -> its plan, boots and windows, chunks as flat columns.

Invariant: no byte of a run is used whose chain, and seal where there is one, was not verified
first; a void window is read like any other and carries its reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson

from analysis.requests import RequestColumns, RequestGatherer, put_together
from records import schema
from records.errors import ForeignDirectoryError, FormatError, UnknownRunError
from records.limits import printable
from records.load import Window
from records.plan import PlannedBoot, boot_order
from records.run_directory import RunDirectory, is_regular, runs_in
from records.schema import Envelope

_REQUESTS = b'"type":"' + schema.WindowRequests.TYPE.encode() + b'","value":'


class RequestSource(Protocol):
    """Where the requests of one window can be had, again and again."""

    def batches(self) -> Iterator[RequestColumns]:
        """All of them in their order, in parts that can be held; at least one part."""


class Gathering(Protocol):
    """Takes the requests of one window while its journal is read."""

    def add(self, requests: list[dict[str, Any]]) -> None:
        """The next batch, as plain values."""

    def close(self) -> RequestSource:
        """No more will come."""


class Store(Protocol):
    """Where requests go. `has_all`: they are there from before, so none is decoded again."""

    @property
    def has_all(self) -> bool: ...

    def begin(self) -> Gathering:
        """A window has begun: called once for each, in the order of the journal."""


@dataclass(frozen=True, slots=True, eq=False)
class InMemory:
    """The requests of one window, held."""

    columns: RequestColumns

    def batches(self) -> Iterator[RequestColumns]:
        """All at once."""
        yield self.columns


class MemoryStore:
    """Holds the requests of every window."""

    has_all = False

    def begin(self) -> Gathering:
        """Begin a window."""
        return _MemoryGathering()


class _MemoryGathering:
    def __init__(self) -> None:
        self._gatherer = RequestGatherer()

    def add(self, requests: list[dict[str, Any]]) -> None:
        self._gatherer.add(requests)

    def close(self) -> RequestSource:
        return InMemory(self._gatherer.columns())


@dataclass(slots=True, eq=False)
class MeasuredWindow:
    """One window of one boot. `ended` is None where the boot stopped in mid-window."""

    window: Window
    started: schema.WindowStarted
    source: RequestSource
    ended: schema.WindowEnded | None = None

    @property
    def requests(self) -> RequestColumns:
        """All requests at once; of a large window rather take the batches of `source`."""
        return put_together(list(self.source.batches()))

    @property
    def void(self) -> tuple[str, ...]:
        """Why it must not be used; empty where it may be."""
        return (
            ("unfinished: the boot stopped inside it",) if self.ended is None else self.ended.void
        )


@dataclass(slots=True, eq=False)
class Boot:
    """One attempt at a boot; `planned` is None for a boot that only fills a compile cache.

    `ended_ns`: CLOCK_MONOTONIC of the line that tells its end, 0 without one. `host_id`: the host
    that was last observed before it began; a run that was queued again may go on at another.
    `gone`: it was under way when its host went for good. `cut_off`: of a block that a run which was
    closed so did not carry out.
    """

    started: schema.BootStarted
    planned: PlannedBoot | None
    healthy: schema.BootHealthy | None = None
    warmed: schema.BootWarmed | None = None
    decided: schema.EngineDecided | None = None
    ended: schema.BootEnded | None = None
    windows: list[MeasuredWindow] = field(default_factory=list)
    ended_ns: int = 0
    host_id: str = ""
    gone: bool = False
    cut_off: bool = False

    @property
    def outcome(self) -> str:
        """completed, failed, interrupted, or "open" where no end was recorded."""
        if self.ended is None:
            return "interrupted" if self.gone else "open"
        return self.ended.outcome

    @property
    def cause(self) -> str:
        """Why it did not complete, or does not count though it did; "" where it counts."""
        if self.ended is None:
            return "its host went away for good" if self.gone else "no end"
        if self.cut_off and self.outcome == "completed":
            return "its block was cut off: the host went away for good"
        return self.ended.cause

    @property
    def usable_windows(self) -> list[MeasuredWindow]:
        """What metrics may use: the windows of a completed planned boot that nothing voids.

        A boot that failed or was interrupted is no replicate: its windows did not run under the
        same history as those of its siblings. One of a block that was cut off as the host went
        away is none either: the block is the unit that was randomised.
        """
        if self.planned is None or self.outcome != "completed" or self.cut_off:
            return []
        return [w for w in self.windows if not w.void and not w.window.by_peer]

    @property
    def peer_windows(self) -> list[MeasuredWindow]:
        """What other clients measured on this boot; for the comparison of clients alone."""
        if self.planned is None or self.outcome != "completed" or self.cut_off:
            return []
        return [w for w in self.windows if not w.void and w.window.by_peer]


@dataclass(slots=True, eq=False)
class Run:
    """One execution of a plan, as its verified records tell it. `host_id`: where it began.

    `directory`: where its other files are, which only the digests in its events vouch for.
    """

    started: schema.RunStarted
    sealed: bool
    host_id: str = ""
    hosts: list[schema.HostObserved] = field(default_factory=list)
    engines: list[schema.EngineBound] = field(default_factory=list)
    models: list[schema.ModelBound] = field(default_factory=list)
    calibrations: list[schema.Calibrated] = field(default_factory=list)
    resumed: list[schema.RunResumed] = field(default_factory=list)
    repaired: list[schema.JournalRepaired] = field(default_factory=list)
    boots: list[Boot] = field(default_factory=list)
    ended: schema.RunEnded | None = None
    closed: schema.RunClosed | None = None
    directory: RunDirectory | None = None

    @property
    def run_id(self) -> str:
        """The run's own name for itself."""
        return self.started.run_id

    @property
    def left_out(self) -> tuple[int, ...]:
        """Blocks that it did not begin: the time that its host was there for would have ended."""
        return self.ended.left_out if self.ended else ()

    @property
    def closing(self) -> str:
        """That its host was gone, and how it went, in words; "" for a run that ended itself."""
        return f"{self.closed.WORD} ({printable(self.closed.reason)})" if self.closed else ""


def read_run(directory: RunDirectory, store: Store | None = None) -> Run:
    """Verify and read one run. ChainError, FormatError: the records do not hold.

    `store`: where its requests go; default: into memory.

    ForeignDirectoryError: directory, seal and journal name different runs. A copy of a run under
    another name would count as a second replicate of the same measurement.
    """
    if not is_regular(directory.events):
        raise UnknownRunError(
            f"{directory.path} holds no run", remedy="name a run under records/data"
        )
    directory.verify_chain()
    run: Run | None = None
    reader: _Reader | None = None
    store = store or MemoryStore()
    for envelope, requests in _events(directory.events, decode_requests=not store.has_all):
        if reader is None:
            if envelope is None or not isinstance(envelope.event, schema.RunStarted):
                raise FormatError(f"{directory.events}:1: the first event is not run.started")
            _require_one_name(directory, envelope.event.run_id)
            run = Run(envelope.event, directory.is_sealed, directory=directory)
            reader = _Reader(run, store)
        elif envelope is not None:
            reader.see(envelope.event, envelope.t_ns)
        elif requests is not None:
            reader.requests(requests)
    if run is None or reader is None:
        raise FormatError(f"{directory.events}: no event yet")
    reader.close()
    return run


def _require_one_name(directory: RunDirectory, run_id: str) -> None:
    names = {"directory": directory.path.absolute().name, "run.started": run_id}
    if directory.is_sealed:
        names["seal"] = directory.seal().run_id
    if len(set(names.values())) > 1:
        told = ", ".join(f"{where} {name!r}" for where, name in names.items())
        raise ForeignDirectoryError(
            f"{directory.path} does not go by one name: {told}",
            remedy="name the directory as the run is called, or remove the copy",
        )


def sealed_runs(data: Path) -> Iterator[RunDirectory]:
    """Every sealed run below `data`, in order of name."""
    return (directory for directory in runs_in(data) if directory.is_sealed)


def _events(
    path: Path, *, decode_requests: bool
) -> Iterator[tuple[Envelope | None, dict[str, Any] | None]]:
    """Strictly decoded events; a batch of requests comes as plain values, for speed."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            where = f"{path}:{number}"
            try:
                # The type stands within the first 160 bytes of a canonical line: after prev, seq
                # and t_ns, whose lengths are bounded.
                if _REQUESTS in line[:200]:
                    if decode_requests:
                        yield None, orjson.loads(line)["value"]
                    continue
                value = json.loads(line)
            except ValueError as error:
                raise FormatError(f"{where}: not JSON: {error}") from error
            yield schema.decode(value, where), None


class _Reader:
    """Hands each event to the boot and window that it belongs to."""

    def __init__(self, run: Run, store: Store) -> None:
        self._run = run
        self._store = store
        started = run.started
        # Of a plan for many hosts a run holds a few blocks: the others are not worked out.
        self._planned = {p.id: p for p in boot_order(started.plan, started.blocks)}
        self._windows = {w.id: w for w in started.plan.windows}
        self._boots: dict[str, Boot] = {}
        self._open: dict[tuple[str, str], tuple[schema.WindowStarted, Gathering]] = {}

    def see(self, event: object, t_ns: int) -> None:
        if isinstance(event, schema.BootStarted):
            host = self._run.hosts[-1].host_id if self._run.hosts else ""
            boot = Boot(event, self._planned.get(event.planned), host_id=host)
            self._boots[event.boot] = boot
            self._run.boots.append(boot)
        elif isinstance(event, schema.BootHealthy):
            self._boot(event.boot).healthy = event
        elif isinstance(event, schema.BootWarmed):
            self._boot(event.boot).warmed = event
        elif isinstance(event, schema.EngineDecided):
            self._boot(event.boot).decided = event
        elif isinstance(event, schema.BootEnded):
            boot = self._boot(event.boot)
            boot.ended, boot.ended_ns = event, t_ns
        elif isinstance(event, schema.WindowStarted):
            self._open[event.boot, event.window] = (event, self._store.begin())
        elif isinstance(event, schema.WindowEnded):
            self._window(event.boot, event.window, event)
        else:
            self._see_run(event)

    def _see_run(self, event: object) -> None:
        run = self._run
        if isinstance(event, schema.HostObserved):
            run.hosts.append(event)
            run.host_id = run.host_id or event.host_id
        elif isinstance(event, schema.EngineBound):
            run.engines.append(event)
        elif isinstance(event, schema.ModelBound):
            run.models.append(event)
        elif isinstance(event, schema.Calibrated):
            run.calibrations.append(event)
        elif isinstance(event, schema.RunResumed):
            run.resumed.append(event)
        elif isinstance(event, schema.JournalRepaired):
            run.repaired.append(event)
        elif isinstance(event, schema.RunEnded):
            run.ended = event
        elif isinstance(event, schema.RunClosed):
            run.closed = event
            self._close(event)

    def _close(self, event: schema.RunClosed) -> None:
        """The boot that was under way was interrupted; blocks that it left open are cut off."""
        last: dict[str, str] = {}
        for boot in self._run.boots:
            boot.gone = boot.ended is None and boot.started.boot == event.interrupted
            last[boot.started.planned] = boot.outcome
        cut = {
            planned.block
            for planned in self._planned.values()
            if last.get(planned.id) not in ("completed", "failed")
        }
        for boot in self._run.boots:
            boot.cut_off = boot.planned is not None and boot.planned.block in cut

    def requests(self, value: dict[str, Any]) -> None:
        """Take one batch of requests into the window that is open."""
        key = (value.get("boot", ""), value.get("window", ""))
        if key not in self._open:
            raise FormatError(
                f"requests of window {key[1]!r} of boot {key[0]!r}, which is not open"
            )
        self._open[key][1].add(value["requests"])

    def close(self) -> None:
        """What is still open was cut off by the end of its boot."""
        for boot, window in list(self._open):
            self._window(boot, window, None)

    def _window(self, boot: str, window: str, ended: schema.WindowEnded | None) -> None:
        if (boot, window) not in self._open:
            raise FormatError(f"window {window!r} of boot {boot!r} ended without having started")
        if window not in self._windows:
            raise FormatError(f"window {window!r} is not in the plan")
        started, gathering = self._open.pop((boot, window))
        measured = MeasuredWindow(self._windows[window], started, gathering.close(), ended)
        self._boot(boot).windows.append(measured)

    def _boot(self, boot: str) -> Boot:
        if boot not in self._boots:
            raise FormatError(f"boot {boot!r} is spoken of before it started")
        return self._boots[boot]
