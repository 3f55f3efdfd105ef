"""The keys of runs that earlier audits found clean, kept in the working directory.

Invariant: a key says nothing by itself; whoever can write here can also write the records, and a
full audit asks nothing of this file. It may be deleted at any time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from records import durable

NAME = "audit-cache.json"
_FORMAT = 1
_MOST_KEYS = 10_000


def read_keys(home: Path) -> frozenset[str]:
    """The known keys; none where the file is missing, damaged or of another format."""
    path = home / NAME
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return frozenset()
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        return frozenset()
    keys = value.get("clean", [])
    return (
        frozenset(key for key in keys if isinstance(key, str))
        if isinstance(keys, list)
        else frozenset()
    )


def keep_keys(home: Path, known: Iterable[str], clean: Iterable[str]) -> None:
    """Add keys, newest last; the oldest go where there are too many."""
    keys = list(dict.fromkeys([*sorted(known), *clean]))[-_MOST_KEYS:]
    home.mkdir(parents=True, exist_ok=True)
    data = json.dumps({"format": _FORMAT, "clean": keys}, indent=1) + "\n"
    durable.replace(home / NAME, data.encode())
