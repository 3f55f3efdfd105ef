"""Bring a run's records home: staged, verified, held against what is here, then put in place.

Invariant: no byte of a record that is here already is ever changed. The journal here must be a
prefix of the one that arrives, every other file identical; otherwise nothing is written at all.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kit.home import Home
from kit.hosts.host import Host
from kit.run.alone import alone_on
from kit.run.mirror import require_witnessed
from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME, Leaf, add_run
from records.digest import Digest
from records.durable import NO_SPACE
from records.errors import (
    ClosedRunError,
    ConnectionLostError,
    DiskFullError,
    ForeignDirectoryError,
    KitError,
    NotAPrefixError,
    UnknownRunError,
)
from records.journal import EVENTS_NAME
from records.run_directory import RunDirectory, is_regular
from records.schema import RunStarted
from records.seal import SEAL_NAME

_INCOMING = ".incoming"
_BLOCK_BYTES = 1 << 20


Say = Callable[[str], None]


def silent(_line: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a fetch did. `new_bytes` of the journal were added; `listed`: the checkpoint grew."""

    run_id: str
    directory: Path
    sealed: bool
    new_bytes: int
    listed: bool


def fetch_run(
    host: Host, source: Path, data: Path, seen: Home | None = None, say: Say = silent
) -> Fetched:
    """Bring the run directory `source` of the host below `data`; one process at a time.

    `seen`: where journals that were followed while they grew stand, as witnesses.

    ChainError: what arrived does not verify. NotAPrefixError: it contradicts what is here.
    ClosedRunError: it was closed here, and its host holds more of it than had come home by then.
    ForeignDirectoryError: what stands in its place, or in it, is no record. DiskFullError.
    """
    run_id = source.name
    staging = staging_of(data / run_id)
    for place in (data / run_id, staging.parent, staging):
        _require_place(place)
    require_lists(data)
    with alone_on(staging, say):
        return _fetched(host, source, data, seen)


def staging_of(local: Path) -> Path:
    """Where a run is staged and verified before it comes to `local`, a directory of the records."""
    return local.parent / _INCOMING / local.name


def _fetched(host: Host, source: Path, data: Path, seen: Home | None) -> Fetched:
    run_id = source.name
    staging = staging_of(data / run_id)
    try:
        closed = RunDirectory(data / run_id).closed is not None
        if not staging.exists() and (data / run_id).exists() and not closed:
            # What is here need not travel again; the host's bytes decide all the same.
            shutil.copytree(data / run_id, staging, symlinks=True)
        host.fetch(source, staging)
        require_plain(staging)
    except ConnectionLostError:
        raise  # what has arrived stays in the staging directory: the next fetch goes on with it
    except shutil.Error as error:
        _discard(staging)
        raise _not_copied(error, data) from error
    except (KitError, OSError):
        _discard(staging)
        raise
    try:
        _cut_torn_tail(RunDirectory(staging))
        if seen is not None:
            require_witnessed(seen, run_id, staging)
        if closed:
            return _beside_closed(RunDirectory(staging), RunDirectory(data / run_id))
        return receive(staging, data / run_id)
    finally:
        _discard(staging)


def already_home(
    seen: RunDirectory, local: RunDirectory, listed: Mapping[str, Digest]
) -> Fetched | None:
    """The run as it is here, where nothing is left to bring; else None.

    `seen`: as it was seen on its host; `listed`: the seals in RUNS. A seal names every byte, and a
    listed run is whole and never changes: so a run that is here under the seal of its host need
    not travel again, and fetching the newest of a thousand does not fetch the others.
    """
    if not (seen.is_sealed and local.is_sealed):
        return None
    if not listed.get(local.path.name) == seen.seal_digest == local.seal_digest:
        return None
    seal = local.seal()
    sizes = {EVENTS_NAME: seal.events.bytes, **{n: file.bytes for n, file in seal.files.items()}}
    if any(_size(local.path / name) != size for name, size in sizes.items()):
        return None  # what was lost here comes back
    return Fetched(local.path.name, local.path, sealed=True, new_bytes=0, listed=False)


def _size(path: Path) -> int:
    return path.stat().st_size if is_regular(path) else -1


def _discard(staging: Path) -> None:
    shutil.rmtree(staging, ignore_errors=True)


def _require_place(local: Path) -> None:
    """ForeignDirectoryError unless the run stands here as a directory of its own, or not at all."""
    if local.is_symlink():
        raise ForeignDirectoryError(
            f"{local} is a link to {local.readlink()}; records stand in {local.parent} themselves",
            f"take the link away: rm {local}",
        )
    if local.exists() and not local.is_dir():
        raise ForeignDirectoryError(
            f"{local} is a file where a run directory belongs", f"move it away: ls -l {local}"
        )


def require_lists(data: Path) -> None:
    """ForeignDirectoryError where RUNS or CHECKPOINT is no file: opening a pipe never ends."""
    for name in (RUNS_NAME, CHECKPOINT_NAME):
        if os.path.lexists(data / name) and not is_regular(data / name):
            raise ForeignDirectoryError(
                f"{data / name} is no file, and lists the runs", f"see: ls -ld {data / name}"
            )


def require_plain(directory: Path) -> None:
    """ForeignDirectoryError where a pipe, socket or device stands below: reading it may never end.

    Links are left to the verification, which refuses them by name.
    """
    for path in sorted(directory.rglob("*")):
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            raise ForeignDirectoryError(
                f"{path} is neither a file nor a directory, so no record", f"see: ls -l {path}"
            )


def _not_copied(error: shutil.Error, data: Path) -> KitError:
    """A directory copy tells its failures as a list of source, target and reason in words."""
    reasons = [(str(source), str(reason)) for source, _, reason in error.args[0]]
    source, reason = reasons[0]
    if any(os.strerror(code) in why for _, why in reasons for code in NO_SPACE):
        return DiskFullError(
            f"no space left to bring the records into {data}",
            "free space on this disk, then fetch again: kit fetch-records",
        )
    return ForeignDirectoryError(f"{source} could not be copied: {reason}", f"see: ls -l {source}")


def carried_data(home: Home, carried: Path) -> Path:
    """Where the records of a carried run belong: synthetic ones never among the measured.

    UnknownRunError where the directory does not begin as a run does.
    """
    first = None
    if os.path.lexists(carried / EVENTS_NAME):
        require_plain(carried)
        first = next(RunDirectory(carried).read(), None)
    if first is None or not isinstance(first.event, RunStarted):
        raise UnknownRunError(
            f"{carried} is not a run directory", f"name the directory that holds {EVENTS_NAME}"
        )
    return home.out / "demo" / "records" if first.event.synthetic else home.data


def _cut_torn_tail(arrived: RunDirectory) -> None:
    """A journal copied while it grows may end in half a line, which the next fetch brings whole."""
    if arrived.is_sealed or not arrived.events.is_file():
        return
    with arrived.events.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - _BLOCK_BYTES)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            end = start + found + 1 if found >= 0 else start
            if found >= 0:
                break
        file.truncate(end)


def _beside_closed(arrived: RunDirectory, local: RunDirectory) -> Fetched:
    """What arrived of a run that was closed here is no more than what had come home by then.

    Otherwise the host was not gone, and what it went on to record would be left out by closing.
    """
    run_id = local.path.name
    verify(arrived, run_id)
    event = local.closed
    lines = arrived.events.read_bytes().splitlines(keepends=True)
    ours = local.events.read_bytes().splitlines(keepends=True)
    same = lines == ours[: len(lines)]
    if same and (arrived.is_sealed == (len(lines) == len(ours))):
        if arrived.is_sealed:  # a copy of the closed run
            require_prefix(local.path, arrived.path)
        # One that was stopped between its seal and its line in RUNS is listed now.
        listed = local.is_sealed and add_run(local.path.parent, Leaf(run_id, local.seal_digest))
        return Fetched(run_id, local.path, local.is_sealed, new_bytes=0, listed=listed)
    came_home = event.came_home if event else 0
    if lines[:came_home] != ours[:came_home]:
        raise _not_a_prefix(run_id, EVENTS_NAME, "differs from what had come home")
    how = "ended it itself" if arrived.is_sealed else "went on with it"
    raise ClosedRunError(
        f"run {run_id} was closed here after {came_home} events, its host being gone; but the host "
        f"{how}, and holds {len(lines)} events: nothing was fetched",
        "keep the host's copy outside of the records, and tell of it: kit finding new; its blocks "
        "are measured again by another run: kit reproduce --new",
    )


def receive(arrived: Path, local: Path) -> Fetched:
    """Verify what arrived, merge it into `local`, and list a sealed run in the checkpoint."""
    run = RunDirectory(arrived)
    verify(run, local.name)
    before = (local / EVENTS_NAME).stat().st_size if (local / EVENTS_NAME).exists() else 0
    if local.exists():
        _require_no_link(local)
        require_prefix(local, arrived)
        _merge(arrived, local)
    else:
        arrived.replace(local)
        _sync_directory(local.parent)
    here = RunDirectory(local)
    listed = here.is_sealed and add_run(local.parent, Leaf(local.name, here.seal_digest))
    new_bytes = here.events.stat().st_size - before
    return Fetched(local.name, local, here.is_sealed, new_bytes, listed)


def verify(run: RunDirectory, run_id: str) -> None:
    """Chain, seal, files and name of a run that arrived. ChainError, ForeignDirectoryError."""
    if not run.events.is_file():
        raise UnknownRunError(f"run {run_id} has no journal yet", remedy="kit status")
    if not run.is_sealed:
        _require_unsealed(run)
        run.verify_chain()
        return
    seal = run.seal()
    if seal.run_id != run_id:
        raise ForeignDirectoryError(f"directory {run_id} holds run {seal.run_id}", "kit audit")
    run.verify_chain()
    for error in run.verify_files():
        raise error


def _require_unsealed(run: RunDirectory) -> None:
    """ForeignDirectoryError: a seal that is no file, or a link, which no seal would name."""
    if os.path.lexists(run.path / SEAL_NAME):
        raise ForeignDirectoryError(
            f"{run.path / SEAL_NAME} is no file, so the run is neither sealed nor under way",
            f"see where it came from: ls -l {SEAL_NAME}",
        )
    _require_no_link(run.path)


def _require_no_link(directory: Path) -> None:
    """ForeignDirectoryError for a link below: what is written by its name lands elsewhere."""
    link = next((path for path in sorted(directory.rglob("*")) if path.is_symlink()), None)
    if link is not None:
        raise ForeignDirectoryError(
            f"{link} is a link to {link.readlink()}; a run holds files of its own alone",
            f"see where it came from: ls -l {link}",
        )


def require_prefix(local: Path, arrived: Path) -> None:
    """NotAPrefixError unless everything in `local` stands unchanged in `arrived`."""
    for path in sorted(p for p in local.rglob("*") if not p.is_dir()):
        name = path.relative_to(local).as_posix()
        other = arrived / name
        if not other.is_file():
            raise _not_a_prefix(local.name, name, "is here, but not where the run was made")
        differs_at = _first_difference(path, other)
        same_end = path.stat().st_size == other.stat().st_size
        if differs_at is not None or (name != EVENTS_NAME and not same_end):
            where = path.stat().st_size if differs_at is None else differs_at
            raise _not_a_prefix(local.name, name, f"differs from byte {where + 1} on")


def _not_a_prefix(run_id: str, name: str, problem: str) -> NotAPrefixError:
    return NotAPrefixError(
        f"run {run_id}: {name} {problem}; nothing was fetched",
        remedy="one of the two was edited: kit audit",
    )


def _first_difference(path: Path, longer: Path) -> int | None:
    """The offset at which `longer` stops beginning with `path`, or None."""
    offset = 0
    with path.open("rb") as a, longer.open("rb") as b:
        while block := a.read(_BLOCK_BYTES):
            other = b.read(len(block))
            if block != other:
                pairs = zip(block, other, strict=False)
                same = next((i for i, (x, y) in enumerate(pairs) if x != y), len(other))
                return offset + same
            offset += len(block)
    return None


def _merge(arrived: Path, local: Path) -> None:
    """Add what is new: other files first, then the journal's new lines, the seal last."""
    for name in _in_order(arrived):
        target = local / name
        if name == EVENTS_NAME:
            _append(arrived / name, target)
        elif not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            (arrived / name).replace(target)
    _sync_directory(local)


def _in_order(arrived: Path) -> Iterator[str]:
    names = [p.relative_to(arrived).as_posix() for p in arrived.rglob("*") if p.is_file()]
    last = (EVENTS_NAME, SEAL_NAME)
    yield from sorted(name for name in names if name not in last)
    yield from (name for name in last if name in names)


def _append(source: Path, target: Path) -> None:
    """The rest of `source`, or nothing of it: a journal here ends in a whole line."""
    before = target.stat().st_size if target.exists() else 0
    try:
        with source.open("rb") as new, target.open("ab") as file:
            new.seek(before)
            shutil.copyfileobj(new, file, _BLOCK_BYTES)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        os.truncate(target, before)
        raise


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
