"""Digests and image references, parsed once into frozen types; no bare strings after.

Invariant: a value of these types is well formed. Grammar: OCI image spec, descriptor.md (digest)
and distribution/reference (image reference).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import BinaryIO

from records.errors import FormatError

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
# A first part without dot or port is no registry but, to Docker, a namespace of docker.io.
_HOST = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<registry>localhost|(?:{_HOST})(?:\.{_HOST})+|(?:{_HOST})(?:\.{_HOST})*:[0-9]{{1,5}})/"
    rf"(?P<repository>{_PART}(?:/{_PART})*)"
    r"@(?P<digest>sha256:[0-9a-f]{64})"
)
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, order=True, slots=True)
class Digest:
    """A SHA-256 digest; `hex` is its 64 lower-case hexadecimal digits."""

    hex: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{64}", self.hex):
            raise FormatError(f"not a SHA-256 digest: {self.hex!r}")

    @classmethod
    def parse(cls, text: str) -> Digest:
        """Read `sha256:<64 hex>`; anything else raises FormatError."""
        match = _DIGEST.fullmatch(text)
        if match is None:
            raise FormatError(f"not a digest of the form sha256:<64 hex digits>: {text!r}")
        return cls(match[1])

    @classmethod
    def of(cls, data: bytes | memoryview) -> Digest:
        """The digest of these bytes."""
        return cls(hashlib.sha256(data).hexdigest())

    @classmethod
    def of_file(cls, file: BinaryIO) -> Digest:
        """The digest of what remains of an open binary file, read in blocks of 1 MiB."""
        state = hashlib.sha256()
        while block := file.read(_BLOCK_BYTES):
            state.update(block)
        return cls(state.hexdigest())

    def __str__(self) -> str:
        return f"sha256:{self.hex}"


@dataclass(frozen=True, slots=True)
class ImageRef:
    """A container image named by digest. There is no form with a tag: tags move."""

    registry: str
    repository: str
    digest: Digest

    def __post_init__(self) -> None:
        if not _REFERENCE.fullmatch(str(self)):
            raise FormatError(f"not an image reference: {str(self)!r}")

    @classmethod
    def parse(cls, text: str) -> ImageRef:
        """Read `registry/repository@sha256:<hex>`; a tag or a missing digest raises FormatError."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise FormatError(
                f"not an image named by digest: {text!r}",
                remedy="write registry/repository@sha256:<64 hex digits>",
            )
        return cls(match["registry"], match["repository"], Digest.parse(match["digest"]))

    def __str__(self) -> str:
        return f"{self.registry}/{self.repository}@{self.digest}"
