"""Hosts over SSH: real servers on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_kit import SshKit
from sshd import Sshd, keygen, running


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
