"""RUNS, CHECKPOINT, the seals and the directories name the same runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from audit.difference import first_difference
from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView
from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME, Checkpoint, Leaf
from records.errors import FormatError
from records.seal import SEAL_NAME

RUNS_UNREADABLE = Code(
    "CKPT01",
    "error",
    "a line of RUNS cannot be read",
    "RUNS holds one line a sealed run: its id and the digest of its seal.json.",
    "restore RUNS from git",
)
ROOT = Code(
    "CKPT02",
    "error",
    "CHECKPOINT does not cover RUNS",
    "CHECKPOINT holds the number of sealed runs and the RFC 6962 root over the lines of RUNS. A "
    "run that was removed from RUNS, changed or reordered changes the root.",
    "restore RUNS and CHECKPOINT from git",
)
RUN_MISSING = Code(
    "CKPT03",
    "error",
    "a run that RUNS lists is not there",
    "A sealed run, once listed, is never removed: not even a bad one.",
    "restore the run's directory from git",
)
SEAL_CHANGED = Code(
    "CKPT04",
    "error",
    "seal.json is not the one that RUNS lists",
    "A run that was rewritten together with its seal is consistent in itself; only the list of "
    "seals tells.",
    "restore the run from git",
)
UNLISTED = Code(
    "CKPT05",
    "error",
    "a sealed run that RUNS does not list",
    "Every sealed run below records/data is in RUNS, so that none can be chosen afterwards.",
    "kit fetch-records adds a run properly; a run put there by hand does not belong",
)
TWICE = Code(
    "CKPT06",
    "error",
    "RUNS lists a run twice",
    "A run is sealed once.",
    "restore RUNS from git",
)
CHECKPOINT_UNREADABLE = Code(
    "CKPT07",
    "error",
    "CHECKPOINT cannot be read",
    "CHECKPOINT has three lines: origin, number of runs, base64 root (C2SP tlog-checkpoint).",
    "restore CHECKPOINT from git",
)
OPEN = Code(
    "CKPT08",
    "warning",
    "a run that is not sealed",
    "The run was interrupted, or is still going on. Nothing is claimed from it until it is sealed.",
    "where it was begun: kit reproduce --run RUN_ID resumes it, kit status names it; elsewhere: "
    "kit fetch-records brings what its host has more of it, and is that host gone for good, kit "
    "close RUN_ID seals what came home",
)

NO_RUN = Code(
    "CKPT09",
    "error",
    "something beside the runs that is neither a run nor a note",
    "Below records/data stand runs, RUNS and CHECKPOINT, and plain files beside them. A link or a "
    "hidden directory would keep a run out of every list, or let one stand under two names.",
    "remove it, or bring the run in with kit fetch-records",
)
ARRIVING = Code(
    "CKPT10",
    "warning",
    "a fetch of records has not ended",
    "What has arrived of a run stands in .incoming until the whole run is there and verified.",
    "kit fetch-records goes on with it",
)

_INCOMING = ".incoming"


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Compare the list, its root, the seals and the directories."""
    runs_path = repository.data / RUNS_NAME
    shown = repository.show(runs_path)
    listed: dict[str, tuple[int, Leaf]] = {}
    leaves: list[Leaf] = []
    broken = False
    for number, text in enumerate(_lines(runs_path), 1):
        try:
            leaf = Leaf.parse(text)
        except FormatError as error:
            broken = True
            yield RUNS_UNREADABLE.at(
                shown, number, error.message, repr(text[:80]), "<run id> sha256:<64 hex digits>"
            )
            continue
        leaves.append(leaf)
        if leaf.run_id in listed:
            yield TWICE.at(
                shown,
                number,
                f"run {leaf.run_id} is listed on line {listed[leaf.run_id][0]} already",
            )
            continue
        listed[leaf.run_id] = (number, leaf)
    yield from _root(repository, leaves, broken)
    yield from _directories(repository, listed)
    yield from _beside(repository)


def _lines(path: Path) -> list[str]:
    """The lines of RUNS; a torn last one keeps what it has and will not parse."""
    text = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, last + "<no line end>"] if last else lines


def _root(repository: RepositoryView, leaves: list[Leaf], broken: bool) -> Iterator[Finding]:
    path = repository.data / CHECKPOINT_NAME
    shown = repository.show(path)
    want = Checkpoint.of(leaves)
    if not path.is_file():
        if leaves or broken:
            yield CHECKPOINT_UNREADABLE.at(shown, 0, "", "no such file", f"{want.size} runs")
        return
    text = path.read_bytes().decode("utf-8", "replace")
    if text == str(want):
        return
    line, got_line, want_line = first_difference(path.read_bytes(), str(want).encode())
    try:
        got = Checkpoint.parse(text)
    except FormatError as error:
        yield CHECKPOINT_UNREADABLE.at(shown, line, error.message, got_line, want_line)
        return
    yield ROOT.at(shown, line, "", got_line, f"{want_line} (from {RUNS_NAME})")
    yield from _edited_list(repository, leaves, got)


def _edited_list(
    repository: RepositoryView, leaves: list[Leaf], checkpoint: Checkpoint
) -> Iterator[Finding]:
    """Where the seals at hand fit CHECKPOINT, it is the list that was edited: say on which line."""
    sealed = {run.name: run.directory.seal_digest for run in repository.runs if run.is_sealed}
    unlisted = iter(sorted(sealed.keys() - {leaf.run_id for leaf in leaves}))
    held = []
    for leaf in leaves:
        name = leaf.run_id if leaf.run_id in sealed else next(unlisted, "")
        held.append(Leaf(name, sealed[name]) if name else leaf)
    if Checkpoint.of(held) != checkpoint:
        return
    shown = repository.show(repository.data / RUNS_NAME)
    for number, (is_now, was) in enumerate(zip(leaves, held, strict=True), 1):
        if is_now != was:
            message = f"the list was edited: {ROOT.title}"
            yield ROOT.at(shown, number, message, str(is_now), f"{was} (from {CHECKPOINT_NAME})")


def _directories(
    repository: RepositoryView, listed: dict[str, tuple[int, Leaf]]
) -> Iterator[Finding]:
    shown = repository.show(repository.data / RUNS_NAME)
    runs = {run.name: run for run in repository.runs}
    for run_id, (number, leaf) in listed.items():
        run = runs.get(run_id)
        if run is None or not run.is_sealed:
            got = "no such directory" if run is None else f"{run_id} without {SEAL_NAME}"
            yield RUN_MISSING.at(
                shown, number, f"run {run_id}: {RUN_MISSING.title}", got, f"{leaf.seal}"
            )
            continue
        digest = run.directory.seal_digest
        if digest != leaf.seal:
            seal = repository.show(run.directory.path / SEAL_NAME)
            yield SEAL_CHANGED.at(
                seal, 1, "", str(digest), f"{leaf.seal} ({RUNS_NAME} line {number})"
            )
    for name, run in runs.items():
        path = repository.show(run.directory.path)
        if not run.is_sealed:
            if name not in listed:
                yield OPEN.at(path)
        elif name not in listed:
            yield UNLISTED.at(path, 0, "", "not listed", f"{name} {run.directory.seal_digest}")


def _beside(repository: RepositoryView) -> Iterator[Finding]:
    """What stands below records/data and is no run."""
    data = repository.data
    for path in sorted(data.iterdir()) if data.is_dir() else ():
        shown = repository.show(path)
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            yield NO_RUN.at(shown, 0, "", "neither file nor directory", "none")
        elif path.is_dir() and path.name == _INCOMING:
            yield ARRIVING.at(shown)
        elif path.is_dir() and path.name.startswith("."):
            yield NO_RUN.at(shown, 0, "", "a hidden directory", "none")


CHECK = Check(
    "checkpoint",
    "RUNS, CHECKPOINT, the seals and the directories name the same runs.",
    (
        RUNS_UNREADABLE,
        ROOT,
        RUN_MISSING,
        SEAL_CHANGED,
        UNLISTED,
        TWICE,
        CHECKPOINT_UNREADABLE,
        OPEN,
        NO_RUN,
        ARRIVING,
    ),
    check,
    kind="integrity",
)
