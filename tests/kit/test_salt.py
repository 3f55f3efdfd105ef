"""The salt by which records name hosts: whole or not there, made once, never guessed."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kit.home import Home
from records.errors import FormatError


@pytest.fixture
def here(tmp_path: Path) -> Home:
    return Home(tmp_path, tmp_path / ".kit", tmp_path / "data", tmp_path / "out")


def test_it_is_made_once_for_its_owner_alone(here: Home) -> None:
    salt = here.salt()
    assert re.fullmatch("[0-9a-f]{32}", salt)
    assert here.salt() == salt
    assert (here.path / "salt").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in here.path.iterdir()] == ["salt"]


def test_two_first_runs_at_once_have_one(here: Home) -> None:
    with ThreadPoolExecutor(8) as pool:
        salts = set(pool.map(lambda _: here.salt(), range(32)))
    assert len(salts) == 1
    assert [path.name for path in here.path.iterdir()] == ["salt"]


def test_who_comes_second_takes_that_of_the_first(
    here: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, link = "ab" * 16, os.link

    def late(source: str, target: Path) -> None:
        target.write_text(first + "\n")
        link(source, target)

    monkeypatch.setattr("os.link", late)
    assert here.salt() == first


def test_a_file_system_without_links_takes_it_whole(
    here: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_source: str, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(target))

    monkeypatch.setattr("os.link", refused)
    assert here.salt() == here.salt()
    assert [path.name for path in here.path.iterdir()] == ["salt"]


@pytest.mark.parametrize("held", [b"", b"\n", b"abc\n", b"\xff\xfe", b"g" * 32, b"ab" * 17])
def test_one_that_is_no_salt_is_refused_and_left(held: bytes, here: Home) -> None:
    here.path.mkdir()
    (here.path / "salt").write_bytes(held)
    with pytest.raises(FormatError, match="32 hexadecimal digits") as caught:
        here.salt()
    assert "host_salt" in caught.value.remedy
    assert (here.path / "salt").read_bytes() == held


def test_a_full_disk_leaves_no_salt(here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int, _data: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        with pytest.raises(Exception, match="no space left"):
            here.salt()
    assert not list(here.path.iterdir())
    assert here.salt()
