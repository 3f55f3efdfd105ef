"""A gated model is downloaded by the host itself, and the token is nowhere but on its way."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_service import REPOSITORY, REVISION, Hub, running_hub
from ssh_kit import SshKit
from sshd import ROOT, Sshd

from kit.docker.setup import set_up_models
from kit.home import Home
from kit.planning.plan_file import load_plan
from kit.ssh.host import SshHost
from records.digest import Digest
from records.errors import ProvisionError

pytestmark = pytest.mark.timeout(120)

TOKEN = "hf_ThisTokenMustNeverBeSeenAnywhere02"
FILES = {"config.json": b"{}", "model.safetensors": os.urandom(300_000)}


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running_hub(Hub(dict(FILES), TOKEN)) as service:
        yield service


@pytest.fixture
def here(tmp_path: Path, hub: Hub) -> Home:
    """A project whose models all come from the hub."""
    root = tmp_path / "project"
    (root / "images").mkdir(parents=True)
    for name in ("kit", "records"):
        (root / name).symlink_to(ROOT / name)
    plan = load_plan(ROOT / "kit" / "plans" / "smoke-cpu.toml")
    (root / "images" / plan.engine.lock).write_bytes(b"")
    model = {
        "license": "gated",
        "source": None,
        "transformation": "none",
        "files": {
            name: {"digest": str(Digest.of(data)), "size_bytes": len(data)}
            for name, data in FILES.items()
        },
        "hub": {
            "repository": REPOSITORY,
            "revision": REVISION,
            "gated": True,
            "endpoint": hub.endpoint,
        },
    }
    lock = {"format": 1, "models": dict.fromkeys(plan.models, model)}
    (root / "images" / "models.lock.json").write_text(json.dumps(lock))
    return Home(root, tmp_path / "laptop" / "kit", tmp_path / "data", tmp_path / "out")


def seen_in_processes(token: str) -> list[str]:
    """Processes with the token among their arguments or in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                if token.encode() in (place / name).read_bytes():
                    found.append(f"{place.name}/{name}")
            except OSError:  # it has ended, or is somebody else's
                continue
    return found


def test_a_gated_model_reaches_the_host_and_its_token_stays_nowhere(
    here: Home, host: SshHost, hub: Hub, sshd: Sshd, kit: SshKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    plan = load_plan(ROOT / "kit" / "plans" / "smoke-cpu.toml")
    seen: list[str] = []
    hub.during = lambda: seen.extend(seen_in_processes(TOKEN))
    said: list[str] = []
    models = set_up_models(here, host, plan, said.append)
    for name, model in models.items():
        assert {p.name: p.read_bytes() for p in Path(model.path).iterdir()} == FILES, name
    assert {given for server, _, given, _ in hub.asked if server == "hub"} == {f"Bearer {TOKEN}"}
    assert {given for server, _, given, _ in hub.asked if server == "store"} == {""}
    assert seen == []
    assert TOKEN not in "\n".join(said)
    for top in (sshd.place, kit.place, here.root.parent / "out"):
        for path in top.rglob("*"):
            if path.is_file() and not path.is_symlink():
                assert TOKEN.encode() not in path.read_bytes(), path
    asked = len(hub.asked)
    monkeypatch.delenv("HF_TOKEN")
    assert set_up_models(here, host, plan, print) == models, "there: no token is needed any more"
    assert len(hub.asked) == asked


def test_without_a_token_nothing_is_begun_on_the_host(
    here: Home, host: SshHost, hub: Hub, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    plan = load_plan(ROOT / "kit" / "plans" / "smoke-cpu.toml")
    with pytest.raises(ProvisionError, match="none is set here") as caught:
        set_up_models(here, host, plan, print)
    assert "export HF_TOKEN" in caught.value.remedy
    assert hub.asked == []
    assert not (sshd.home / "provision").exists()
