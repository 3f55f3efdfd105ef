"""No secret has got into the records."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView

SECRET = Code(
    "HYGIENE01",
    "error",
    "something that looks like a secret stands in the records",
    "Engines have been seen to log tokens in clear (vLLM issue 53625). The harness redacts them; "
    "this looks again. The finding does not repeat what it found.",
    "revoke the token first; then the run must be measured again, since records are not edited",
)

# The documented prefixes of Hugging Face, GitHub, OpenAI-style and AWS keys; PEM (RFC 7468).
_PATTERNS = re.compile(
    rb"\bhf_[A-Za-z0-9]{30,}|\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{30,}"
    rb"|\bsk-[A-Za-z0-9_-]{32,}|\bAKIA[0-9A-Z]{16}\b|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
# A substring search is ten times faster than the pattern, and journals are long.
_HEADS = (
    b"hf_",
    b"ghp_",
    b"gho_",
    b"ghu_",
    b"ghs_",
    b"ghr_",
    b"github_pat_",
    b"sk-",
    b"AKIA",
    b"PRIVATE KEY",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Look through every line of every file of every run, unpacked where packed."""
    for run in repository.runs:
        for path in sorted(run.directory.path.rglob("*")):
            if not path.is_file() or path.is_symlink():
                continue
            for number, line in enumerate(_lines(path), 1):
                if any(head in line for head in _HEADS) and (match := _PATTERNS.search(line)):
                    kind = match[0][:4].decode("utf-8", "replace")
                    got = f"{kind}… ({len(match[0])} characters)"
                    yield SECRET.at(repository.show(path), number, "", got, "<redacted>")


def _lines(path: Path) -> Iterator[bytes]:
    """Lines of a file; of a packed one that is damaged, those before the damage."""
    if path.suffix != ".gz":
        with path.open("rb") as plain:
            yield from plain
        return
    with gzip.open(path, "rb") as packed:
        try:
            yield from packed
        except (OSError, EOFError, zlib.error):
            # A damaged file is reported by the seal check; a secret cannot be read from it either.
            return


CHECK = Check("hygiene", "No secret has got into the records.", (SECRET,), check)
