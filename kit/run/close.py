"""Close a run whose host is gone for good: say so in its journal, seal it, list it.

Invariant: what came home stays as it came; one event is appended, and only to a run that verifies,
has not ended, goes on nowhere that this machine knows of, and lacks nothing that was seen here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kit.home import Home
from kit.run.alone import alone_on
from kit.run.fetch import Say, require_lists, silent, staging_of
from kit.run.whereabouts import require_all_home, require_gone
from records.checkpoint import Checkpoint, Leaf, add_run, read_checkpoint, read_runs
from records.digest import Digest
from records.durable import scratch_of
from records.errors import (
    ChainError,
    ClosedRunError,
    DiskFullError,
    ForeignDirectoryError,
    FormatError,
    RunBusyError,
)
from records.journal import Journal, drop_begun
from records.limits import printable
from records.plan import Plan, boot_order
from records.run_directory import RunDirectory, is_regular
from records.schema import (
    BootEnded,
    BootStarted,
    EngineBound,
    Envelope,
    ModelBound,
    RunClosed,
    RunEnded,
    RunStarted,
    WindowEnded,
    WindowStarted,
)
from records.seal import SEAL_NAME, write_seal

_ENDS = ("completed", "failed")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why and by what a run is closed. `host_gone`: the user says that it goes on nowhere."""

    because: str
    kit: str
    realtime_ns: int
    host_gone: bool = False


@dataclass(frozen=True, slots=True)
class Closed:
    """A closed run. `blocks`: those it was to carry out; `carried_out`: those that it did."""

    directory: Path
    event: RunClosed
    blocks: tuple[int, ...]
    carried_out: tuple[int, ...]
    failed: int
    listed: bool

    @property
    def missing(self) -> tuple[int, ...]:
        """The blocks that another run has to carry out."""
        return tuple(block for block in self.blocks if block not in self.carried_out)


def close_run(home: Home, run: RunDirectory, why: Reason, say: Say = silent) -> Closed:
    """Close, seal and list the run in this directory of the records, while nobody brings it home.

    ClosedRunError: it is sealed, has ended, may go on, or not all of it that was seen came home.
    RunBusyError: it is being written. ChainError: it does not verify, or a file that its events
    name did not come home. ForeignDirectoryError: it does not stand among the records.
    """
    is_among = run.path.absolute().parent in _records(home)
    with alone_on(staging_of(run.path), say) if is_among else nullcontext():
        return _close(home, run, why)


def _close(home: Home, run: RunDirectory, why: Reason) -> Closed:
    require_lists(run.path.parent)
    if run.is_sealed and run.closed is not None and not _is_listed(run):
        return _listed(home, run)  # a stop came between its seal and the lists
    _require_open(home, run)
    if is_regular(run.events):
        # A stop cut it short: no host writes such a line.
        drop_begun(run.events, RunClosed.TYPE)
    seen = Seen.of(_verified(run))
    if seen.ended:
        raise ClosedRunError(
            f"run {run.path.name} has ended, and only its seal did not come home",
            f"bring it whole: kit fetch-records {run.path.name}",
        )
    if seen.started is None or seen.started.run_id != run.path.name:
        name = seen.started.run_id if seen.started else "no run"
        raise ForeignDirectoryError(f"{run.path} holds {name}", "name the directory as its run")
    require_gone(home, run.path.name, host_gone=why.host_gone)
    require_all_home(home, run)
    _require_files(run, seen)
    _require_sealable(run)
    if seen.closed is None:
        _require_later(run, seen.started, why.realtime_ns)
    with Journal.resume(run.events) as journal:
        if run.is_sealed or journal.state.lines != seen.lines:
            raise RunBusyError(
                f"run {run.path.name} was closed or brought home further meanwhile",
                f"kit status {run.path.name}",
            )
        # One that was stopped before its seal was written is completed.
        event = seen.closed or seen.closing(why)
        if seen.closed is None:
            _append(run, journal, event, seen.last_ns)
        seal = write_seal(run.path, run.path.name, journal.state)
    return _told(run, seen, event, Digest.of(seal.encode()))


def _is_listed(run: RunDirectory) -> bool:
    """Whether RUNS has the run, and CHECKPOINT covers RUNS."""
    try:
        leaves = read_runs(run.path.parent)
    except FormatError:
        return False  # torn by a stop, which add_run makes good; or edited, and it says so
    covered = read_checkpoint(run.path.parent) == Checkpoint.of(leaves)
    return covered and any(leaf.run_id == run.path.name for leaf in leaves)


def _listed(home: Home, run: RunDirectory) -> Closed:
    _require_among(home, run)
    for fault in run.verify_files():
        raise fault
    seen = Seen.of(run.read())
    if seen.closed is None or seen.started is None or seen.started.run_id != run.path.name:
        raise ForeignDirectoryError(f"{run.path} holds another run", "kit audit")
    return _told(run, seen, seen.closed, run.seal_digest)


def _told(run: RunDirectory, seen: Seen, event: RunClosed, seal: Digest) -> Closed:
    return Closed(
        run.path,
        event,
        seen.blocks,
        seen.carried_out,
        sum(how == "failed" for how in seen.outcomes.values()),
        add_run(run.path.parent, Leaf(run.path.name, seal)),
    )


def _append(run: RunDirectory, journal: Journal, event: RunClosed, t_ns: int) -> None:
    """On a full disk the journal is left as it came home, not in the middle of a line."""
    came_home = journal.state.bytes
    try:
        journal.append(event, t_ns)
    except DiskFullError:
        with run.events.open("rb+") as file:
            file.truncate(came_home)
            os.fsync(file.fileno())
        raise


@dataclass(slots=True)
class Seen:
    """What a journal tells, as far as closing needs it. `files`: those that events name."""

    started: RunStarted | None = None
    ended: bool = False
    closed: RunClosed | None = None
    lines: int = 0
    last_ns: int = 0
    open_boot: str = ""
    outcomes: dict[str, str] = field(default_factory=dict)
    bound_after: set[str] = field(default_factory=set)
    files: dict[str, Digest] = field(default_factory=dict)
    _planned: str = ""

    @classmethod
    def of(cls, envelopes: Iterator[Envelope]) -> Seen:
        """Read all events."""
        seen = cls()
        for envelope in envelopes:
            seen._see(envelope.event)
            seen.lines, seen.last_ns = seen.lines + 1, envelope.t_ns
        return seen

    @property
    def plan(self) -> Plan | None:
        """The run's plan."""
        return self.started.plan if self.started else None

    @property
    def blocks(self) -> tuple[int, ...]:
        """The blocks that the run was to carry out, in order."""
        return tuple(sorted(self._boots()))

    @property
    def carried_out(self) -> tuple[int, ...]:
        """The blocks whose every boot completed or failed."""
        return tuple(
            block
            for block, boots in sorted(self._boots().items())
            if all(self.outcomes.get(boot) in _ENDS for boot in boots)
        )

    def closing(self, why: Reason) -> RunClosed:
        """The event with which this run is closed."""
        models = self.plan.models if self.plan else ()
        missing = tuple(one for one in ("engine", *models) if one not in self.bound_after)
        return RunClosed(why.because, why.kit, why.realtime_ns, self.lines, self.open_boot, missing)

    def _boots(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        if self.started is not None:
            for boot in boot_order(self.started.plan, self.started.blocks):
                found.setdefault(boot.block, []).append(boot.id)
        return found

    def _see(self, event: Any) -> None:
        if isinstance(event, RunStarted):
            self.started = event
        elif isinstance(event, RunEnded):
            self.ended = True
        elif isinstance(event, RunClosed):
            self.closed = event
        elif isinstance(event, BootStarted):
            self.open_boot, self._planned = event.boot, event.planned
            if event.planned:
                self.outcomes[event.planned] = "open"
        elif isinstance(event, BootEnded):
            self.files |= event.logs
            self.open_boot = ""
            if self._planned:
                self.outcomes[self._planned] = event.outcome
        elif isinstance(event, WindowStarted):
            self.bound_after.clear()
        elif isinstance(event, WindowEnded):
            self.files |= event.metrics
        elif isinstance(event, EngineBound) and event.phase == "after":
            self.bound_after.add("engine")
        elif isinstance(event, ModelBound) and event.phase == "after":
            self.bound_after.add(event.model)


def _require_open(home: Home, run: RunDirectory) -> None:
    if run.is_sealed:
        how = "was closed before" if run.closed else "ended itself"
        raise ClosedRunError(
            f"run {run.path.name} is sealed: it {how}, and never changes",
            f"kit analyze {run.path.name}",
        )
    _require_among(home, run)


def _records(home: Home) -> tuple[Path, Path]:
    return home.data, home.out / "demo" / "records"


def _require_among(home: Home, run: RunDirectory) -> None:
    if run.path.absolute().parent not in _records(home):
        raise ForeignDirectoryError(
            f"{run.path} is not among the records, {home.data}",
            f"take it in first: kit fetch-records --from {run.path} --unfinished",
        )


def _verified(run: RunDirectory) -> Iterator[Envelope]:
    """The events of a journal that ends in a whole line. ChainError otherwise."""
    if is_regular(run.events):
        with run.events.open("rb") as file:
            if file.seek(0, 2):
                file.seek(-1, 2)
                if file.read() != b"\n":
                    raise ChainError(
                        f"{run.events} ends in the middle of a line: it was copied, not fetched",
                        f"move {run.path} away, then: kit fetch-records --from DIR --unfinished",
                    )
    yield from run.read()


def _require_later(run: RunDirectory, started: RunStarted, realtime_ns: int) -> None:
    """ClosedRunError where a clock is so wrong that the run would be closed before it began."""
    if realtime_ns < started.clock.realtime_ns:
        began, now = (_utc(ns) for ns in (started.clock.realtime_ns, realtime_ns))
        raise ClosedRunError(
            f"run {run.path.name} began at {began} by its host's clock, and here it is {now}",
            "set this machine's clock; was the host's ahead: close the run after that time",
        )


def _utc(realtime_ns: int) -> str:
    return f"{datetime.fromtimestamp(realtime_ns // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _require_sealable(run: RunDirectory) -> None:
    """ForeignDirectoryError where something stands in the run that no seal can name.

    Sealed beside it, the run would never verify again.
    """
    seal = run.path / SEAL_NAME
    for path in sorted(run.path.rglob("*")):
        mode, problem = path.lstat().st_mode, ""
        if stat.S_ISDIR(mode):
            problem = "" if any(path.iterdir()) else "is an empty directory"
        elif not stat.S_ISREG(mode):
            problem = "is neither a file nor a directory"
        if path in (seal, scratch_of(seal)) and not stat.S_ISREG(mode):
            problem = "stands where the seal belongs"
        if not path.name.isprintable():
            problem = "has a name that is no plain text"
        if problem:
            raise ForeignDirectoryError(
                f"{printable(str(path))} {problem}: no seal can name it, and nothing was closed",
                "move it away, then the same command",
            )


def _require_files(run: RunDirectory, seen: Seen) -> None:
    """ChainError where a file that an event names is not here as it was named."""
    for name, want in sorted(seen.files.items()):
        path = run.path / name
        got = "missing"
        if is_regular(path):
            with path.open("rb") as file:
                got = str(Digest.of_file(file))
        if got != str(want):
            raise ChainError(
                f"{path}: {got}, want {want}: an event names it, and without it the run's boots "
                "cannot be held to account",
                f"bring it: kit fetch-records {run.path.name} --unfinished, or --from DIR; without "
                "it the run stays open",
            )
