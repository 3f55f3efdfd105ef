"""The wheels runtime on a host over SSH: the host itself installs from the locks, then measures.

Needs what `make reproduce` needs. The engine of this checkout stands in for the download: the host
finds it, holds it against the lock, and hashes the models.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from called_kit import outcomes
from ssh_kit import SshKit, name_of
from sshd import ROOT, Sshd

from kit.engine.setup import set_up
from kit.home import Home
from kit.hosts.names import LocalHost
from kit.planning.plan_file import load_plan
from kit.run.launch import build_harness
from records import schema
from records.run_directory import RunDirectory

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]


def one_arm() -> str:
    """The smoke plan with one arm that boots fast, one block, short windows."""
    text = (ROOT / "kit" / "plans" / "smoke-cpu.toml").read_text()
    text = text.replace('id = "smoke-cpu"', 'id = "ssh-e2e"', 1).replace("blocks = 2", "blocks = 1")
    arms, windows = text.split("[window_defaults]", 1)
    head, *each = arms.split("[[arms]]")
    (ngram,) = [arm for arm in each if 'id = "ngram"' in arm]
    windows = windows.replace("_tokens = 64", "_tokens = 16")
    return f"{head}[[arms]]{ngram}[window_defaults]{windows}"


def test_the_locked_engine_measures_on_the_host(sshd: Sshd, kit: SshKit) -> None:
    kit.plan.write_text(one_arm())
    shared = Home.find({})
    harness, digest = build_harness(shared)
    set_up(shared, LocalHost(), load_plan(kit.plan), harness, digest, print)
    sshd.home.mkdir()
    for part in (shared.engine, shared.models):
        (sshd.home / part.name).symlink_to(part)
    done = kit.call(*kit.reproduce(name_of(sshd)), "--json")
    assert done.returncode == 0, done.stderr
    assert "engine was installed already" in done.stderr
    run = RunDirectory(Path(json.loads(done.stdout)["records"]))
    assert run.path.parent == kit.place / "data"
    assert outcomes(run) == ["completed"]
    events = [e.event for e in run.read()]
    bound = [e for e in events if isinstance(e, schema.EngineBound)]
    assert {e.runtime for e in bound} == {"wheels"}
    assert len({e.digest for e in bound}) == 1
    assert str(sshd.home) not in run.events.read_text()
