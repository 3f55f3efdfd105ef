"""Records in git only ever grow: no commit changed or removed a record that an earlier one held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from audit.difference import first_difference
from audit.finding import Check, Code, Finding
from audit.git import Change, Git
from audit.placement import misplaced, records_git
from audit.repository import RepositoryView
from audit.signature import allowed_signers_at, signatures_at
from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME
from records.journal import EVENTS_NAME

REMOVED = Code(
    "HIST01",
    "error",
    "a record that git held was removed",
    "Records are never removed, not even bad ones: what is left out afterwards cannot be told from "
    "what never was.",
    "restore the file from the commit before",
)
REWRITTEN = Code(
    "HIST02",
    "error",
    "a record that git held was changed",
    "A journal may grow while its run is open, and RUNS by a line a run; nothing else below "
    "records/data or records/signatures changes once it is committed.",
    "restore the file from the commit before",
)
UNKNOWN = Code(
    "HIST03",
    "warning",
    "the history of the records is not known here",
    "The check needs git and the whole history. In an archive, a shallow or a partial clone, or a "
    "directory of another user, only the other checks hold; compare CHECKPOINT with a copy from "
    "elsewhere.",
    "git clone the whole repository (in a shallow clone: git fetch --unshallow), then kit audit",
)

MISPLACED = Code(
    "HIST07",
    "error",
    "records, locks or paper do not lie in the project's own repository",
    "A second repository inside the project, or a link in place of a directory, would answer for "
    "the history in place of the project's own, and could be made after the fact.",
    "remove the inner .git or the link; restore the directory from git",
)
OVERLOOKED = Code(
    "HIST08",
    "error",
    "a changed file that git was told to overlook",
    "After git update-index --assume-unchanged or --skip-worktree, git status says nothing of "
    "changes to a file. Locks and the paper may be edited, but never out of sight.",
    "git update-index --no-assume-unchanged --no-skip-worktree FILE, then look at git diff",
)

TRUSTED = Code(
    "HIST09",
    "error",
    "the working directory of somebody else came with git",
    ".kit/ holds an engine, models and the notes of earlier audits, which kit audit --incremental "
    "believes. They are nobody's but the user's own.",
    "git rm --cached -r .kit, and delete the directory",
)
WORKING = ".kit"

_GROWING = (EVENTS_NAME, RUNS_NAME)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Look at every change to the records in every commit, and in the work tree."""
    data = repository.data
    signatures, signers = signatures_at(data), allowed_signers_at(data)
    others = [repository.root / name for name in ("images", "paper")]
    for directory in (data, signatures, *others):
        for path, what in misplaced(repository.root, directory):
            yield MISPLACED.at(repository.show(path), 0, "", what, "none")
    git = records_git(repository)
    if git is None:
        if data.is_dir() and any(data.iterdir()):
            own = data.is_relative_to(repository.root)
            why = Git.why_not(repository.root if own else data)
            yield UNKNOWN.at(repository.show(data), 0, "", why, "its history")
        return
    if git.is_shallow:
        yield UNKNOWN.at(repository.show(data), 0, "", "a shallow clone", "the whole history")
    for change in (*git.changes(data), *git.uncommitted(data)):
        inside = PurePosixPath(change.path).relative_to(git.relative(data))
        if len(inside.parts) == 1 and inside.name not in (RUNS_NAME, CHECKPOINT_NAME):
            continue  # a note beside the runs is no record
        yield from _judge(repository, git, change)
    # A signature is made once; of the list of signers only the loss says anything.
    for change in (*git.changes(signatures), *git.uncommitted(signatures)):
        yield from _judge(repository, git, change)
    for change in (*git.changes(signers), *git.uncommitted(signers)):
        if change.status != "M":
            yield from _judge(repository, git, change)
        else:
            yield from _keys_gone(repository, git, change)
    working = repository.root / WORKING
    for name in git.tracked(working) if working.is_relative_to(git.top) else ():
        yield TRUSTED.at(repository.show(git.top / name), 0, "", "in git's index", "ignored")
    for directory in others:
        if directory.is_relative_to(git.top):
            yield from _hidden(repository, git, directory)


def _hidden(repository: RepositoryView, git: Git, directory: Path) -> Iterator[Finding]:
    """Changed files of a directory that may change, out of sight."""
    overlooked = git.overlooked(directory)
    for change in git.uncommitted(directory) if overlooked else ():
        if change.path in overlooked:
            shown = repository.show(git.top / change.path)
            yield OVERLOOKED.at(shown, 0, "", change.status, f"blob {change.old_blob[:12]}")


def _judge(repository: RepositoryView, git: Git, change: Change) -> Iterator[Finding]:
    path = git.top / change.path
    shown = repository.show(path)
    name = path.name
    where = change.commit if change.commit == "work tree" else f"commit {change.commit[:12]}"
    if change.status == "A" or (name == CHECKPOINT_NAME and change.status == "M"):
        return
    if change.status == "D":
        yield REMOVED.at(shown, 0, "", f"removed in {where}", f"blob {change.old_blob[:12]}")
        return
    if change.status == "M" and name in _GROWING:
        old = git.blob(change.old_blob)
        new = path.read_bytes() if where == "work tree" else git.blob(change.new_blob)
        if new.startswith(old):
            return
        line, _, _ = first_difference(old, new)
        yield REWRITTEN.at(shown, line, "", f"another line in {where}", "only lines added")
        return
    yield REWRITTEN.at(shown, 0, "", f"changed in {where}", f"blob {change.old_blob[:12]}")


def _keys_gone(repository: RepositoryView, git: Git, change: Change) -> Iterator[Finding]:
    """Lines that a list of signers lost: an old signature still needs its key."""
    path = git.top / change.path
    now = path.read_bytes() if change.commit == "work tree" else git.blob(change.new_blob)
    kept = set(now.splitlines())
    for number, line in enumerate(git.blob(change.old_blob).splitlines(), 1):
        if line.strip() and not line.startswith(b"#") and line not in kept:
            got = f"a key taken out in {change.commit[:12]}"
            want = 'the line, with valid-before="…" once the key is not to be used any more'
            yield REWRITTEN.at(repository.show(path), number, "", got, want)


CHECK = Check(
    "history",
    "Records in git only ever grow: no commit changed or removed a record an earlier one held.",
    (REMOVED, REWRITTEN, UNKNOWN, MISPLACED, OVERLOOKED, TRUSTED),
    check,
    kind="integrity",
)
