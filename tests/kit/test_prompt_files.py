"""Prompt files of a plan: bound when it is read, kept by digest, carried to where they are sent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kit.engine.setup import EngineSetup
from kit.home import Home
from kit.hosts.names import LocalHost
from kit.planning import prompt_files
from kit.planning.plan_file import load_plan
from kit.run.launch import make_job
from records.digest import Digest
from records.errors import PlanError
from records.job import EngineOnHost

ROOT = Path(__file__).parents[2]
DEMO = (ROOT / "kit" / "plans" / "demo.toml").read_text()
BUILTIN = 'prompts = { source = "builtin", count = 8, seed = 1, unique = true }'
CONTENT = '{"prompt":"one"}\n{"prompt":"two"}\n'
DIGEST = Digest.of(CONTENT.encode())


def plan_file(directory: Path, path: str = "own/p.jsonl", more: str = "") -> Path:
    (directory / "own").mkdir(exist_ok=True)
    (directory / "own" / "p.jsonl").write_text(CONTENT)
    (directory / "own" / "empty").write_text("\n")
    if not (directory / "own" / "fifo").exists():
        os.mkfifo(directory / "own" / "fifo")
        (directory / "own" / "zero").symlink_to("/dev/zero")
    assert BUILTIN in DEMO
    ours = 'source = "jsonl", count = 2, seed = 1, unique = true'
    file = directory / "plan.toml"
    file.write_text(DEMO.replace(BUILTIN, f'prompts = {{ {ours}, path = "{path}"{more} }}'))
    return file


def test_a_file_is_found_beside_the_plan_and_bound_by_digest(tmp_path: Path) -> None:
    plan = load_plan(plan_file(tmp_path))
    assert {w.prompts.digest for w in plan.windows} == {DIGEST}
    assert {w.prompts.path for w in plan.windows} == {"own/p.jsonl"}
    (tmp_path / "own" / "p.jsonl").write_text(CONTENT + '{"prompt":"three"}\n')
    assert load_plan(tmp_path / "plan.toml").digest != plan.digest


@pytest.mark.parametrize(
    ("path", "more", "words"),
    [
        ("absent.jsonl", "", "cannot be read"),
        ("/etc/hostname", "", "relative to the plan's file"),
        ("own/p.jsonl", f', digest = "{Digest.of(b"")}"', f"own/p.jsonl is {DIGEST}"),
        ("own/p.jsonl", ", digest = 1", "digest"),
        ("../own/p.jsonl", "", "without .."),
        ("own/../../p.jsonl", "", "without .."),
        ("own/\\u0000p.jsonl", "", "control character"),
        ("own", "", "not a regular file"),
        ("own/fifo", "", "not a regular file"),
        ("own/zero", "", "not a regular file"),
        ("own/empty", "", "holds no prompt"),
    ],
)
def test_what_cannot_be_bound_is_named_with_its_line(
    tmp_path: Path, path: str, more: str, words: str
) -> None:
    file = plan_file(tmp_path, path, more)
    line = file.read_text().split('source = "jsonl"')[0].count("\n") + 1
    with pytest.raises(PlanError, match=f"plan.toml:{line}: ") as caught:
        load_plan(file)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"prompt":"one"}\n{"prompt":\n', "p.jsonl:2: not JSON"),
        ('{"prompt":"one"}\n\n{"text":"two"}\n', "p.jsonl:3: not a jsonl prompt"),
        ('{"prompt":"one"}\n{"prompt":"\\ud800"}\n', "p.jsonl:2: text with a lone surrogate"),
        ('{"prompt":"one"}\n{"prompt":[' + "9" * 5000 + "]}\n", "p.jsonl:2: not JSON"),
        ("[" * 100_000, "p.jsonl:1: not JSON"),
    ],
)
def test_a_bad_prompt_is_named_with_its_line_when_the_plan_is_read(
    tmp_path: Path, content: str, words: str
) -> None:
    file = plan_file(tmp_path)
    (tmp_path / "own" / "p.jsonl").write_text(content)
    with pytest.raises(PlanError) as caught:
        load_plan(file)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"prompt":"one"}\n', "2 prompts asked for"),
        ('{"prompt":[1,2]}\n{"prompt":[3,4]}\n', "cannot be unique"),
    ],
)
def test_prompts_that_do_not_fit_the_window_are_told_in_the_plan(
    tmp_path: Path, content: str, words: str
) -> None:
    file = plan_file(tmp_path)
    (tmp_path / "own" / "p.jsonl").write_text(content)
    line = file.read_text().split('source = "jsonl"')[0].count("\n") + 1
    with pytest.raises(PlanError, match=f"plan.toml:{line}: ") as caught:
        load_plan(file)
    assert words in caught.value.message


def test_token_ids_are_not_for_chat(tmp_path: Path) -> None:
    file = plan_file(tmp_path)
    file.write_text(file.read_text().replace('endpoint = "completions"', 'endpoint = "chat"'))
    (tmp_path / "own" / "p.jsonl").write_text(json.dumps({"prompt": [1]}) + "\n" + CONTENT)
    with pytest.raises(PlanError, match="which chat does not take"):
        load_plan(file)


def test_a_digest_that_is_given_is_held_to(tmp_path: Path) -> None:
    plan = load_plan(plan_file(tmp_path, more=f', digest = "{DIGEST}"'))
    assert plan == load_plan(plan_file(tmp_path))


def test_what_was_read_is_what_is_carried(tmp_path: Path) -> None:
    home = Home(ROOT, tmp_path / "home", tmp_path / "data", tmp_path / "out")
    plan = load_plan(plan_file(tmp_path))
    prompt_files.keep(home, plan, tmp_path)
    (tmp_path / "own" / "p.jsonl").write_text("changed")
    prompt_files.keep(home, plan, tmp_path)  # kept already: nothing to do
    engine = EngineOnHost("reference", ("python3",), (), {}, "", DIGEST)
    job = make_job(home, LocalHost(), plan, "r", EngineSetup(engine, {}), ())
    prompt_files.carry(home, LocalHost(), job)
    assert (Path(job.prompts_directory) / DIGEST.hex).read_text() == CONTENT


def test_a_file_that_changed_since_the_plan_was_read_is_refused(tmp_path: Path) -> None:
    home = Home(ROOT, tmp_path / "home", tmp_path / "data", tmp_path / "out")
    plan = load_plan(plan_file(tmp_path))
    (tmp_path / "own" / "p.jsonl").write_text("changed")
    with pytest.raises(PlanError, match="changed while it was read"):
        prompt_files.keep(home, plan, tmp_path)
    assert not (home.prompts / DIGEST.hex).exists()
