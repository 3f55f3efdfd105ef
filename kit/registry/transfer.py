"""One GET, asked again within bounds: connection lost, body cut short, 5xx, 429 with Retry-After.

Invariant: a body that is returned is whole as far as its length is known, and within its limit;
what no waiting changes, kit/registry/unreachable.py, is told at once.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx

from kit.registry import backoff, unreachable
from records.errors import RegistryBusyError, RegistryError

_TIMEOUT_S = 30.0
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: any status but 429 and 5xx."""

    status: int
    headers: httpx.Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class Transfer:
    """`wait` sleeps that many seconds; `say` tells the user why."""

    http: httpx.Client
    wait: Callable[[float], None]
    say: Callable[[str], None]

    def get(
        self,
        url: str,
        headers: Mapping[str, str],
        what: str,
        limit_bytes: int,
        size_bytes: int | None = None,
    ) -> Answer:
        """The answer. RegistryBusyError: 429 to the end; RegistryError: no way there, or no whole
        body to the end.

        `size_bytes`: what a 200 must carry; `what` names the thing in messages.
        """
        for attempt in range(1, backoff.ATTEMPTS + 1):
            retry_after, busy = "", False
            try:
                answer = self._once(url, headers, what, limit_bytes)
            except (httpx.RequestError, UnicodeError) as failure:
                final = unreachable.reason(failure)
                if final is not None:
                    raise RegistryError(f"{what}: {final[0]}", final[1]) from failure
                problem = f"{type(failure).__name__}: {failure}"
            else:
                if answer.status == 429 or answer.status >= 500:
                    problem = f"HTTP {answer.status}"
                    retry_after = answer.headers.get("Retry-After", "")
                    busy = answer.status == 429
                elif answer.status == 200 and size_bytes not in (None, len(answer.body)):
                    problem = f"got {len(answer.body)} bytes, want {size_bytes}"
                else:
                    return answer
            if attempt == backoff.ATTEMPTS:
                break
            now = datetime.datetime.now(datetime.timezone.utc)
            seconds = backoff.wait_s(attempt, retry_after, now)
            self.say(f"{what}: {problem}; asking again in {seconds:g} s")
            self.wait(seconds)
        message = f"{what}: {problem}, {backoff.ATTEMPTS} times"
        mirror = "use a mirror: --mirror HOST"
        if busy:
            raise RegistryBusyError(message, f"log in (anonymous pulls are limited), or {mirror}")
        raise RegistryError(message, f"check the network, or {mirror}")

    def _once(self, url: str, headers: Mapping[str, str], what: str, limit_bytes: int) -> Answer:
        # identity: what is hashed must be what was sent.
        sent = {**headers, "Accept-Encoding": "identity"}
        with self.http.stream("GET", url, headers=sent) as response:
            body = bytearray()
            for block in response.iter_raw():
                body += block
                if len(body) > limit_bytes:
                    raise RegistryError(f"{what}: more than {limit_bytes} bytes, not read further")
            return Answer(response.status_code, response.headers, bytes(body))


def open_http(*direct: str) -> httpx.Client:
    """A client for transfers; redirected (blobs lie elsewhere) it drops the Authorization header.

    Environment proxies count for registries as for any client, except for loopback and the hosts in
    `direct`: httpx itself would send what is meant for this machine to HTTP_PROXY.
    """
    hosts = dict.fromkeys((*_LOOPBACK, *direct))
    mounts = dict.fromkeys(f"all://{host}" for host in hosts)
    return httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True, max_redirects=5, mounts=mounts)
