"""What git knows of the records: a few read-only questions, asked of the git program.

Invariant: nothing here writes, fetches or follows configuration from outside the repository.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from records.errors import FormatError

# Modes of tree entries that are no regular file (gitdatamodel(7)).
_SYMLINK, _COMMIT = "120000", "160000"
# What a repository's or a user's configuration could do to an answer: colours and signatures inside
# it, roots and merges left out of it, programs run for it (git-config(1)).
_SETTINGS = (
    "color.ui=false",
    "core.commitGraph=false",
    "core.fsmonitor=false",
    "core.hooksPath=" + os.devnull,
    "log.follow=false",
    "log.showRoot=true",
    "log.showSignature=false",
)
_PARTIAL = (
    "config",
    "--local",
    "--get-regexp",
    r"^(extensions\.partialclone|remote\..*\.promisor)$",
)


@dataclass(frozen=True, slots=True)
class Change:
    """How one commit changed one file against one of its parents. `status`: A, M, D or T."""

    commit: str
    status: str
    path: str
    old_blob: str
    new_blob: str


@dataclass(frozen=True, slots=True)
class Git:
    """One work tree. Paths in and out are relative to `top`, with '/'."""

    program: str
    top: Path

    @classmethod
    def find(cls, directory: Path) -> Git | None:
        """The repository that `directory` lies in; None without git or outside a repository.

        None, too, where the repository's configuration (core.worktree) names a work tree elsewhere,
        and in a partial clone, where a question may become a fetch.
        """
        program = shutil.which("git")
        if program is None or not directory.is_dir():
            return None
        found = _run(program, directory, "rev-parse", "--show-toplevel")
        if found.returncode != 0:
            return None
        git = cls(program, Path(os.fsdecode(found.stdout).rstrip("\n")))
        if not _real(directory).is_relative_to(_real(git.top)):
            return None
        if _run(program, git.top, *_PARTIAL).returncode == 0:
            return None
        return (
            git
            if _run(program, git.top, "rev-parse", "-q", "--verify", "HEAD").returncode == 0
            else None
        )

    @classmethod
    def why_not(cls, directory: Path) -> str:
        """Why `find` gives nothing for a directory, in words for the user."""
        program = shutil.which("git")
        if program is None:
            return "no git program"
        said = _run(program, directory, "rev-parse", "--show-toplevel").stderr.decode(
            "utf-8", "replace"
        )
        if "dubious ownership" in said:
            return "git refuses: the directory belongs to another user (git config safe.directory)"
        if _run(program, directory, *_PARTIAL).returncode == 0:
            return "a partial clone, in which git would fetch what it lacks"
        return "no git repository"

    @property
    def is_shallow(self) -> bool:
        """Whether older commits are missing here."""
        return self._text("rev-parse", "--is-shallow-repository").strip() == "true"

    def changes(self, path: Path) -> Iterator[Change]:
        """Every change below `path` in any commit reachable from HEAD, against each parent.

        --full-history: without it git leaves out side branches whose changes were undone by a
        merge, which is just where a removed record would hide.
        """
        output = self._run(
            "log",
            "--full-history",
            "--diff-merges=separate",
            "--raw",
            "--no-abbrev",
            "--no-renames",
            "-O/dev/null",
            "-z",
            "--format=%x01%H",
            "HEAD",
            "--",
            self.relative(path),
        )
        commit = ""
        fields = iter(output.split(b"\0"))
        for field in fields:
            text = os.fsdecode(field).lstrip("\n")
            if text.startswith("\x01"):
                commit = text[1:].strip()
                continue
            if not text.startswith(":"):
                continue
            _, _, old, new, status = text[1:].split(" ")
            yield Change(commit, status[0], os.fsdecode(next(fields)), old, new)

    def uncommitted(self, path: Path) -> Iterator[Change]:
        """Files below `path` that HEAD holds and the work tree changed or lacks.

        The bytes decide, never the index: `git update-index --assume-unchanged` and --skip-worktree
        make every command that reads the index pass over a file.
        """
        output = self._run("ls-tree", "-r", "-z", "HEAD", "--", self.relative(path))
        for entry in output.split(b"\0")[:-1]:
            about, _, raw = entry.partition(b"\t")
            mode, _, old = about.decode("ascii").split(" ")
            name = os.fsdecode(raw)
            status, new = self._work_tree_file(name, mode, old)
            if status:
                yield Change("work tree", status, name, old, new)

    def _work_tree_file(self, name: str, mode: str, old: str) -> tuple[str, str]:
        """("", "") where the file is as in HEAD; else the status and the blob it would be."""
        nothing = "0" * len(old)
        path = self.top
        for part in Path(name).parts[:-1]:
            path /= part
            if path.is_symlink():
                return "T", nothing
        path = self.top / name
        try:
            kind = path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return "D", nothing
        if stat.S_ISLNK(kind) and mode == _SYMLINK:
            data = os.fsencode(path.readlink())
        elif stat.S_ISREG(kind) and mode not in (_SYMLINK, _COMMIT):
            data = path.read_bytes()
        else:
            return "T", nothing
        new = _blob_id(data, old)
        return ("M", new) if new != old else ("", "")

    def overlooked(self, path: Path) -> frozenset[str]:
        """Files below `path` whose changes git was told to pass over (git-ls-files(1), -v)."""
        output = self._run("ls-files", "-v", "-z", "--", self.relative(path))
        entries = (os.fsdecode(entry) for entry in output.split(b"\0")[:-1])
        return frozenset(e[2:] for e in entries if e[0] == "S" or e[0].islower())

    def tracked(self, path: Path) -> tuple[str, ...]:
        """Files below `path` that git's index holds, whether they are here or not."""
        output = self._run("ls-files", "-z", "--", self.relative(path))
        return tuple(os.fsdecode(entry) for entry in output.split(b"\0")[:-1])

    def blob(self, blob: str) -> bytes:
        """The content of a blob."""
        return self._run("cat-file", "blob", blob)

    def versions(self, path: Path) -> Iterator[bytes]:
        """What a file held after each commit that changed it, newest first."""
        ids = [change.new_blob for change in self.changes(path) if change.status != "D"]
        held = self.blobs(ids)
        return (held[id_] for id_ in ids)

    def at(self, commit: str, path: Path) -> bytes | None:
        """What a file held in a commit; None where it was not there."""
        name = f"{commit}:{self.relative(path)}"
        done = _run(self.program, self.top, "cat-file", "blob", name)
        if done.returncode == 0:
            return done.stdout
        if _run(self.program, self.top, "cat-file", "-e", name).returncode != 0:
            return None
        raise _failed(done, "cat-file")

    def commits(self, *paths: Path) -> tuple[str, ...]:
        """Every commit reachable from HEAD that changed something below `paths`, newest first."""
        names = [self.relative(path) for path in paths]
        return tuple(
            self._text("log", "--full-history", "--format=%H", "HEAD", "--", *names).split()
        )

    def files(self, commit: str, *paths: Path) -> dict[str, str]:
        """Path -> blob of every file below `paths` in a commit."""
        names = [self.relative(path) for path in paths]
        output = self._run("ls-tree", "-r", "-z", commit, "--", *names)
        found = {}
        for entry in output.split(b"\0")[:-1]:
            about, _, name = entry.partition(b"\t")
            found[os.fsdecode(name)] = about.split(b" ")[2].decode("ascii")
        return found

    def published(self) -> tuple[tuple[str, str], ...]:
        """(name, commit) of every tag and remote branch: what others may have seen."""
        form = "--format=%(refname) %(objectname) %(*objectname)"
        lines = self._text("for-each-ref", form, "refs/remotes", "refs/tags").splitlines()
        parts = (line.split(" ") for line in lines)
        return tuple((name, peeled or commit) for name, commit, peeled in parts)

    def blobs(self, ids: Iterable[str]) -> dict[str, bytes]:
        """The contents of many blobs, by one process."""
        wanted = list(dict.fromkeys(ids))
        output = self._run("cat-file", "--batch", stdin="".join(f"{i}\n" for i in wanted).encode())
        found, at = {}, 0
        for blob in wanted:
            head, _, _ = output[at : at + 200].partition(b"\n")
            words = head.split(b" ")
            if len(words) != 3 or words[1] != b"blob":
                raise FormatError(f"git has no blob {blob}", remedy="git fsck")
            start = at + len(head) + 1
            found[blob] = output[start : start + int(words[2])]
            at = start + int(words[2]) + 1
        return found

    def relative(self, path: Path) -> str:
        """A path as git writes it; links are followed only where it seems to lie outside."""
        if path.is_relative_to(self.top) and ".." not in path.parts:
            return path.relative_to(self.top).as_posix()
        top = _real(self.top)
        for real in (_real(path.parent) / path.name, _real(path)):
            if real.is_relative_to(top):
                return real.relative_to(top).as_posix()
        raise FormatError(f"{path} lies outside {self.top}", remedy="name a path inside it")

    def _text(self, *arguments: str) -> str:
        return os.fsdecode(self._run(*arguments))

    def _run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        done = _run(self.program, self.top, *arguments, stdin=stdin)
        if done.returncode != 0:
            raise _failed(done, arguments[0])
        return done.stdout


def _failed(done: subprocess.CompletedProcess[bytes], command: str) -> FormatError:
    said = os.fsdecode(done.stderr).strip()
    return FormatError(f"git {command}: {said}", remedy="git fsck")


def _real(path: Path) -> Path:
    """As Path.resolve, which raises at a loop of links."""
    return Path(os.path.realpath(path))


def _blob_id(data: bytes, like: str) -> str:
    """The object id of a blob, by the hash of a repository whose ids look like `like`."""
    whole = b"blob %d\0" % len(data) + data
    if len(like) == 64:
        return hashlib.sha256(whole).hexdigest()
    return hashlib.sha1(whole, usedforsecurity=False).hexdigest()


def _run(
    program: str, directory: Path, *arguments: str, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    # GIT_* variables (set inside hooks) would point to another repository or index.
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_GRAFT_FILE": os.devnull, "GIT_NO_LAZY_FETCH": "1"}
    options = ["--no-replace-objects", "--literal-pathspecs"]
    options += [word for setting in _SETTINGS for word in ("-c", setting)]
    return subprocess.run(
        [program, *options, "-C", str(directory), *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        env=env,
    )
