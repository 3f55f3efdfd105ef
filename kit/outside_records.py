"""What a verb writes where a user says: anywhere, but not among the records.

Invariant: a directory of records holds runs alone, whatever is typed; an empty name is none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from kit.home import Home
from records.errors import ExportError


def require_outside_records(out: Path, here: Home) -> None:
    """ExportError where `out` lies in the records of this project or of KIT_DATA."""
    shipped = here.root / "records" / "data"
    if any(out.resolve().is_relative_to(data.resolve()) for data in (here.data, shipped)):
        raise ExportError(f"{out} lies among the records, which hold runs alone", "--out build/…")


class Place(click.Path):
    """An option's path to write to; "" is refused, which a shell makes of a variable without a
    value, and which would be the working directory.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """The path, or BadParameter."""
        if not os.fspath(value):
            self.fail("an empty name; a place to write to is wanted", param, ctx)
        return super().convert(value, param, ctx)
