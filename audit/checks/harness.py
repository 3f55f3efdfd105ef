"""Each run's harness is known by its sources: its archive comes out of them again."""

from __future__ import annotations

from collections.abc import Iterator

from audit.checks.engine import imports_in
from audit.finding import Check, Code, Finding
from audit.harness_archive import digest_of, sources_in, versions
from audit.repository import RepositoryView, RunView
from records import canonical, schema
from records.chain import MAX_LINE_BYTES
from records.digest import Digest
from records.errors import FormatError

UNKNOWN = Code(
    "HARN01",
    "warning",
    "no known source gives the harness that a run names",
    "harness_digest in run.started is the SHA-256 of the harness's archive, which follows from the "
    "sources of records/ and remote/ alone. Neither the work tree nor a commit gives this digest: "
    "the harness was changed and not committed, or the history is not all here.",
    "commit the sources before a run; here: git fetch --unshallow, or measure again",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Find the sources of each run's harness, and look at them too for imports of the engine."""
    wanted: dict[Digest, RunView] = {}
    for run in repository.runs:
        started = run_started(run)
        if started is not None and not started.synthetic:
            wanted.setdefault(started.harness_digest, run)
    if not wanted:
        return
    # Sources in the work tree are read by the engine's check.
    wanted.pop(digest_of(sources_in(repository.root)), None)
    git = repository.git(repository.root) if wanted else None
    for commit, sources in versions(git, repository.root) if git else ():
        if wanted.pop(digest_of(sources), None) is not None:
            for name, source in sorted(sources.items()):
                yield from imports_in(f"{name} (commit {commit[:12]})", source)
        if not wanted:
            return
    for digest, run in wanted.items():
        shown = repository.show(run.directory.events)
        yield UNKNOWN.at(shown, 1, "", str(digest), "the work tree's, or that of a commit")


def run_started(run: RunView) -> schema.RunStarted | None:
    """The first line of a run; None where it is not one (the check of events says so)."""
    if not run.directory.events.is_file():
        return None
    with run.directory.events.open("rb") as file:
        line = file.readline(MAX_LINE_BYTES)
    try:
        event = schema.decode(canonical.decode(line[:-1])).event
    except FormatError:
        return None
    return event if isinstance(event, schema.RunStarted) else None


CHECK = Check(
    "harness",
    "Each run's harness is known by its sources: its archive comes out of them again.",
    (UNKNOWN,),
    check,
    kind="conduct",
)
