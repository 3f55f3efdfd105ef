"""Keep a copy of a host's jobs, journals and logs here, and read it instead of the host.

Invariant: the copy only grows, by whole lines, from the offset it has reached; a journal that was
followed is a witness here against one that is edited on the host afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kit.home import Home
from kit.hosts.host import Host
from records import chain
from records.errors import NotAPrefixError
from records.journal import EVENTS_NAME
from records.run_directory import RunDirectory
from records.seal import SEAL_NAME


def refresh_jobs(host: Host, home: Home) -> Home:
    """Take in the jobs that stand on the host, also those that another machine started there."""
    there, here = host.home(home), host.mirror(home)
    if here == home:
        return here
    here.jobs.mkdir(parents=True, exist_ok=True)
    for name in host.names(there.jobs):
        target = here.jobs / name
        if name.endswith(".json") and not target.exists():
            _write(target, host.read(there.jobs / name))
    return here


def refresh_run(host: Host, home: Home, run_id: str) -> None:
    """Bring journal, log and seal of a run up to date. NotAPrefixError if a journal was cut."""
    there, here = host.home(home), host.mirror(home)
    if here == home:
        return
    # The seal is looked for first: what it seals is then surely copied below.
    seal = _read(host, there.run(run_id) / SEAL_NAME)
    _grow(host, there.log(run_id), here.log(run_id))
    _grow(host, there.run(run_id) / EVENTS_NAME, here.run(run_id) / EVENTS_NAME)
    target = here.run(run_id) / SEAL_NAME
    if seal and not target.exists():
        _write(target, seal)


def refresh_all(host: Host, home: Home) -> Home:
    """Jobs, and every run that is not known as sealed; the copy's home."""
    here = refresh_jobs(host, home)
    if here != home:
        for run_id in job_ids(here):
            if not RunDirectory(here.run(run_id)).is_sealed:
                refresh_run(host, home, run_id)
    return here


def job_ids(here: Home) -> Iterator[str]:
    """The run ids of the jobs that stand here."""
    return (path.stem for path in sorted(here.jobs.glob("*.json")))


def require_witnessed(here: Home, run_id: str, arrived: Path) -> None:
    """NotAPrefixError unless the journal that arrived begins with what was seen while it grew."""
    seen = here.run(run_id) / EVENTS_NAME
    if not seen.is_file():
        return
    with seen.open("rb") as ours, (arrived / EVENTS_NAME).open("rb") as theirs:
        same = (theirs.readline(len(line) + 1) == line for line in chain.lines_of(ours))
        try:
            number = next((n for n, holds in enumerate(same, 1) if not holds), 0)
        except chain.BrokenLineError as error:
            raise NotAPrefixError(
                f"run {run_id}: {EVENTS_NAME} as it was seen when the host wrote it is no journal: "
                f"{error.message}; nothing was fetched",
                remedy=f"what was seen stands in {seen}",
            ) from error
    if number == 0:
        return
    raise NotAPrefixError(
        f"run {run_id}: {EVENTS_NAME} differs at line {number} from what was seen when the host "
        "wrote it; nothing was fetched",
        remedy=f"it was edited on the host since; the lines seen stand in {seen}",
    )


def _grow(host: Host, source: Path, target: Path) -> None:
    size = target.stat().st_size if target.exists() else 0
    # One byte less, the line end that was copied last: it shows whether the file is still as long.
    start = max(0, size - 1)
    new = _read(host, source, start)
    if size and not new.startswith(b"\n"):
        raise NotAPrefixError(
            f"{source} on {host.name} is no longer what was seen of it: got "
            f"{len(new) + start} bytes or another line, want at least {size} bytes",
            remedy=f"it was cut or edited there; what was seen stands in {target}",
        )
    whole = new[size - start : new.rfind(b"\n") + 1]
    if whole:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("ab") as file:
            file.write(whole)


def _read(host: Host, path: Path, offset: int = 0) -> bytes:
    try:
        return host.read(path, offset)
    except FileNotFoundError:
        return b""


def _write(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.new")
    fresh.write_bytes(data)
    fresh.replace(target)
