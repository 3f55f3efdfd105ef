"""Ask one registry for manifests and blobs (OCI distribution specification 1.1), hashed here.

Invariant: bytes leave this module only if their SHA-256 is the one asked for; with a tag, which
promises nothing, their digest is told beside them. A password goes to https or loopback only.
"""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from urllib.parse import SplitResult, urlencode, urlsplit

from kit.registry.challenge import Challenge
from kit.registry.challenge import parse as parse_challenge
from kit.registry.credentials import HUB, PASSWORD, USER, Credentials
from kit.registry.manifest import INDEX_TYPES, MANIFEST_TYPES, Descriptor
from kit.registry.transfer import Answer, Transfer
from records.digest import Digest
from records.errors import ImageMismatchError, RegistryError

# The specification asks registries to take manifests of 4 MiB; configurations are far below 16.
MANIFEST_LIMIT_BYTES = 4 << 20
BLOB_LIMIT_BYTES = 16 << 20
_TOKEN_LIMIT_BYTES = 1 << 20
_ACCEPT = {"Accept": ", ".join((*INDEX_TYPES, *MANIFEST_TYPES))}
_OTHER = "check the name; or use a mirror: --mirror HOST"
_HUB_HOST = "registry-1.docker.io"


class NotAtRegistryError(RegistryError):
    """The registry answers, and does not have what was asked for (404)."""


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes and their digest, computed here."""

    data: bytes
    digest: Digest


class Registry:
    """One registry, by the name that image references use for it."""

    def __init__(self, name: str, transfer: Transfer, credentials: Credentials | None) -> None:
        self.name = name
        self._url = base_url(name)
        self._transfer = transfer
        self._credentials = credentials
        self._authorization: dict[str, str] = {}  # by repository: a token's scope is one

    def manifest(self, repository: str, reference: Digest | str) -> Content:
        """The manifest of a digest or a tag. ImageMismatchError: other bytes under the digest."""
        by_digest = isinstance(reference, Digest)
        what = f"{self.name}/{repository}{'@' if by_digest else ':'}{reference}"
        path = f"/v2/{repository}/manifests/{reference}"
        body = self._get(repository, path, what, _ACCEPT, MANIFEST_LIMIT_BYTES, None)
        return self._checked(body, reference if isinstance(reference, Digest) else None, what)

    def blob(self, repository: str, descriptor: Descriptor) -> Content:
        """The blob of a descriptor: whole, and of its digest."""
        what = f"{self.name}/{repository} blob {descriptor.digest}"
        size = descriptor.size_bytes
        if size > BLOB_LIMIT_BYTES:
            raise RegistryError(f"{what}: said to have {size} bytes, limit {BLOB_LIMIT_BYTES}")
        path = f"/v2/{repository}/blobs/{descriptor.digest}"
        body = self._get(repository, path, what, {}, BLOB_LIMIT_BYTES, size)
        return self._checked(body, descriptor.digest, what)

    def _checked(self, body: bytes, want: Digest | None, what: str) -> Content:
        got = Digest.of(body)
        if want is not None and got != want:
            raise ImageMismatchError(
                f"{what}: got {got} ({len(body)} bytes), want {want}",
                f"do not use {self.name}: it serves other bytes than were asked for",
            )
        return Content(body, got)

    def _get(
        self,
        repository: str,
        path: str,
        what: str,
        headers: dict[str, str],
        limit_bytes: int,
        size_bytes: int | None,
    ) -> bytes:
        """The body; a first 401 is answered with what the registry wants, a second is final."""
        answer = self._ask(repository, path, what, headers, limit_bytes, size_bytes)
        if answer.status == 401:
            header = answer.headers.get("WWW-Authenticate", "")
            self._authorization[repository] = self._authorize(repository, header)
            answer = self._ask(repository, path, what, headers, limit_bytes, size_bytes)
        if answer.status == 404:
            raise NotAtRegistryError(f"{what}: not there (404)", "check the name and the registry")
        if answer.status != 200:
            raise RegistryError(
                f"{what}: refused, HTTP {answer.status} {_told(answer.body)}".rstrip(),
                f"docker login {self.name}, or set {USER} and {PASSWORD}",
            )
        return answer.body

    def _ask(
        self,
        repository: str,
        path: str,
        what: str,
        headers: dict[str, str],
        limit_bytes: int,
        size_bytes: int | None,
    ) -> Answer:
        known = self._authorization.get(repository)
        sent = {**headers, "Authorization": known} if known else headers
        return self._transfer.get(self._url + path, sent, what, limit_bytes, size_bytes)

    def _authorize(self, repository: str, header: str) -> str:
        """The Authorization that the challenge asks for."""
        challenge = parse_challenge(header)
        if challenge.scheme == "bearer":
            return "Bearer " + self._token(repository, challenge)
        if self._credentials is None:
            raise RegistryError(
                f"{self.name} asks for a user and a password, none are known",
                f"docker login {self.name}, or set {USER} and {PASSWORD}",
            )
        self._require_private(self._url)
        return self._credentials.basic()

    def _token(self, repository: str, challenge: Challenge) -> str:
        """A pull token from the realm (distribution specification, token authentication)."""
        realm = challenge.parameters["realm"]
        where = _address(realm, self.name)
        query = {"scope": f"repository:{repository}:pull"}
        if "service" in challenge.parameters:
            query["service"] = challenge.parameters["service"]
        headers = {}
        if self._credentials is not None:
            self._require_private(realm)
            headers["Authorization"] = self._credentials.basic()
        what = f"token for {self.name}/{repository} from {where.netloc}"
        url = f"{realm}{'&' if where.query else '?'}{urlencode(query)}"
        answer = self._transfer.get(url, headers, what, _TOKEN_LIMIT_BYTES)
        if answer.status != 200:
            raise RegistryError(
                f"{what}: refused, HTTP {answer.status} {_told(answer.body)}".rstrip(),
                f"docker login {self.name}, or set {USER} and {PASSWORD}",
            )
        try:
            given = json.loads(answer.body)
            token = given.get("token") or given["access_token"]
        except (ValueError, KeyError, AttributeError, RecursionError):
            token = None
        if not isinstance(token, str):
            raise RegistryError(f"{what}: the answer holds no token")
        return token

    def _require_private(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise RegistryError(
                f"{self.name} wants a password in clear at {parts.scheme}://{parts.netloc}",
                "use a registry with https",
            )


def base_url(registry: str) -> str:
    """Where a registry of this name answers; plain HTTP on loopback only, as Docker does."""
    host = _HUB_HOST if registry == HUB else registry
    return f"{'http' if is_loopback(host.rpartition(':')[0] or host) else 'https'}://{host}"


def is_loopback(host: str) -> bool:
    """Whether traffic to this host name or address stays on this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address(realm: str, registry: str) -> SplitResult:
    """The parts of a realm. RegistryError where nobody can be asked there."""
    try:
        parts = urlsplit(realm)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and realm.isprintable()
    except ValueError:
        is_one = False
    if not is_one:
        raise RegistryError(f"{registry}: {realm[:80]!r} is no address for tokens", _OTHER)
    return parts


def _told(body: bytes) -> str:
    """The first error in a registry's own words, "" where it gave none."""
    try:
        error = json.loads(body)["errors"][0]
        return " ".join(f"{error['code']}: {error.get('message', '')}".split())[:200]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return ""
