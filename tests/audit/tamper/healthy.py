"""A healthy repository for the audit to find nothing in, and the tools of whoever would spoil it.

Invariant: everything is written by the real journal, seal, checkpoint, tables and ssh-keygen; what
the tools here recompute afterwards is all that somebody without the signing key could recompute.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis.publish import write_run_tables
from analysis.reading import read_run
from audit.harness_archive import digest_of, sources_in
from audit.paper import paper
from audit.repository import RepositoryView
from audit.signature import NAMESPACE, Subject, allowed_signers_at, checkpoint_text, signatures_at
from records import canonical, chain
from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME, Checkpoint, Leaf, parse_runs
from records.digest import Digest
from records.run_directory import RunDirectory
from records.seal import SEAL_NAME, write_seal
from tests import sealed_run

ROOT = Path(__file__).parents[3]
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
STUDY = "test-plan"
CLAIM = f"{STUDY}.draft.c1.acceptance.mean"
Event = dict[str, Any]

_FINDING = """\
---
id: {id}
title: {title}
status: {status}
retracts: [{retracts}]
retracted-by: [{by}]
provenance: record
evidence: [{evidence}]
---

{body}

## What this does NOT establish

{limits}
"""


class Repository:
    """One repository on disk."""

    def __init__(self, root: Path, key: Path) -> None:
        self.root = root
        self.data = root / "records" / "data"
        self.key = key

    # --- what an honest owner does

    def git(self, *arguments: str) -> str:
        """Run git here."""
        done = subprocess.run([*GIT, *arguments], cwd=self.root, check=True, capture_output=True)
        return done.stdout.decode().strip()

    def commit(self, message: str = "a change") -> None:
        """Commit everything."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def add_run(self, name: str, shape: sealed_run.Shape) -> None:
        """Measure, list and commit one run."""
        plan = sealed_run.small_plan(blocks=2, requests=4)
        run = sealed_run.make_run(self.data / name, plan, shape)
        sealed_run.list_run(self.data, run)
        self.commit(f"run {name}")

    def sign(self, subject: Subject, key: Path | None = None, namespace: str = NAMESPACE) -> Path:
        """Sign a seal or the checkpoint, whatever stands there now."""
        if subject.run_id:
            text = (self.data / subject.run_id / SEAL_NAME).read_bytes()
        else:
            text = checkpoint_text(self.leaves, subject.size)
        done = subprocess.run(
            ["ssh-keygen", "-Y", "sign", "-q", "-n", namespace, "-f", str(key or self.key)],
            input=text,
            check=True,
            capture_output=True,
        )
        path = signatures_at(self.data) / subject.file_name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(done.stdout)
        return path

    # --- what a tamperer looks at

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The list of runs."""
        return parse_runs((self.data / RUNS_NAME).read_text())

    def run(self, name: str = "run-3") -> Path:
        """A run's directory."""
        return self.data / name

    def journal(self, name: str = "run-3") -> Path:
        """A run's journal."""
        return self.run(name) / "events.jsonl"

    def log(self, name: str = "run-3") -> Path:
        """The first log of a run."""
        return min((self.run(name) / "logs").iterdir())

    # --- what a tamperer recomputes

    def rewrite(self, edit: Callable[[list[Event]], None], name: str = "run-3") -> None:
        """Change the events of a run and make its chain anew."""
        lines = self.journal(name).read_bytes().splitlines()
        events = [canonical.decode(line) for line in lines]
        edit(events)
        state, out = chain.EMPTY, b""
        for event in events:
            line = chain.make_line(state, event["t_ns"], event["type"], event["value"])
            out += line
            state = chain.extend(state, line)
        self.journal(name).write_bytes(out)

    def reseal(self, name: str = "run-3") -> None:
        """Make the seal anew."""
        (self.run(name) / SEAL_NAME).unlink()
        lines = self.journal(name).read_bytes().splitlines(keepends=True)
        state = chain.verify(lines, head=Digest.of(lines[-1]))
        write_seal(self.run(name), name, state)

    def relist(self, leaves: list[Leaf] | None = None) -> None:
        """Make RUNS and CHECKPOINT anew, in the old order unless another list is given."""
        known = [leaf.run_id for leaf in self.leaves if (self.run(leaf.run_id)).is_dir()]
        made = [Leaf(name, RunDirectory(self.run(name)).seal_digest) for name in known]
        chosen = made if leaves is None else leaves
        (self.data / RUNS_NAME).write_text("".join(f"{leaf}\n" for leaf in chosen))
        (self.data / CHECKPOINT_NAME).write_text(str(Checkpoint.of(chosen)))

    def rewrite_history(self, keep_published: bool = False) -> None:
        """One new commit in place of all; what others have seen stays, if they have."""
        published = self.git("rev-parse", "refs/remotes/origin/main")
        self.git("checkout", "-q", "--orphan", "fresh")
        self.commit("all there ever was")
        self.git("branch", "-q", "-M", "main")
        if not keep_published:
            self.git("update-ref", "-d", "refs/remotes/origin/main", published)

    def cover_up(self, edit: Callable[[list[Event]], None], name: str = "run-3") -> None:
        """Change events and make everything that hangs on them anew, history included."""
        self.rewrite(edit, name)
        self.reseal(name)
        self.relist()
        self.rewrite_history()


def build(top: Path) -> Repository:
    """Three runs, one commit each; one was interrupted and has a failed boot and a void window."""
    key = top / "signer"
    make_key(key)
    repository = Repository(top / "project", key)
    root = repository.root
    repository.data.mkdir(parents=True)
    _files(root)
    repository.git("init", "-q", "-b", "main")
    repository.commit("sources and locks")
    harness = digest_of(sources_in(root))
    shape = sealed_run.Shape(harness=harness)
    repository.add_run("run-1", shape)
    spoilt = sealed_run.Shape(
        interrupt_first=True, fail_last=True, void_first_window=True, harness=harness
    )
    repository.add_run("run-2", spoilt)
    repository.add_run("run-3", sealed_run.Shape(scale_ppm=1_030_000, harness=harness))
    write_run_tables(read_run(RunDirectory(repository.run("run-1"))), root / "paper" / "tables")
    public = key.with_suffix(".pub").read_text().split()[:2]
    allowed_signers_at(repository.data).write_text(f"owner {' '.join(public)}\n")
    for subject in (Subject("run-1"), Subject("run-2"), Subject(size=3)):
        repository.sign(subject)
    _paper(repository)
    repository.commit("tables, findings, signatures")
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD")
    return repository


def make_key(path: Path) -> None:
    """A new key without a passphrase."""
    done = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "t", "-f", str(path)]
    subprocess.run(done, check=True)


def copy_of(repository: Repository, root: Path) -> Repository:
    """A copy to be spoilt."""
    shutil.copytree(repository.root, root, symlinks=True)
    return Repository(root, repository.key)


def _files(root: Path) -> None:
    """Locks, licences and the least harness there can be."""
    images = root / "images"
    images.mkdir()
    (images / "wheels-cpu.lock").write_bytes(sealed_run.LOCK_TEXT)
    files = {n: {"digest": str(d), "size_bytes": 1} for n, d in sealed_run.MODEL_FILES.items()}
    lock = {"format": 1, "models": {m: {"files": files} for m in ("target", "drafter")}}
    (images / "models.lock.json").write_text(json.dumps(lock, indent=1))
    for licence in ("LICENSE", "LICENSE-DATA"):
        shutil.copy(ROOT / licence, root)
    (root / "remote").mkdir()
    (root / "remote" / "main.py").write_text("import json\n\nprint(json.dumps({}))\n")


def _paper(repository: Repository) -> None:
    """A paper and three findings: one that stands, one retracted, and its retraction."""
    root = repository.root
    folder = root / "paper" / "findings"
    folder.mkdir(parents=True)
    seal = RunDirectory(repository.run("run-1")).seal_digest
    (root / "paper" / "evidence.toml").write_text(
        f'[study.{STUDY}]\nplan = "{STUDY}"\n\n[study.{STUDY}.runs]\n"run-1" = "{seal}"\n\n'
        f'[study.{STUDY}.left_out]\n"run-2" = "a boot failed"\n"run-3" = "made for other tests"\n'
    )
    shutil.copy(ROOT / "paper" / "published.toml", root / "paper")
    values = paper(RepositoryView(root, repository.data)).evaluation.values
    cited = f"The acceptance length was [{values[CLAIM].printed}](claim:{CLAIM})."
    (root / "paper" / "main.tex").write_text(f"The acceptance length was \\claim{{{CLAIM}}}.\n")
    texts = (
        (
            "F001",
            "Acceptance",
            "active",
            "",
            "",
            cited,
            "Anything about throughput or other hosts.",
        ),
        ("F002", "Too early", "retracted", "", "F003", "All arms are equal.", "That they differ."),
        ("F003", "Not equal", "active", "F002", "", "They are not.", "By how much they differ."),
    )
    for id_, title, status, retracts, by, body, limits in texts:
        text = _FINDING.format(
            id=id_,
            title=title,
            status=status,
            retracts=retracts,
            by=by,
            evidence=seal,
            body=body,
            limits=limits,
        )
        (folder / f"{id_}.md").write_text(text)


OTHER = Digest.of(b"something else")
