"""Read `registry/repository:tag`, the one place where a tag comes in, and names of registries.

Invariant: what is returned went through the grammar of distribution/reference.
"""

from __future__ import annotations

import re

from records.digest import Digest, ImageRef
from records.errors import FormatError

_TAG = re.compile(r"(?P<name>.+):(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127})")
_ANY = Digest("0" * 64)


def parse_tagged(text: str) -> tuple[str, str, str]:
    """Registry, repository and tag. FormatError where one of them is missing or malformed."""
    match = _TAG.fullmatch(text)
    if match is None or "/" in match["tag"]:
        raise FormatError(f"not an image named by tag: {text!r}", "write registry/repository:tag")
    name = ImageRef.parse(f"{match['name']}@{_ANY}")
    return name.registry, name.repository, match["tag"]


def parse_registry(text: str) -> str:
    """A registry by itself. FormatError: to Docker, and to an image reference, this is none."""
    try:
        return ImageRef(text, "any", _ANY).registry
    except FormatError as error:
        raise FormatError(
            f"not a registry: {text!r}", "write its host, as in host.example.org or host:5000"
        ) from error
