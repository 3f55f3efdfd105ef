"""paper/published.toml: the published figures that a reproduction is held against.

Invariant: only what the source states; a margin is fixed before the data, or there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import tomllib

from records.errors import ClaimError

PUBLISHED = Path("paper") / "published.toml"
_REQUIRED = {"id", "text", "figure", "unit", "source"}
_OPTIONAL = {"margin", "boots"}
_MARGIN = {"relative", "fixed", "reason"}


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a reproduction may lie from the figure, as a fraction of it, and since when."""

    relative: Decimal
    fixed: str
    reason: str


@dataclass(frozen=True, slots=True)
class Published:
    """One published claim. `figure`: as printed there; `boots`: how many it rests on, 0: unsaid."""

    id: str
    text: str
    figure: str
    unit: str
    source: str
    boots: int = 0
    margin: Margin | None = None

    @property
    def printed(self) -> str:
        """Figure and unit, as paper and findings must show them."""
        return f"{self.figure} {self.unit}" if self.unit else self.figure


def load_published(root: Path) -> dict[str, Published]:
    """The published claims by id; none without the file. ClaimError says what is wrong with it."""
    path = root / PUBLISHED
    return parse_published(path.read_text(encoding="utf-8")) if path.is_file() else {}


def parse_published(text: str) -> dict[str, Published]:
    """Read `source` and the `[[claim]]` entries."""
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClaimError(f"{PUBLISHED}: {error}") from error
    entries = value.pop("claim", [])
    if value or not isinstance(entries, list):
        raise ClaimError(f"{PUBLISHED}: want nothing but [[claim]] entries")
    found: dict[str, Published] = {}
    for entry in entries:
        one = _published(entry)
        if one.id in found:
            raise ClaimError(f"{PUBLISHED}: {one.id} is there twice")
        found[one.id] = one
    return found


def _published(entry: Any) -> Published:
    name = entry.get("id", "?") if isinstance(entry, dict) else "?"
    keys = set(entry) if isinstance(entry, dict) else set()
    if not _REQUIRED <= keys <= _REQUIRED | _OPTIONAL:
        wrong = ", ".join(sorted((_REQUIRED - keys) | (keys - _REQUIRED - _OPTIONAL)))
        raise ClaimError(f"{PUBLISHED}: {name}: missing or unknown: {wrong}")
    texts = {key: entry[key] for key in _REQUIRED}
    boots = entry.get("boots", 0)
    if not all(isinstance(text, str) for text in texts.values()) or type(boots) is not int:
        raise ClaimError(f"{PUBLISHED}: {name}: {', '.join(sorted(_REQUIRED))} are texts")
    margin = _margin(name, entry["margin"]) if "margin" in entry else None
    return Published(**texts, boots=boots, margin=margin)


def _margin(name: str, entry: Any) -> Margin:
    if not isinstance(entry, dict) or set(entry) != _MARGIN:
        raise ClaimError(f"{PUBLISHED}: {name}: a margin has exactly {', '.join(sorted(_MARGIN))}")
    try:
        relative = Decimal(entry["relative"])
    except (InvalidOperation, TypeError, ValueError) as error:
        raise ClaimError(f"{PUBLISHED}: {name}: not a number: {entry['relative']!r}") from error
    if not 0 < relative < 1:
        raise ClaimError(f"{PUBLISHED}: {name}: a margin is between 0 and 1")
    return Margin(relative, str(entry["fixed"]), str(entry["reason"]))
