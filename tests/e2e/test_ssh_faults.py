"""What must not be accepted, what must not be lost: edited records, cut journals, full disks."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from called_kit import alive, outcomes, tiny_plan
from ssh_kit import SshKit, harness_pid, name_of, runs_on, wait_for_event
from sshd import Sshd, running

from records.errors import ChainError, DiskFullError, HostUnfitError, NotAPrefixError
from records.run_directory import RunDirectory

pytestmark = pytest.mark.timeout(300)


def rehashed(journal: bytes, old: bytes, new: bytes) -> bytes:
    """The journal with `old` replaced and every hash made again: its own chain holds."""
    lines = journal.splitlines(keepends=True)
    head = b"0" * 64
    out = []
    for number, line in enumerate(lines):
        changed = line.replace(old, new)
        if number:
            changed = re.sub(
                rb'^\{"prev":"sha256:[0-9a-f]{64}"', b'{"prev":"sha256:%s"' % head, changed
            )
        head = hashlib.sha256(changed).hexdigest().encode()
        out.append(changed)
    return b"".join(out)


@pytest.fixture
def stopped(sshd: Sshd, kit: SshKit) -> RunDirectory:
    """An unfinished run on the host, followed by this kit, not fetched yet."""
    kit.plan.write_text(tiny_plan(requests=5))
    process = kit.start(*kit.reproduce(name_of(sshd)))
    wait_for_event(sshd, "window.started")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    (run,) = runs_on(sshd)
    return run


def fetch(kit: SshKit, sshd: Sshd) -> subprocess.CompletedProcess[str]:
    return kit.call("fetch-records", "--unfinished", "--host", name_of(sshd))


def test_a_record_edited_on_the_host_is_refused_although_its_chain_holds(
    sshd: Sshd, kit: SshKit, stopped: RunDirectory
) -> None:
    honest = stopped.events.read_bytes()
    forged = rehashed(honest, b'"healthy', b'"healthy').replace(b"", b"")
    forged = rehashed(honest, b'"after_ns":', b'"after_ns":1')
    assert forged != honest
    stopped.events.write_bytes(forged)
    stopped.verify_chain()
    refused = fetch(kit, sshd)
    assert refused.returncode == NotAPrefixError.exit_code, refused.stderr
    assert kit.fetched() == []
    assert stopped.events.read_bytes() == forged
    stopped.events.write_bytes(honest)
    assert fetch(kit, sshd).returncode == 0
    assert [run.path.name for run in kit.fetched()] == [stopped.path.name]


def test_a_flipped_byte_breaks_the_chain(sshd: Sshd, kit: SshKit, stopped: RunDirectory) -> None:
    honest = stopped.events.read_bytes()
    stopped.events.write_bytes(honest.replace(b'"port":', b'"pOrt":', 1))
    refused = fetch(kit, sshd)
    assert refused.returncode in (NotAPrefixError.exit_code, ChainError.exit_code), refused.stderr
    assert kit.fetched() == []


def test_a_journal_that_was_cut_is_refused_where_it_was_seen(
    sshd: Sshd, kit: SshKit, stopped: RunDirectory
) -> None:
    lines = stopped.events.read_bytes().splitlines(keepends=True)
    stopped.events.write_bytes(b"".join(lines[:-2]))
    for verb in (("fetch-records", "--unfinished"), ("reproduce", "--plan", str(kit.plan))):
        refused = kit.call(*verb, "--host", name_of(sshd))
        assert refused.returncode == NotAPrefixError.exit_code, refused.stderr
    assert kit.fetched() == []


def test_records_that_are_here_are_never_changed_by_what_the_host_holds(
    sshd: Sshd, kit: SshKit
) -> None:
    done = kit.call(*kit.reproduce(name_of(sshd)))
    assert done.returncode == 0, done.stderr
    (ours,) = kit.fetched()
    before = {p: p.read_bytes() for p in ours.path.rglob("*") if p.is_file()}
    (theirs,) = runs_on(sshd)
    log = next(iter((theirs.path / "logs").iterdir()))
    log.write_bytes(log.read_bytes() + b"x")
    passed_over = fetch(kit, sshd)
    assert passed_over.returncode == 0, passed_over.stderr
    assert {p: p.read_bytes() for p in ours.path.rglob("*") if p.is_file()} == before
    refused = kit.call("fetch-records", ours.path.name, "--host", name_of(sshd))
    assert refused.returncode == ChainError.exit_code, refused.stderr
    assert log.name in refused.stderr
    assert {p: p.read_bytes() for p in ours.path.rglob("*") if p.is_file()} == before


def test_an_unfinished_run_that_was_fetched_is_continued_and_fetched_on(
    sshd: Sshd, kit: SshKit, stopped: RunDirectory
) -> None:
    first = fetch(kit, sshd)
    assert first.returncode == 0, first.stderr
    (run,) = kit.fetched()
    part = run.events.read_bytes()
    done = kit.call(*kit.reproduce(name_of(sshd)))
    assert done.returncode == 0, done.stderr
    assert run.events.read_bytes().startswith(part)
    assert outcomes(run) == ["interrupted", "completed", "completed"]


def test_a_file_in_the_place_of_the_kits_directory_is_named(sshd: Sshd, kit: SshKit) -> None:
    sshd.home.write_text("somebody's")
    done = kit.call(*kit.reproduce(name_of(sshd)))
    assert done.returncode == HostUnfitError.exit_code, done.stderr
    assert f"{sshd.home}: not so: it is a directory" in done.stderr
    assert "KIT_HOME" in done.stderr
    examined = kit.call("doctor", name_of(sshd), "--plan", "demo", "--json")
    assert '"check": "home"' in examined.stdout
    assert examined.returncode == HostUnfitError.exit_code
    assert sshd.home.read_text() == "somebody's"


def test_a_read_only_disk_is_named(small_disk: Sshd, kit: SshKit) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk.home)], check=True)
    done = kit.call(*kit.reproduce(name_of(small_disk)))
    assert done.returncode == HostUnfitError.exit_code, done.stderr
    assert "not so: it may be written" in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path, user_home: Path) -> Iterator[Sshd]:
    """A host whose kit directory is a file system of a few MiB."""
    if os.getuid() != 0:
        if os.environ.get("CI"):
            pytest.fail("mounting a tmpfs needs root")
        pytest.skip("mounting a tmpfs needs root")
    place = tmp_path / "small"
    home = place / "kit-home"
    home.mkdir(parents=True)
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(home)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mount.returncode != 0:
        if os.environ.get("CI"):
            pytest.fail(f"no tmpfs: {mount.stderr}")
        pytest.skip(f"no tmpfs: {mount.stderr}")
    try:
        with running(place, user_home / ".ssh" / "id_ed25519.pub") as server:
            yield server
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)


def fill(directory: Path) -> Path:
    """Take all that is left of the file system."""
    path = directory / "ballast"
    with path.open("wb", buffering=0) as file:
        block = b"\0" * 4096
        try:
            while True:
                file.write(block)
        except OSError:
            return path


def test_a_disk_that_fills_stops_the_run_which_goes_on_once_there_is_room(
    small_disk: Sshd, kit: SshKit
) -> None:
    kit.plan.write_text(tiny_plan(requests=5))
    process = kit.start(*kit.reproduce(name_of(small_disk)))
    wait_for_event(small_disk, "window.started")
    ballast = fill(small_disk.home)
    _, shown = process.communicate(timeout=120)
    assert process.returncode == DiskFullError.exit_code, shown
    assert not alive(harness_pid(small_disk))
    ballast.unlink()
    done = kit.call(*kit.reproduce(name_of(small_disk)))
    assert done.returncode == 0, done.stderr
    (run,) = kit.fetched()
    assert outcomes(run) == ["interrupted", "completed", "completed"]
    assert shutil.disk_usage(small_disk.home).free > 0
