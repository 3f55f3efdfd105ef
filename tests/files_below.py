"""What a directory holds, to be compared with what it held."""

from __future__ import annotations

from pathlib import Path


def files_below(top: Path) -> dict[str, bytes]:
    """The content of each file by its path below `top`."""
    files = (path for path in sorted(top.rglob("*")) if path.is_file())
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in files}
