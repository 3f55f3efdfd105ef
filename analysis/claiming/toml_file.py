"""The small TOML files beside the paper, read so that whatever stands in them is a ClaimError.

Invariant: bytes that are no UTF-8, nesting without end and broken TOML are one kind of failure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomllib

from records.errors import ClaimError


def toml_text(path: Path) -> str:
    """The text of a file. ClaimError where it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ClaimError(f"{path.name}: not UTF-8: {error}") from error


def toml_value(text: str, name: Path) -> dict[str, Any]:
    """What a text holds; `name` is shown where it does not decode (ClaimError)."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ClaimError(f"{name}: {error}") from error
