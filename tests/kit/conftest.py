"""A kit with directories of its own, for verbs that are called in this process."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def kit_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What KIT_HOME names; KIT_DATA and KIT_OUT are beside it."""
    for name in ("home", "data", "out"):
        monkeypatch.setenv(f"KIT_{name.upper()}", str(tmp_path / name))
    return tmp_path / "home"
