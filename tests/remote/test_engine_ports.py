"""Ports that are free, listened on, or only just left."""

from __future__ import annotations

import os
import socket

import pytest

from records.errors import PortInUseError
from remote.engine.ports import free_port, holder, port_is_free, require_port_free


def test_a_listener_takes_a_port_and_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
        assert not port_is_free("127.0.0.1", port)
        assert holder(port).endswith(f"(pid {os.getpid()})")
        with pytest.raises(PortInUseError) as caught:
            require_port_free("127.0.0.1", port)
        assert f"(pid {os.getpid()})" in caught.value.message
    assert port_is_free("127.0.0.1", port)
    assert holder(port) == "a process that /proc does not show"


def test_connections_just_closed_do_not_hold_a_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = server.accept()
            accepted.close()  # the server closes first: its side stays in TIME_WAIT
            assert client.recv(1) == b""
    assert port_is_free("127.0.0.1", port)


def test_a_free_port_is_free() -> None:
    require_port_free("127.0.0.1", free_port())
