"""What was seen of a host's journal stays, grows by whole lines, and testifies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kit.home import Home
from kit.hosts.local import LocalHost
from kit.run.mirror import refresh_jobs, refresh_run, require_witnessed
from records.errors import NotAPrefixError
from records.journal import EVENTS_NAME

RUN = "20261130T120000Z-demo-0a1b2c"


class FarHost(LocalHost):
    """This machine under another name, with directories of its own."""

    name = "far"

    def __init__(self, place: Path) -> None:
        self._place = place

    def home(self, here: Home) -> Home:
        return replace(here, path=self._place)

    def mirror(self, here: Home) -> Home:
        return replace(here, path=here.path / "hosts" / "far")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, tmp_path / "kit", tmp_path / "data", tmp_path / "out")


@pytest.fixture
def host(tmp_path: Path) -> FarHost:
    return FarHost(tmp_path / "far")


@pytest.fixture
def theirs(host: FarHost, home: Home) -> Path:
    path = host.home(home).run(RUN) / EVENTS_NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(b"one\ntwo\nthr")
    return path


@pytest.fixture
def ours(host: FarHost, home: Home) -> Path:
    return host.mirror(home).run(RUN) / EVENTS_NAME


def test_whole_lines_are_taken_once(host: FarHost, home: Home, theirs: Path, ours: Path) -> None:
    refresh_run(host, home, RUN)
    assert ours.read_bytes() == b"one\ntwo\n"
    refresh_run(host, home, RUN)
    with theirs.open("ab") as file:
        file.write(b"ee\n")
    refresh_run(host, home, RUN)
    assert ours.read_bytes() == b"one\ntwo\nthree\n"


def test_a_torn_tail_that_the_harness_cut_is_no_edit(
    host: FarHost, home: Home, theirs: Path, ours: Path
) -> None:
    refresh_run(host, home, RUN)
    theirs.write_bytes(b"one\ntwo\nrepaired\n")
    refresh_run(host, home, RUN)
    assert ours.read_bytes() == b"one\ntwo\nrepaired\n"


@pytest.mark.parametrize("cut", [b"one\n", b"", b"one\ntw", b"one\ntwo and more\n"])
def test_a_line_that_is_gone_is_noticed(
    host: FarHost, home: Home, theirs: Path, ours: Path, cut: bytes
) -> None:
    refresh_run(host, home, RUN)
    theirs.write_bytes(cut)
    with pytest.raises(NotAPrefixError, match="far"):
        refresh_run(host, home, RUN)
    assert ours.read_bytes() == b"one\ntwo\n"


def test_a_seal_comes_after_what_it_seals(
    host: FarHost, home: Home, theirs: Path, ours: Path
) -> None:
    theirs.write_bytes(b"one\ntwo\n")
    (theirs.parent / "seal.json").write_bytes(b"{}\n")
    refresh_run(host, home, RUN)
    assert (ours.parent / "seal.json").read_bytes() == b"{}\n"


def test_jobs_of_others_are_taken_in(host: FarHost, home: Home) -> None:
    jobs = host.home(home).jobs
    jobs.mkdir(parents=True)
    (jobs / f"{RUN}.json").write_bytes(b"{}")
    (jobs / f"{RUN}.pid").write_bytes(b"1")
    here = refresh_jobs(host, home)
    assert [p.name for p in here.jobs.iterdir()] == [f"{RUN}.json"]


def test_this_machine_needs_no_copy(home: Home) -> None:
    assert refresh_jobs(LocalHost(), home) == home
    refresh_run(LocalHost(), home, RUN)
    assert not home.path.exists()


@pytest.mark.parametrize("arrived", [b"one\ntwo\nthree\n", b"one\ntwo\n"])
def test_what_continues_what_was_seen_is_accepted(
    host: FarHost, home: Home, theirs: Path, tmp_path: Path, arrived: bytes
) -> None:
    refresh_run(host, home, RUN)
    (tmp_path / EVENTS_NAME).write_bytes(arrived)
    require_witnessed(host.mirror(home), RUN, tmp_path)


@pytest.mark.parametrize(("arrived", "line"), [(b"one\nTwo\n", 2), (b"one\n", 2), (b"", 1)])
def test_what_contradicts_it_is_refused_at_its_line(
    host: FarHost, home: Home, theirs: Path, tmp_path: Path, arrived: bytes, line: int
) -> None:
    refresh_run(host, home, RUN)
    (tmp_path / EVENTS_NAME).write_bytes(arrived)
    with pytest.raises(NotAPrefixError, match=f"line {line} "):
        require_witnessed(host.mirror(home), RUN, tmp_path)


def test_a_witness_with_a_line_beyond_what_one_may_hold_is_refused(
    host: FarHost, home: Home, theirs: Path, tmp_path: Path
) -> None:
    """Also where what arrived has the same line: neither is read to its end."""
    refresh_run(host, home, RUN)
    for directory in (host.mirror(home).run(RUN), tmp_path):
        (directory / EVENTS_NAME).write_bytes(b"one\n" + b"x" * (9 << 20) + b"\n")
    with pytest.raises(NotAPrefixError, match="line 2: too long"):
        require_witnessed(host.mirror(home), RUN, tmp_path)
