"""Files that take their names once the last byte of them is on disk.

Invariant: a full disk, Ctrl-C or a kill leaves under a name what stood there before. Files of one
directory take their names one right after the other, the one that tells what the others are last;
while they do, the old one that told it is gone, so that old and new are never told to be one.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from records.durable import NO_SPACE, flush_directory, scratch_of
from records.errors import DiskFullError, ExportError

# Where files wait that are to stand in a directory that is there already: beside it may be no
# room for them, another file system or no right to write.
STAGE_NAME = ".export.new"
_UNLOCKABLE = frozenset({errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})


@contextmanager
def whole_directory(out: Path, names: Sequence[str]) -> Iterator[Path]:
    """A directory to fill with the entries `names`, which at the end stand in `out`.

    The last name is the one that tells what the others are. What else `out` holds is not touched.
    DiskFullError: no space. ExportError: `out` cannot be written, is no directory, holds a
    directory under one of the names, or another process is about to fill it.
    """
    require_place(out, directory=True)
    with _told(out):
        out = out.resolve()  # "." and a link have no name of their own beside which to write
        there = out.is_dir()
        for name in names:
            if (out / name).is_dir():
                raise ExportError(
                    f"{out / name} is a directory, where a file is to stand",
                    "move it away, or name another place with --out",
                )
        with _stage(out / STAGE_NAME if there else scratch_of(out), out) as stage:
            yield stage
            _flush(stage)
            if there:
                _move(stage, out, names)
            else:
                stage.rename(out)
                flush_directory(out.parent)


@contextmanager
def whole_file(out: Path, option: str = "--out") -> Iterator[Path]:
    """Where to write the file that at the end stands at `out`. Errors as of `whole_directory`.

    `option`: the word of the command line that names another place, "" where there is none.
    """
    require_place(out, directory=False, option=option)
    with _told(out, option):
        out = out.resolve()
        with _stage(scratch_of(out), out) as stage:
            yield stage / out.name
            _flush(stage)
            (stage / out.name).replace(out)
            flush_directory(out.parent)


def require_place(out: Path, *, directory: bool, option: str = "--out") -> None:
    """The errors of `whole_directory` or `whole_file` now, before what is to be written is made."""
    with _told(out, option):
        if not directory and _is_device(out):
            return
        where = out.resolve()
        if where.exists() and where.is_dir() != directory:
            kinds = ("a directory", "a file") if where.is_dir() else ("a file", "a directory")
            raise ExportError(
                f"{where} is {kinds[0]}, not {kinds[1]}",
                f"name {kinds[1]} with {option}"
                if option
                else f"move it away: ls -ld {shlex.quote(str(where))}",
            )
        with _stage(where / STAGE_NAME if where.is_dir() else scratch_of(where), where):
            pass


def write_whole(out: Path, data: bytes, option: str = "--out") -> None:
    """Put a file with these bytes at `out`; a pipe or device there is written to as it is."""
    require_place(out, directory=False, option=option)
    if _is_device(out):
        with _told(out, option):
            out.write_bytes(data)
        return
    with whole_file(out, option) as fresh:
        fresh.write_bytes(data)


def _is_device(out: Path) -> bool:
    """Whether something is there that is no file and no directory: /dev/stdout, say, or a pipe."""
    return out.exists() and not out.is_file() and not out.is_dir()


@contextmanager
def _stage(stage: Path, out: Path) -> Iterator[Path]:
    """An empty directory of this process alone, which is gone afterwards."""
    stage.mkdir(parents=True, exist_ok=True)
    fd = os.open(stage, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not _locked(fd, stage):
            raise ExportError(
                f"another command is writing {out} at this moment",
                "wait for its end, or name another place",
            )
        _empty(stage)  # of one that was killed
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    finally:
        os.close(fd)


def _locked(fd: int, stage: Path) -> bool:
    """Whether the directory is this process's own, and still at its path."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # nfs(5): flock is emulated there by locks that a directory cannot have.
        if error.errno not in _UNLOCKABLE:
            raise
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(fd), stage.lstat())
    return False


def _empty(stage: Path) -> None:
    for entry in list(stage.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _flush(top: Path) -> None:
    """Flush all of it: some file systems say only then that there is no space."""
    for folder, _, names in os.walk(top):
        for name in names:
            fd = os.open(Path(folder) / name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        flush_directory(Path(folder))


def _move(stage: Path, out: Path, names: Sequence[str]) -> None:
    *others, label = names
    old, new = out / label, stage / label
    if old.is_file() and old.read_bytes() != new.read_bytes():
        old.unlink()
    for name in (*others, label):
        (stage / name).replace(out / name)
    flush_directory(out)


@contextmanager
def _told(out: Path, option: str = "--out") -> Iterator[None]:
    """What the system refuses at `out`, as an error that names it."""
    try:
        yield
    except OSError as error:
        # A failed write knows no name, a failed copy that of what is read first.
        names = [one for one in (error.filename, error.filename2) if isinstance(one, str)]
        elsewhere = f", or name a place elsewhere with {option}" if option else ""
        named = next((name for name in names if _concerns(Path(name), out)), "")
        if names and not named:
            raise
        if error.errno in NO_SPACE:
            raise DiskFullError(
                f"no space left to write {out}; nothing there has changed",
                f"free space there{elsewhere}, and start again",
            ) from error
        if not named:
            raise
        if error.errno == errno.ENAMETOOLONG:
            raise ExportError(
                f"{out} cannot be written: {error.strerror}",
                f"name it shorter{f' with {option}' if option else ''}",
            ) from error
        there = _nearest(Path(named))
        raise ExportError(
            f"{out} cannot be written: {there}: {error.strerror}",
            f"see what is in the way (ls -ld {shlex.quote(str(there))}){elsewhere}",
        ) from error


def _nearest(path: Path) -> Path:
    """The path, or the nearest above it that is there."""
    # Path.exists raises where a directory above must not be looked into.
    return next((one for one in (path, *path.absolute().parents) if os.path.lexists(one)), path)


def _concerns(path: Path, out: Path) -> bool:
    """Whether it is `out`, where it is staged, or a directory that either needs."""
    out = Path(os.path.realpath(out))
    staged = (out, out / STAGE_NAME, scratch_of(out) if out.name else out)
    path = path.absolute()
    return any(path == one or path in one.parents or one in path.parents for one in staged)
