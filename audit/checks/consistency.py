"""Each CHECKPOINT that git knows extends the one before it, by an RFC 6962 consistency proof.

Invariant: the proof is made from the newer list alone and verified against both stated roots, as a
witness would who kept nothing but the older CHECKPOINT.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from audit.finding import Check, Code, Finding
from audit.git import Change, Git
from audit.placement import records_git
from audit.repository import RepositoryView
from records import merkle
from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME, Checkpoint, Leaf, parse_runs
from records.errors import FormatError
from records.run_directory import is_regular

INCONSISTENT = Code(
    "HIST04",
    "error",
    "CHECKPOINT does not extend the one before it",
    "From one commit to the next the tree over RUNS only grows: an RFC 6962 consistency proof from "
    "the older root to the newer one verifies. A run that was removed, replaced or moved breaks it "
    "even where the new list, its seals and its root agree with each other.",
    "restore RUNS, CHECKPOINT and the runs from the commit before",
)
UNCOVERED = Code(
    "HIST05",
    "error",
    "a commit holds a CHECKPOINT that does not cover its RUNS",
    "RUNS and CHECKPOINT change together. Where they did not, one of the two was edited by hand.",
    "commit RUNS and CHECKPOINT together, as kit fetch-records leaves them",
)
FORKED = Code(
    "HIST06",
    "error",
    "a published branch or tag holds other records",
    "Tags and remote branches are what others have seen. Of two lists of runs one must begin with "
    "the other; otherwise history was rewritten here or there (a split view, RFC 6962, 5.4).",
    "compare both with git; records that were published are never replaced",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Prove each step in the history of CHECKPOINT, then compare with what was published."""
    git = records_git(repository)
    if git is None:
        return  # the check of the history says so
    path = repository.data / CHECKPOINT_NAME
    changes = [c for c in (*git.changes(path), *git.uncommitted(path)) if c.status in "AM"]
    for change in changes:
        yield from _step(repository, git, change)
    stepped = {change.commit for change in changes}
    for commit in git.commits(repository.data / RUNS_NAME):
        stated = git.at(commit, path) if commit not in stepped else None
        if stated is not None:
            yield from _covers(repository, git, commit, stated)
    yield from _published(repository, git)


def _covers(repository: RepositoryView, git: Git, commit: str, stated: bytes) -> Iterator[Finding]:
    """A commit that changed RUNS and left CHECKPOINT as it was."""
    shown = repository.show(repository.data / CHECKPOINT_NAME)
    where = f"commit {commit[:12]}"
    try:
        got = Checkpoint.parse(_text(stated))
        want = Checkpoint.of(parse_runs(_text(git.at(commit, repository.data / RUNS_NAME) or b"")))
    except FormatError as error:
        yield UNCOVERED.at(shown, 0, f"{where}: {error.message}")
        return
    if got != want:
        message = f"{where}: {UNCOVERED.title}"
        yield UNCOVERED.at(shown, 0, message, _said(got), f"{_said(want)} (RUNS there)")


def _step(repository: RepositoryView, git: Git, change: Change) -> Iterator[Finding]:
    path = repository.data / CHECKPOINT_NAME
    shown = repository.show(path)
    here = change.commit == "work tree"
    where = change.commit if here else f"commit {change.commit[:12]}"
    try:
        new = Checkpoint.parse(_text(path.read_bytes() if here else git.blob(change.new_blob)))
        runs = repository.data / RUNS_NAME
        held = git.at(change.commit, runs) if not here else _now(runs)
        leaves = parse_runs(_text(held or b""))
    except FormatError as error:
        if not here:  # in the work tree the check of the checkpoint says it
            yield UNCOVERED.at(shown, 0, f"{where}: {error.message}")
        return
    if Checkpoint.of(leaves) != new:
        if not here:
            want = Checkpoint.of(leaves)
            yield UNCOVERED.at(
                shown, 0, f"{where}: {UNCOVERED.title}", _said(new), f"{_said(want)} (RUNS there)"
            )
        return
    if change.status == "A":
        return
    try:
        old = Checkpoint.parse(_text(git.blob(change.old_blob)))
    except FormatError:
        return  # said of the commit that wrote it
    if not extends(old, new, leaves):
        message = f"{where}: {INCONSISTENT.title}"
        yield INCONSISTENT.at(shown, 0, message, _said(new), f"a tree that extends {_said(old)}")


def _now(path: Path) -> bytes:
    return path.read_bytes() if is_regular(path) else b""


def extends(old: Checkpoint, new: Checkpoint, leaves: Sequence[Leaf]) -> bool:
    """Whether `new`, the checkpoint of `leaves`, is consistent with the older `old`."""
    if old.size == 0:
        return old == Checkpoint.of(())
    if old.size > new.size:
        return False
    if old.size == new.size:
        return old.root == new.root
    proof = merkle.consistency_proof(old.size, [str(leaf).encode() for leaf in leaves])
    return merkle.verify_consistency(old.size, old.root, new.size, new.root, proof)


def _published(repository: RepositoryView, git: Git) -> Iterator[Finding]:
    try:
        ours = parse_runs(_text(_read(repository)))
    except FormatError:
        return  # the check of the checkpoint says it
    for name, commit in git.published():
        text = git.at(commit, repository.data / CHECKPOINT_NAME)
        listed = git.at(commit, repository.data / RUNS_NAME)
        if text is None or listed is None:
            continue
        try:
            theirs, leaves = Checkpoint.parse(_text(text)), parse_runs(_text(listed))
        except FormatError as error:
            yield FORKED.at(repository.show(repository.data), 0, f"{name}: {error.message}")
            continue
        mine = Checkpoint.of(ours)
        if not (extends(theirs, mine, ours) or extends(mine, theirs, leaves)):
            shown = repository.show(repository.data / CHECKPOINT_NAME)
            got, want = _said(mine), f"a tree in line with {_said(theirs)} ({name})"
            yield FORKED.at(shown, 0, f"{name}: {FORKED.title}", got, want)


def _read(repository: RepositoryView) -> bytes:
    path = repository.data / RUNS_NAME
    return path.read_bytes() if path.is_file() else b""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _said(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.size} runs under {checkpoint.root}"


CHECK = Check(
    "consistency",
    "Each CHECKPOINT that git knows extends the one before it, by an RFC 6962 consistency proof.",
    (INCONSISTENT, UNCOVERED, FORKED),
    check,
    kind="integrity",
)
