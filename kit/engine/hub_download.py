"""Bring the files of one revision of a model from a hub, each held against its locked digest.

Invariant: a file has its name only once its digest was compared; what has arrived of it is kept
beside it, and the next attempt goes on there. The token goes to the hub's own host alone, over TLS
or on loopback; where the hub sends us on to, it does not go. Travels to hosts: standard library of
Python 3.10.

Hub: huggingface.co/docs/hub, `/{repository}/resolve/{revision}/{file}`; ranges as RFC 9110, 14.
"""

from __future__ import annotations

import fcntl
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urlsplit

from records.digest import Digest
from records.errors import FormatError, ProvisionError

_ATTEMPTS = 6
_FIRST_WAIT_S = 1.0
_TIMEOUT_S = 60
_BLOCK_BYTES = 1 << 20
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_AGAIN = "make reproduce  (it goes on from what has arrived)"


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository at one commit. `gated`: the hub gives it to those who accepted its licence."""

    repository: str
    revision: str
    gated: bool = False
    endpoint: str = "https://huggingface.co"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{40}", self.revision):
            raise FormatError(f"{self.repository}: revision {self.revision!r} is no commit")
        if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", self.repository):
            raise FormatError(f"not a repository of a hub: {self.repository!r}")
        where = urlsplit(self.endpoint)
        if where.scheme != "https" and where.hostname not in _LOOPBACK:
            raise FormatError(f"{self.endpoint}: a hub is asked over https")

    def url(self, file: str) -> str:
        """Where a file of the revision is."""
        return f"{self.endpoint}/{self.repository}/resolve/{self.revision}/{quote(file)}"


def require_token(hub: HubSource, token: str) -> None:
    """ProvisionError, before anything is begun, where a gated model has no token to ask with."""
    if hub.gated and not token:
        raise ProvisionError(
            f"{hub.repository} is gated: the hub wants a token, and none is set here",
            f"accept its licence at {hub.endpoint}/{hub.repository}, then: export HF_TOKEN=…",
        )


def download(
    hub: HubSource,
    files: Mapping[str, tuple[Digest, int]],
    directory: Path,
    token: str,
    progress: Callable[[str], None],
) -> None:
    """Every file in `directory`, by (digest, size). ProvisionError; one download at a time."""
    require_token(hub, token)
    directory.mkdir(parents=True, exist_ok=True)
    with _alone(directory.with_name(f"{directory.name}.lock")):
        for name, (digest, size_bytes) in files.items():
            path = directory / name
            if path.is_file() and _digest(path) == digest:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            progress(f"downloading {name} of {hub.repository} ({size_bytes >> 20} MiB)")
            partial = path.with_name(f"{path.name}.partial")
            _whole(hub, name, partial, size_bytes, token, progress)
            got = _digest(partial)
            if got != digest:
                partial.unlink()
                raise ProvisionError(
                    f"{hub.url(name)}: got {got}, want {digest}",
                    "the hub serves other bytes than the lock holds; nothing of it is used",
                )
            partial.replace(path)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Another kit that downloads the same model here is waited for: it leaves the files."""
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _whole(
    hub: HubSource,
    name: str,
    partial: Path,
    size_bytes: int,
    token: str,
    progress: Callable[[str], None],
) -> None:
    """The file with its locked size, again from where it broke off."""
    for attempt in range(1, _ATTEMPTS + 1):
        problem = _some(hub, name, partial, size_bytes, token)
        have = partial.stat().st_size if partial.exists() else 0
        if not problem and have == size_bytes:
            return
        problem = problem or f"ended after {have} of {size_bytes} bytes"
        if have > size_bytes:
            partial.unlink()
        if attempt < _ATTEMPTS:
            wait_s = _FIRST_WAIT_S * (1 << (attempt - 1))
            progress(f"{name}: {problem}; going on in {wait_s:g} s")
            time.sleep(wait_s)
    raise ProvisionError(f"{hub.url(name)}: {problem}", _AGAIN)


def _some(hub: HubSource, name: str, partial: Path, size_bytes: int, token: str) -> str:
    """One attempt; what stood in its way, "" for nothing. ProvisionError: no other would help."""
    have = partial.stat().st_size if partial.exists() else 0
    if have >= size_bytes and have:
        return ""
    request = urllib.request.Request(hub.url(name))  # noqa: S310 - https, or loopback
    if have:
        request.add_header("Range", f"bytes={have}-")
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with _Opener.build().open(request, timeout=_TIMEOUT_S) as answer:
            _keep(answer, partial, append=answer.status == http.HTTPStatus.PARTIAL_CONTENT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (401, 403):
            raise _refused(hub, error.code, token) from None
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            partial.unlink(missing_ok=True)
        elif error.code < 500 and error.code != http.HTTPStatus.TOO_MANY_REQUESTS:
            raise ProvisionError(
                f"{hub.url(name)}: HTTP {error.code}", "is repository and revision still there?"
            ) from None
        return f"HTTP {error.code}"
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as e:
        return f"{getattr(e, 'reason', None) or e or type(e).__name__}"
    return ""


def _refused(hub: HubSource, status: int, token: str) -> ProvisionError:
    page = f"{hub.endpoint}/{hub.repository}"
    if token:
        return ProvisionError(
            f"{page}: the hub refuses this token (HTTP {status})",
            f"accept the licence at {page} as the token's owner, or export another HF_TOKEN",
        )
    return ProvisionError(
        f"{page}: the hub wants a token (HTTP {status})", f'{page}; mark it "gated" in the lock'
    )


def _keep(answer: IO[bytes], partial: Path, *, append: bool) -> None:
    with partial.open("ab" if append else "wb") as file:
        while block := answer.read(_BLOCK_BYTES):
            file.write(block)


class _Opener(urllib.request.HTTPRedirectHandler):
    """Follows redirects; the token, an unredirected header, stays unless the host is the same."""

    @classmethod
    def build(cls) -> urllib.request.OpenerDirector:
        return urllib.request.build_opener(cls)

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """The request that follows; ours again where it leads back to the hub."""
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        token = req.unredirected_hdrs.get("Authorization")
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if following is not None and token and (old.scheme, old.netloc) == (new.scheme, new.netloc):
            following.add_unredirected_header("Authorization", token)
        return following


def _digest(path: Path) -> Digest:
    with path.open("rb") as file:
        return Digest.of_file(file)
