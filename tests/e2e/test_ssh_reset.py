"""A line that is reset at any moment of the login, as NAT boxes and firewalls do it."""

from __future__ import annotations

import contextlib
import getpass
import select
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from ssh_kit import SshKit
from sshd import Sshd

from kit.ssh.config import Destination
from kit.ssh.host import SshHost
from kit.ssh.known_hosts import Meeting
from records.errors import NoSshServerError

pytestmark = pytest.mark.timeout(120)
# Every third of the login and of the first commands, and one that never comes.
_MOMENTS = (0, *range(1, 40, 3), 1_000)


class ResettingProxy:
    """Passes connections on; resets the first after `reads` pieces of what the server sent."""

    def __init__(self, server: socket.socket, target: int, reads: int) -> None:
        self.port: int = server.getsockname()[1]
        self.was_reset = False
        self._server, self._target, self._reads = server, target, reads
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        reads: int | None = self._reads
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client, reads))
            self._threads.append(thread)
            thread.start()
            reads = None

    def _serve(self, client: socket.socket, reads: int | None) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as host:
            pairs = {client: host, host: client}
            while True:
                for ready in select.select(list(pairs), [], [])[0]:
                    with contextlib.suppress(ConnectionError):
                        data = ready.recv(1 << 16)
                        if not data:
                            return
                        if ready is host and reads is not None:
                            reads -= 1
                            if reads < 0:
                                self.was_reset = True
                                linger = struct.pack("ii", 1, 0)
                                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                                return
                        pairs[ready].sendall(data)


@contextlib.contextmanager
def resetting(target: int, reads: int) -> Iterator[ResettingProxy]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        proxy = ResettingProxy(server, target, reads)
        try:
            yield proxy
        finally:
            proxy.close()


def test_a_reset_at_any_moment_is_tried_again_or_told(
    sshd: Sshd, kit: SshKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until no reset comes any more: each is another moment of login or first commands."""
    monkeypatch.setattr("kit.ssh.connection._DELAYS_S", (0.02,))
    key = kit.user_home / ".ssh" / "id_ed25519"
    told: list[int] = []
    for reads in _MOMENTS:
        with resetting(sshd.port, reads) as proxy:
            place = Destination("h", "127.0.0.1", proxy.port, getpass.getuser(), (key,), True)
            meeting = Meeting(kit.home / "known", accept_new=True, ask=None, say=lambda _: None)
            host = SshHost(place, meeting)
            try:
                assert host.run(("true",)).status == 0
                assert host.read(key.with_suffix(".pub")) == key.with_suffix(".pub").read_bytes()
                assert key.name in host.names(key.parent)
                host.put(key.with_suffix(".pub"), kit.place / "copy")
                assert host.run(("cat",), stdin=b"x" * 100_000).stdout == "x" * 100_000
            except NoSshServerError:
                told.append(reads)
            finally:
                host.connection.close()
            if not proxy.was_reset:
                break
    assert not proxy.was_reset, "the whole login was gone through"
    assert told == [0], "from the first word on it is the line, not the server"
