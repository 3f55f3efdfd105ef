"""A host that lies about names: what it sends stays below the directory that was meant for it."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from kit.run.launch import read_job
from kit.ssh import sftp_copy
from records import canonical
from records.decode import to_object
from records.digest import Digest
from records.errors import ForeignDirectoryError, FormatError
from records.job import EngineOnHost, Job
from tests.sealed_run import small_plan

RUN = "20261130T100000Z-test-plan-0a1b2c"


class _Anyone(paramiko.ServerInterface):
    """Lets everybody in; there is but a socket pair to come by."""

    def check_auth_none(self, _username: str) -> int:
        return int(paramiko.AUTH_SUCCESSFUL)

    def check_channel_request(self, _kind: str, _channel: int) -> int:
        return int(paramiko.OPEN_SUCCEEDED)


class _Liar(paramiko.SFTPServerInterface):
    """Lists what the test wants, in every directory but the last."""

    entries: tuple[tuple[str, int], ...] = ()

    def list_folder(self, path: str) -> list[paramiko.SFTPAttributes]:
        listed = []
        for name, mode in self.entries if path == "/run" else ():
            attributes = paramiko.SFTPAttributes()
            attributes.filename, attributes.st_mode = name, mode
            listed.append(attributes)
        return listed

    def readlink(self, _path: str) -> str:
        return os.environ["LIAR_LINK"]

    def stat(self, _path: str) -> paramiko.SFTPAttributes:
        attributes = paramiko.SFTPAttributes()
        attributes.st_size, attributes.st_mode = 4, stat.S_IFREG
        return attributes

    def open(self, _path: str, flags: int, _attr: object) -> paramiko.SFTPHandle:
        handle = paramiko.SFTPHandle(flags)
        reading, writing = os.pipe()
        os.write(writing, b"evil")
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            data = pipe.read()
        handle.read = lambda offset, length: data[offset : offset + length]  # type: ignore[method-assign]
        handle.stat = lambda: self.stat("")  # type: ignore[attr-defined]
        return handle


@pytest.fixture
def sftp() -> Iterator[paramiko.SFTPClient]:
    """A real SFTP session with a server that lies."""
    ours, theirs = socket.socketpair()
    server, client = paramiko.Transport(theirs), paramiko.Transport(ours)
    server.add_server_key(paramiko.ECDSAKey.generate())
    server.set_subsystem_handler("sftp", paramiko.SFTPServer, _Liar)
    began = threading.Event()
    server.start_server(began, _Anyone())
    client.start_client(timeout=10)
    client.auth_none("anyone")
    session = paramiko.SFTPClient.from_transport(client)
    assert session is not None
    yield session
    client.close()
    server.close()


FILE, LINK, DIRECTORY = stat.S_IFREG | 0o644, stat.S_IFLNK | 0o777, stat.S_IFDIR | 0o755


@pytest.mark.parametrize(
    "entries",
    [
        (("../evil", FILE),),
        (("a/../../evil", FILE),),
        (("{outside}", FILE),),
        (("{outside}", DIRECTORY),),
        (("", FILE),),
        # A link first, then under its name what would be written where it leads.
        (("a", LINK), ("a", FILE)),
        (("a", LINK), ("a", DIRECTORY)),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(
    entries: tuple[tuple[str, int], ...],
    sftp: paramiko.SFTPClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    monkeypatch.setenv("LIAR_LINK", str(outside))
    named = tuple((name.format(outside=outside), mode) for name, mode in entries)
    monkeypatch.setattr(_Liar, "entries", named)
    with pytest.raises(ForeignDirectoryError, match="names a file"):
        sftp_copy.fetch(sftp, Path("/run"), tmp_path / "in" / "run")
    assert outside.read_text() == "mine"
    assert not (tmp_path / "in" / "evil").exists()
    assert not (tmp_path / "evil").exists()


def job_bytes(run_id: str) -> bytes:
    engine = EngineOnHost("reference", ("python3",), (), {}, "", Digest.of(b""))
    return canonical.encode(to_object(Job(run_id, small_plan(), engine, {}, "/r", "/s", "salt")))


@pytest.mark.parametrize("run_id", ["../../evil", "/etc/evil", RUN[:-1] + "d", ""])
def test_a_job_goes_by_the_name_of_its_file(run_id: str, tmp_path: Path) -> None:
    path = tmp_path / f"{RUN}.json"
    path.write_bytes(job_bytes(RUN))
    assert read_job(path).run_id == RUN
    path.write_bytes(job_bytes(run_id))
    with pytest.raises(FormatError, match="is not that of its file"):
        read_job(path)
