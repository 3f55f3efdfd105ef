"""A sealed run holds exactly the files that its seal names, to the last byte."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView, RunView
from records.digest import Digest
from records.journal import EVENTS_NAME
from records.run_directory import is_regular
from records.schema import BootEnded, RunStarted, WindowEnded
from records.seal import SEAL_NAME

UNREADABLE = Code(
    "SEAL01",
    "error",
    "the seal cannot be read",
    "seal.json is one line of canonical JSON with known keys. Anything else is not a seal.",
    "restore seal.json from git or from the host",
)
DIFFERS = Code(
    "SEAL02",
    "error",
    "a file of a sealed run is not what the seal says",
    "seal.json names every file of the run by length and SHA-256.",
    "restore the file from git or from the host: a sealed run is never edited",
)
ABSENT = Code(
    "SEAL03",
    "error",
    "a file that the seal names is missing",
    "Logs and metrics pages belong to the run; events name them by digest.",
    "restore the file from git or from the host",
)
STRANGER = Code(
    "SEAL04",
    "error",
    "a file in a sealed run that its seal does not name",
    "Whatever is added to a run after its end is not part of it, and must not look as if it were.",
    "move the file out of the run",
)
NAME = Code(
    "SEAL05",
    "error",
    "directory, seal and journal name different runs",
    "A run is known by one id: its directory's name, in its seal and in run.started.",
    "rename the directory back",
)
ATTACHED = Code(
    "SEAL06",
    "error",
    "an event names a file by a digest that the seal does not confirm",
    "boot.ended names the engine's log and window.ended the metrics pages, each by digest.",
    "restore the run from git or from the host",
)

IRREGULAR = Code(
    "SEAL07",
    "error",
    "in a run, something that is neither a file nor a directory",
    "A run is made of plain files. A link, a pipe or a directory where the journal or the seal "
    "should be can show one thing today and another tomorrow.",
    "restore the run from git or from the host",
)

_SAFE = re.compile(r"[0-9A-Za-z._-]+(/[0-9A-Za-z._-]+)*")


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Hold every sealed run against its seal."""
    for run in repository.runs:
        yield from _irregular(repository, run)
        if run.is_sealed:
            yield from _run(repository, run)


def _irregular(repository: RepositoryView, run: RunView) -> Iterator[Finding]:
    """Journal and seal of every run; in an open one everything, which has no seal to name it."""
    path = run.directory.path
    own = {path / EVENTS_NAME, path / SEAL_NAME}
    for file in sorted(own if run.is_sealed else path.rglob("*")):
        if not os.path.lexists(file) or is_regular(file):
            continue
        if file in own or file.is_symlink() or not file.is_dir():
            yield IRREGULAR.at(repository.show(file), 0, "", "no regular file", "a file")


def _run(repository: RepositoryView, run: RunView) -> Iterator[Finding]:
    path = run.directory.path
    if run.seal is None:
        yield UNREADABLE.at(repository.show(path / SEAL_NAME), 1, run.seal_problem)
        return
    if run.seal.run_id != run.name:
        yield NAME.at(repository.show(path / SEAL_NAME), 1, "", run.seal.run_id, run.name)
    for name, want in run.seal.files.items():
        file = path / name
        shown = repository.show(file)
        if not _SAFE.fullmatch(name) or ".." in name.split("/") or not is_regular(file):
            yield ABSENT.at(shown, 0, "", "no such file", f"{want.bytes} bytes of {want.digest}")
            continue
        with file.open("rb") as opened:
            got = Digest.of_file(opened)
        if got != want.digest:
            size = file.stat().st_size
            yield DIFFERS.at(
                shown, 0, "", f"{size} bytes of {got}", f"{want.bytes} bytes of {want.digest}"
            )
    for file in run.directory.strangers(run.seal):
        yield STRANGER.at(repository.show(file), 0, "", "a file", "none of this name")


def check_events(repository: RepositoryView) -> Iterator[Finding]:
    """Hold what the events say of the run's name and files against its seal."""
    for run in repository.runs:
        if run.seal is not None and run.seal.run_id == run.name:
            yield from _events(repository, run)


def _events(repository: RepositoryView, run: RunView) -> Iterator[Finding]:
    scan = repository.scan(run)
    shown = repository.show(run.directory.events)
    files = run.seal.files if run.seal else {}
    for event in scan.events:
        value = event.value
        if isinstance(value, RunStarted) and value.run_id != run.name:
            yield NAME.at(shown, event.line, "", value.run_id, run.name)
        named = {}
        if isinstance(value, BootEnded):
            named = value.logs
        elif isinstance(value, WindowEnded):
            named = value.metrics
        for name, digest in named.items():
            got = str(files[name].digest) if name in files else "not in the seal"
            if got != str(digest):
                yield ATTACHED.at(shown, event.line, f"{name}: {ATTACHED.title}", got, str(digest))


CHECK = Check(
    "seal",
    "A sealed run holds exactly the files that its seal names, to the last byte.",
    (UNREADABLE, DIFFERS, ABSENT, STRANGER, NAME, IRREGULAR),
    check,
    scope="bytes",
    kind="integrity",
)

EVENTS_CHECK = Check(
    "attachments",
    "Events name their run and its files by the digests that the seal confirms.",
    (ATTACHED,),
    check_events,
    scope="meaning",
    kind="integrity",
)
