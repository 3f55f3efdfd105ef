"""Wheel locks as read by the bundle: one wheel for each distribution, by hash.

Invariant: a lock that names several hashes for one distribution is refused, since then the wheel
would be chosen by where it is downloaded; so one lock and one host give one set of wheels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from records.digest import Digest
from records.errors import FormatError

_ENTRY = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>\S+)"
    r"(?P<hashes>(?:\s*\\?\s+--hash=sha256:[0-9a-f]{64})+)\s*"
)


@dataclass(frozen=True, slots=True)
class LockedWheel:
    """One wheel of a lock; the name as in PEP 503."""

    name: str
    version: str
    digest: Digest

    def requirement(self) -> str:
        """Its lines in a requirements file."""
        return f"{self.name}=={self.version} --hash=sha256:{self.digest.hex}\n"


def read_wheel_lock(path: Path) -> tuple[LockedWheel, ...]:
    """The wheels of a lock by name. FormatError: anything else than pins with one hash each."""
    text = path.read_text(encoding="utf-8")
    body = "".join(line for line in text.splitlines(True) if not line.startswith("#"))
    found: dict[str, LockedWheel] = {}
    end = 0
    for match in _ENTRY.finditer(body):
        hashes = re.findall(r"sha256:([0-9a-f]{64})", match["hashes"])
        name = canonicalize_name(match["name"])
        if match.start() != end or len(hashes) != 1 or name in found:
            break
        end = match.end()
        found[name] = LockedWheel(name, match["version"], Digest(hashes[0]))
    if end != len(body):
        raise FormatError(
            f"{path}: expected name==version with one --hash, each name once, at: "
            f"{body[end : end + 60]!r}",
            "images/README.md tells how a lock is made",
        )
    return tuple(found[name] for name in sorted(found))


def names_in(path: Path) -> frozenset[str]:
    """The names that a list of overrides leaves out; empty where there is no such file."""
    if not path.is_file():
        return frozenset()
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    found = (re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line) for line in lines)
    return frozenset(canonicalize_name(match[0]) for match in found if match)
