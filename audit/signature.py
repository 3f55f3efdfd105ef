"""What can be signed, and where signatures lie: names and texts alone, no keys.

Invariant: a signature covers a seal.json byte for byte, or the CHECKPOINT text over the first n
lines of RUNS. That text can be made again from RUNS for every n, so an old signature stays
checkable, and vouches for those n runs, for as long as RUNS only grows.

Signatures are SSHSIG armor as `ssh-keygen -Y sign` writes it (OpenSSH, PROTOCOL.sshsig), in
records/signatures/, beside the data: a sealed run has no room for another file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from records.checkpoint import CHECKPOINT_NAME, Checkpoint, Leaf
from records.errors import FormatError

NAMESPACE = "records@spec-fp8-reproduction-kit"
SIGNATURES_NAME = "signatures"
ALLOWED_SIGNERS_NAME = "allowed_signers"
_NAME = re.compile(
    rf"(?P<run>[0-9A-Za-z][0-9A-Za-z._-]{{0,99}})\.seal\.sig"
    rf"|{CHECKPOINT_NAME}\.(?P<size>[1-9][0-9]{{0,17}})\.sig"
)


@dataclass(frozen=True, slots=True)
class Subject:
    """What one signature is over: the seal of `run_id`; "": the checkpoint at `size`."""

    run_id: str = ""
    size: int = 0

    @property
    def file_name(self) -> str:
        """The name of its signature in records/signatures."""
        return f"{self.run_id}.seal.sig" if self.run_id else f"{CHECKPOINT_NAME}.{self.size}.sig"

    @classmethod
    def parse(cls, file_name: str) -> Subject:
        """Inverse of `file_name`; FormatError for any other name."""
        match = _NAME.fullmatch(file_name)
        if match is None:
            raise FormatError(
                f"not the name of a signature: {file_name!r}",
                remedy=f"<run id>.seal.sig, or {CHECKPOINT_NAME}.<size>.sig",
            )
        return cls(match["run"] or "", int(match["size"] or 0))


def signatures_at(data: Path) -> Path:
    """The folder of the signatures over the records at `data`."""
    return data.parent / SIGNATURES_NAME


def allowed_signers_at(data: Path) -> Path:
    """The list of keys that may sign (ssh-keygen(1), ALLOWED SIGNERS)."""
    return data.parent / ALLOWED_SIGNERS_NAME


def checkpoint_text(leaves: Sequence[Leaf], size: int) -> bytes:
    """The CHECKPOINT over the first `size` runs. FormatError where there are fewer."""
    if size > len(leaves):
        raise FormatError(f"a checkpoint of {size} runs, but RUNS lists {len(leaves)}")
    return str(Checkpoint.of(leaves[:size])).encode()
