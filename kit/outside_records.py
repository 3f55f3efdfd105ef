"""What a verb writes where a user says: anywhere, but not among the records.

Invariant: a directory of records holds runs alone, whatever is typed.
"""

from __future__ import annotations

from pathlib import Path

from kit.home import Home
from records.errors import ExportError


def require_outside_records(out: Path, here: Home) -> None:
    """ExportError where `out` lies in the records of this project or of KIT_DATA."""
    shipped = here.root / "records" / "data"
    if any(out.resolve().is_relative_to(data.resolve()) for data in (here.data, shipped)):
        raise ExportError(f"{out} lies among the records, which hold runs alone", "--out build/…")
