"""The few calls of the Docker Engine API that keeping a container takes, over its unix socket.

Invariant: standard library only, one connection a call; a daemon that is away raises
`DaemonAwayError`, one that refuses DockerError with its own words.
"""

from __future__ import annotations

import calendar
import http.client
import json
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from records.errors import DockerError

# 20.10, which Debian 12 has; later daemons still speak it.
_VERSION = "/v1.41"
_TIMEOUT_S = 60
_FRAME = struct.Struct(">BxxxL")


class DaemonAwayError(DockerError):
    """Nobody listens at the daemon's socket, or the answer broke off."""


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket file."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT_S)
        self.sock.connect(self._path)


@dataclass(frozen=True, slots=True)
class DockerApi:
    """A daemon by its socket."""

    socket: str

    def version(self) -> dict[str, Any]:
        """GET /version."""
        found: dict[str, Any] = self._json("GET", "/version")
        return found

    def image(self, name: str) -> dict[str, Any]:
        """Inspect an image by id or reference."""
        found: dict[str, Any] = self._json("GET", f"/images/{quote(name, safe='/:@')}/json")
        return found

    def container(self, name: str) -> dict[str, Any] | None:
        """Inspect a container; None where there is none of this name."""
        status, body = self._call("GET", f"/containers/{name}/json")
        if status == 404:
            return None
        found: dict[str, Any] = _checked(status, body, f"container {name}")
        return found

    def create(self, name: str, request: dict[str, Any]) -> str:
        """Create a container from the request as it is; its id."""
        return str(self._json("POST", f"/containers/create?name={name}", request)["Id"])

    def start(self, container: str) -> None:
        """Start it; one that runs already is fine (304)."""
        self._json("POST", f"/containers/{container}/start")

    def signal(self, container: str, name: str) -> None:
        """Send its first process a signal."""
        self._json("POST", f"/containers/{container}/kill?signal={name}")

    def remove(self, container: str) -> None:
        """Remove it, running or not, with its anonymous volumes."""
        self._json("DELETE", f"/containers/{container}?force=1&v=1")

    def remembers_start(self, container: str) -> bool:
        """Whether this daemon saw the container start. Its memory of events ends with it."""
        filters = json.dumps({"container": [container], "event": ["start"]})
        query = urlencode({"since": 0, "until": int(time.time()) + 1, "filters": filters})
        status, body = self._call("GET", f"/events?{query}")
        if status != 200:
            _checked(status, body, f"events of {container}")
        return bool(body.strip())

    def output(self, container: str, since: str) -> Iterator[tuple[str, str]]:
        """(time stamp, line) of what it printed from `since` on; "" for everything."""
        query: dict[str, Any] = {"stdout": 1, "stderr": 1, "timestamps": 1}
        if since:
            query["since"] = unix_time(since)
        status, body = self._call("GET", f"/containers/{container}/logs?{urlencode(query)}")
        if status != 200:
            _checked(status, body, f"output of {container}")
        for line in _unframed(body).decode("utf-8", "replace").splitlines():
            stamp, _, text = line.partition(" ")
            yield stamp, text

    def _json(self, method: str, path: str, value: Any = None) -> Any:
        status, body = self._call(method, path, value)
        return _checked(status, body, f"{method} {path.partition('?')[0]}")

    def _call(self, method: str, path: str, value: Any = None) -> tuple[int, bytes]:
        connection = _UnixConnection(self.socket)
        headers = {} if value is None else {"Content-Type": "application/json"}
        try:
            body = None if value is None else json.dumps(value)
            connection.request(method, _VERSION + path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise DaemonAwayError(
                f"no answer from the Docker daemon at {self.socket}: {error}", "kit doctor HOST"
            ) from error
        finally:
            connection.close()


def _checked(status: int, body: bytes, what: str) -> Any:
    try:
        value = json.loads(body) if body.strip() else {}
    except ValueError:
        value = {"message": body[:200].decode("utf-8", "replace")}
    if status >= 400:
        message = str(value.get("message", "")) if isinstance(value, dict) else ""
        raise DockerError(f"{what}: HTTP {status} {message}", remedy_for(message))
    return value


def remedy_for(message: str) -> str:
    """What helps against the daemon's refusals that are known."""
    if "could not select device driver" in message:
        return "install nvidia-container-toolkit; sudo nvidia-ctk runtime configure; restart docker"
    if "unsatisfied condition" in message:
        return "the image needs a newer driver: kit doctor HOST"
    if "no space left" in message:
        return "free space under DockerRootDir: docker system df"
    if "o such image" in message:
        return "pull it: start the same command again"
    return "kit doctor HOST"


def unix_time(stamp: str) -> str:
    """`seconds.nanoseconds`, which the API wants, of the RFC 3339 stamp that it prints, in UTC."""
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    seconds = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))
    return f"{seconds}.{fraction.ljust(9, '0')}"


def _unframed(data: bytes) -> bytes:
    """Both streams joined; each frame has a header of 8 bytes (Engine API, ContainerAttach)."""
    parts, at = [], 0
    while at + _FRAME.size <= len(data):
        size = _FRAME.unpack_from(data, at)[1]
        at += _FRAME.size
        parts.append(data[at : at + size])
        at += size
    return b"".join(parts)
