"""Nothing that is published holds a secret, or names a person, a machine or a place."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from audit.finding import Check, Code, Finding
from audit.leaks import leaks
from audit.repository import RepositoryView

SECRET = Code(
    "HYGIENE01",
    "error",
    "something that looks like a secret stands in the records",
    "Engines have been seen to log tokens in clear (vLLM issue 53625). The harness redacts them; "
    "this looks again. The finding does not repeat what it found.",
    "revoke the token first; then the run must be measured again, since records are not edited",
)
NAME = Code(
    "HYGIENE02",
    "error",
    "a person, a machine or a place is named in the records",
    "E-mail addresses, network and hardware addresses, internal host names and home directories "
    "say nothing of a measurement. Loopback, documentation addresses and versions are none.",
    "teach remote/engine/redact.py what it missed, then measure again",
)
TEXT = Code(
    "HYGIENE03",
    "error",
    "paper or findings hold a secret, or name a person, a machine or a place",
    "What the records must not hold, the text about them must not either.",
    "take it out of the text; a secret must be revoked too",
)

_BLOCK_BYTES = 1 << 20
_LINE_BYTES = 1 << 26
_TEXTS = frozenset({".tex", ".md", ".toml", ".bib", ".csv", ".svg", ".txt"})


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Look through every file of every run, unpacked where packed."""
    for run in repository.runs:
        for path in sorted(run.directory.path.rglob("*")):
            if path.is_file() and not path.is_symlink():
                for line, kind, shown in _found(path):
                    code = SECRET if kind == "secret" else NAME
                    message = f"{code.title}: {kind}"
                    yield code.at(repository.show(path), line, message, shown, "<redacted>")


def check_texts(repository: RepositoryView) -> Iterator[Finding]:
    """Look through paper/: sources, findings and tables."""
    for path in sorted((repository.root / "paper").rglob("*")):
        if path.is_file() and path.suffix in _TEXTS:
            for line, kind, shown in _found(path):
                message = f"{TEXT.title}: {kind}"
                yield TEXT.at(repository.show(path), line, message, shown, "<redacted>")


def _found(path: Path) -> Iterator[tuple[int, str, str]]:
    """(line, kind, shown) of each leak in a file."""
    lines = 0
    for block in _blocks(path):
        for leak in leaks(block):
            yield lines + block.count(b"\n", 0, leak.offset) + 1, leak.kind, leak.shown
        lines += block.count(b"\n")


def _blocks(path: Path) -> Iterator[bytes]:
    """Whole lines, about a MiB at a time; of a packed file that is damaged, those before."""
    if path.suffix != ".gz":
        with path.open("rb") as plain:
            yield from _by_lines(plain)
        return
    with gzip.open(path, "rb") as packed:
        try:
            yield from _by_lines(packed)
        except (OSError, EOFError, zlib.error):
            # A damaged file is reported by the seal check; a secret cannot be read from it either.
            return


def _by_lines(file: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    while block := file.read(_BLOCK_BYTES):
        # A line that goes on is read to its end: nothing may hide across two blocks.
        # One that never ends (a packed file can hold gigabytes of one byte) is read in pieces.
        yield block if block.endswith(b"\n") else block + file.readline(_LINE_BYTES)


CHECK = Check(
    "hygiene",
    "No secret and no name of a person, machine or place has got into the records.",
    (SECRET, NAME),
    check,
    scope="meaning",
    kind="hygiene",
)
TEXT_CHECK = Check(
    "text hygiene",
    "No secret and no name of a person, machine or place has got into paper and findings.",
    (TEXT,),
    check_texts,
    kind="hygiene",
)
