"""What travels to a host is enough there, and nothing of it is newer than the oldest Python."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kit.engine.hub_token import TOKEN_NAMES
from kit.engine.provision_on_host import MAIN, SOURCES
from kit.engine.setup import INSTALLED, set_up
from kit.home import Home
from kit.hosts.host import HostSpec
from kit.hosts.local import LocalHost
from kit.planning.plan_file import load_plan
from kit.ssh.detach_on_host import SECRETS
from records.digest import Digest
from records.errors import ProvisionError

ROOT = Path(__file__).parents[2]
TRAVELLERS = (*SOURCES, "kit/ssh/detach_on_host.py")


@pytest.mark.parametrize("name", TRAVELLERS)
def test_it_is_python_3_10(name: str) -> None:
    ast.parse((ROOT / name).read_bytes(), name, feature_version=(3, 10))


def test_what_starts_processes_there_needs_the_standard_library_alone() -> None:
    tree = ast.parse((ROOT / "kit" / "ssh" / "detach_on_host.py").read_bytes())
    found = {
        alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert found <= set(sys.stdlib_module_names)
    assert SECRETS == TOKEN_NAMES


def test_what_travels_is_enough_and_an_error_comes_back_as_one(tmp_path: Path) -> None:
    for name in SOURCES:
        target = tmp_path / "code" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    (tmp_path / "code" / "__main__.py").write_text(MAIN)
    images = tmp_path / "code" / "images"
    images.mkdir()
    (images / "wheels.lock").write_text("")
    engine = tmp_path / "engine"
    engine.mkdir()
    (engine / "somebody's.txt").write_text("x")
    request = {"engine": str(engine), "models": "m", "lock": "wheels.lock", "wanted": []}
    (tmp_path / "request").write_text(json.dumps(request))
    words = [sys.executable, "-I", "-S", str(tmp_path / "code"), "request", "answer"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == ProvisionError.exit_code, done.stderr
    assert "error: " in done.stderr
    assert "is in the way" in done.stderr
    assert "  try: move" in done.stderr
    assert not (tmp_path / "answer").exists()


class Furnished(LocalHost):
    """A host on which somebody installed an engine."""

    spec = HostSpec(engine_python="/usr/bin/python3", site=("/a/site", "/b/site"))


def test_an_engine_that_is_there_already_is_named_not_installed(tmp_path: Path) -> None:
    home = Home(ROOT, tmp_path, tmp_path / "data", tmp_path / "out")
    plan = load_plan(ROOT / "kit" / "plans" / "smoke-cpu.toml")
    made = set_up(home, Furnished(), plan, tmp_path / "h.pyz", Digest.of(b""), print)
    assert made.engine.runtime == INSTALLED
    assert made.engine.launcher[0] == "/usr/bin/python3"
    assert made.engine.env == {"PYTHONPATH": "/a/site:/b/site"}
    assert made.engine.site_directories == ("/a/site", "/b/site")
    assert made.engine.lock_digest == Digest.of((ROOT / "images" / plan.engine.lock).read_bytes())
    assert set(made.models) == set(plan.models)
    assert not (tmp_path / "engine").exists()
