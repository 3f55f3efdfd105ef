"""Every line of every journal follows from the line before it, to the head in the seal."""

from __future__ import annotations

from collections.abc import Iterator

from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView, RunView
from records import chain
from records.chain import BrokenLineError
from records.run_directory import is_regular
from records.seal import SEAL_NAME

BROKEN = Code(
    "CHAIN01",
    "error",
    "a line of the journal does not follow from the line before it",
    "Each line of events.jsonl carries the SHA-256 of the line before it, and the seal that of the "
    "last one. A line that was changed, moved, added or removed breaks this at a place that can be "
    "named. records/FORMAT.md shows how to check it with sha256sum alone.",
    "restore the file from git or from the host: a run is never edited",
)
MISSING = Code(
    "CHAIN02",
    "error",
    "the run has no journal",
    "A run directory holds events.jsonl. Without it nothing of the run can be believed.",
    "restore events.jsonl from git or from the host",
)
LENGTH = Code(
    "CHAIN03",
    "error",
    "the journal is not as long as its seal says",
    "seal.json names the number of lines and bytes of the journal when the run ended.",
    "restore the file from git or from the host: a sealed journal neither grows nor shrinks",
)
TORN = Code(
    "CHAIN04",
    "warning",
    "the journal of an open run ends in the middle of a line",
    "The harness was stopped while it wrote. When it resumes, it cuts the torn line and records "
    "how long it was.",
    "resume the run: kit reproduce --run RUN_ID",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Follow the chain of every run."""
    for run in repository.runs:
        yield from _run(repository, run)


def _run(repository: RepositoryView, run: RunView) -> Iterator[Finding]:
    events = run.directory.events
    shown = repository.show(events)
    if not is_regular(events):
        yield MISSING.at(shown)
        return
    size = events.stat().st_size
    sealed = run.seal.events if run.seal else None
    try:
        with events.open("rb") as file:
            state = chain.verify(
                chain.lines_of(file),
                head=sealed.head if sealed else None,
                length=sealed.lines if sealed else None,
            )
    except BrokenLineError as error:
        if not run.is_sealed and error.want == "a line end":
            yield TORN.at(shown, error.line, got=error.got, want=error.want)
            return
        yield BROKEN.at(shown, error.line, error.message, error.got, error.want)
        if sealed and size != sealed.bytes:
            yield LENGTH.at(shown, 0, "", f"{size} bytes", f"{sealed.bytes} bytes (from the seal)")
        return
    if sealed and state.bytes != sealed.bytes:
        # The head fits, so it is the seal's number that is wrong.
        seal = repository.show(run.directory.path / SEAL_NAME)
        yield LENGTH.at(seal, 1, "", f"{sealed.bytes} bytes", f"{state.bytes} bytes (the journal)")


CHECK = Check(
    "chain",
    "Every line of every journal follows from the line before it, to the head in the seal.",
    (BROKEN, MISSING, LENGTH, TORN),
    check,
    scope="bytes",
    kind="integrity",
)
