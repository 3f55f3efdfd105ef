"""What one distribution's RECORD says, without what the installer and the place added to it.

Invariant: two installs of one wheel, by whatever installer and in whatever directory, give the same
canonical text. Format of RECORD: packaging.python.org, "Recording installed projects".

Canonical text: one line `path,algorithm=hash` for each row that has a hash, each line once, sorted
by its bytes, every line ended by LF. The hash is as in RECORD (urlsafe base64 without padding); a
path with a comma or quote is quoted as in RECORD. The size is left out. For a path that leaves the
site directory the leading run of `../` is written as one `../`: how many there are depends on the
layout, not on the wheel. Left out:

- rows without a hash: RECORD itself and compiled bytecode;
- any .pyc;
- `../bin/…`, and `bin/…` (where `--target` installs put them): scripts, whose first line an
  installer rewrites to the path of the interpreter;
- absolute paths;
- INSTALLER, REQUESTED, direct_url.json, uv_cache.json, uv_build.json in the .dist-info directory.

One limit: files that a wheel keeps outside the site directory (its `data`) lie inside it after a
`--target` install, so the few distributions with such files have another digest there.

So a shell gives the same digest, from inside a .dist-info directory:

    export LC_ALL=C; tr -d '\\r' < RECORD | sed 's/,[0-9]*$//' | grep ',sha[0-9]*=' |
    sed -E 's#^(\\.\\./)+#../#' | grep -vE '^(\\.\\./)?bin/|^/|\\.pyc,' |
    grep -vE '\\.dist-info/(INSTALLER|REQUESTED|direct_url\\.json|uv_(cache|build)\\.json),' |
    sort -u | sha256sum
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import posixpath
import re
from dataclasses import dataclass

from records.digest import Digest
from records.errors import BindingError

# Files by which an installer notes its own doings (PEP 627, PEP 610; the last two are uv's).
_INSTALLER_FILES = ("INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json")
_ALGORITHMS = ("sha256", "sha384", "sha512")


@dataclass(frozen=True, slots=True)
class Row:
    """A file of a distribution. `path` is relative to the site directory, or absolute."""

    path: str
    algorithm: str
    hash: bytes
    hash_text: str


def parse_record(text: str, name: str) -> tuple[Row, ...]:
    """The rows of a RECORD; `name` is for the error. BindingError where a row cannot be read."""
    rows = []
    for number, fields in enumerate(csv.reader(io.StringIO(text, newline="")), start=1):
        if not fields:
            continue
        if len(fields) != 3 or not fields[0]:
            raise BindingError(f"RECORD of {name}, line {number}: expected path,hash,size")
        algorithm, _, encoded = fields[1].partition("=")
        if fields[1] and algorithm not in _ALGORITHMS:
            raise BindingError(f"RECORD of {name}, line {number}: hash of kind {algorithm!r}")
        rows.append(Row(fields[0], algorithm, _decoded(encoded, name, number), encoded))
    return tuple(rows)


def canonical_text(rows: tuple[Row, ...]) -> bytes:
    """The canonical text of the module's docstring."""
    lines = set()
    for row in rows:
        path = _place_free(row.path)
        if row.hash and path is not None:
            lines.add(f"{_quoted(path)},{row.algorithm}={row.hash_text}\n".encode())
    return b"".join(sorted(lines))


def record_digest(rows: tuple[Row, ...]) -> Digest:
    """The digest of the canonical text."""
    return Digest.of(canonical_text(rows))


def _place_free(path: str) -> str | None:
    """The path as it enters the canonical text, or None where it does not."""
    path = posixpath.normpath(path)
    if path.startswith("/") or path.endswith(".pyc"):
        return None
    folder, _, file = path.rpartition("/")
    if folder.endswith(".dist-info") and file in _INSTALLER_FILES:
        return None
    path = re.sub(r"^(?:\.\./)+", "../", path)
    return None if path.startswith(("../bin/", "bin/")) else path


def _quoted(path: str) -> str:
    if not re.search(r'[,"\r\n]', path):
        return path
    return '"' + path.replace('"', '""') + '"'


def _decoded(encoded: str, name: str, number: int) -> bytes:
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except (binascii.Error, ValueError):
        raise BindingError(f"RECORD of {name}, line {number}: not a hash: {encoded!r}") from None
