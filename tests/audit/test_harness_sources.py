"""The harness: its archive made again, and every way to load the engine found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from audit.engine_imports import engine_imports
from audit.git import Git
from audit.harness_archive import archive, digest_of, sources_in, versions
from kit import zipapp

ROOT = Path(__file__).parents[2]
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


def test_the_archive_is_the_one_that_the_kit_ships() -> None:
    assert archive(sources_in(ROOT)) == zipapp.content(ROOT)


def test_every_version_in_history_is_known_once(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run([*GIT, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    source = tmp_path / "remote" / "main.py"
    source.parent.mkdir()
    digests = []
    for text in ("A = 1\n", "A = 2\n"):
        source.write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", "source")
        digests.append(digest_of(sources_in(tmp_path)))
        (tmp_path / "records" / "data" / "run").mkdir(parents=True, exist_ok=True)
        (tmp_path / "records" / "data" / "run" / f"{len(digests)}.py").write_text("no source\n")
        git("add", "-A")
        git("commit", "-q", "-m", "records alone")
    found = Git.find(tmp_path)
    assert found is not None
    assert [digest_of(sources) for _, sources in versions(found, tmp_path)] == digests[::-1]


@pytest.mark.parametrize(
    "source",
    [
        "import torch",
        "import torch.cuda as t",
        "from vllm.envs import X",
        "def f():\n    import triton",
        "import importlib\nimportlib.import_module('vllm.envs')",
        "from importlib import import_module as load\nload('vllm')",
        "load = __import__\nload('torch')",
        "__import__('flashinfer')",
        "import importlib.util\nimportlib.util.find_spec(name='xformers')",
        "import runpy\nrunpy.run_module('vllm.entrypoints')",
        "exec('import torch')",
        "eval(compile('from vllm import LLM', '', 'exec'))",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import vllm; vllm.x()'])",
        "ARGV = ('python', '-c', 'from transformers import x')",
    ],
)
def test_ways_to_load_the_engine(source: str) -> None:
    assert list(engine_imports(source.encode())), source


@pytest.mark.parametrize(
    "source",
    [
        "import json",
        "from remote.engine import vllm",
        "from . import vllm",
        "ARGV = ['python', '-m', 'vllm.entrypoints.openai.api_server']",
        "NAME = 'import torch'",
        "import torchlight",
        "subprocess.run(['sh', '-c', 'exec server'])",
    ],
)
def test_what_is_no_import_of_the_engine(source: str) -> None:
    assert list(engine_imports(source.encode())) == []
