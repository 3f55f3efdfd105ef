"""Hosts over SSH: real servers on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from called_kit import tiny_plan
from ssh_kit import SshKit, name_of
from sshd import Sshd, keygen, running

from kit.ssh.config import read_config, resolve
from kit.ssh.host import SshHost
from kit.ssh.known_hosts import Meeting


@pytest.fixture(scope="session")
def user_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's home with one ed25519 key."""
    home = tmp_path_factory.mktemp("user")
    keygen(home / ".ssh" / "id_ed25519")
    return home


@pytest.fixture
def sshd(tmp_path: Path, user_home: Path) -> Iterator[Sshd]:
    """A host that knows this user's key."""
    with running(tmp_path / "host", user_home / ".ssh" / "id_ed25519.pub") as server:
        yield server


@pytest.fixture
def kit(tmp_path: Path, user_home: Path) -> SshKit:
    """A laptop of this user."""
    return SshKit(tmp_path / "laptop", user_home)


@pytest.fixture
def host(sshd: Sshd, kit: SshKit, monkeypatch: pytest.MonkeyPatch) -> SshHost:
    """The host as an object, met for the first time."""
    monkeypatch.setenv("HOME", str(kit.user_home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    meeting = Meeting(kit.home / "known_hosts", accept_new=True, ask=None, say=print)
    return SshHost(resolve(name_of(sshd), read_config()), meeting)


@pytest.fixture
def slow(kit: SshKit) -> SshKit:
    """Windows of several seconds, so that what happens meets an open one."""
    kit.plan.write_text(tiny_plan(requests=5))
    return kit
