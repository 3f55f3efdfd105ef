"""Tell a pull from the daemon's messages: bytes over all layers, and each layer as it is done.

Invariant: pure; a line is said when a layer is complete or another tenth of the bytes is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_DONE = ("Pull complete", "Already exists")


@dataclass(slots=True)
class PullProgress:
    """`layers_bytes`, `layer_count`: what the lock says of the image, 0 where it is unknown."""

    layers_bytes: int
    layer_count: int
    _have: dict[str, int] = field(default_factory=dict)
    _done: set[str] = field(default_factory=set)
    _tenths: int = 0

    def see(self, message: Mapping[str, Any]) -> str:
        """Take in one message; a line worth showing, or ""."""
        layer, status = str(message.get("id", "")), str(message.get("status", ""))
        detail = message.get("progressDetail") or {}
        if status == "Downloading" and isinstance(detail.get("current"), int):
            self._have[layer] = detail["current"]
            return self._bytes()
        if status in _DONE and layer and layer not in self._done:
            self._done.add(layer)
            of = f" of {self.layer_count}" if self.layer_count else ""
            return f"  layer {len(self._done)}{of}: {status.lower()}"
        return ""

    def _bytes(self) -> str:
        if not self.layers_bytes:
            return ""
        have = sum(self._have.values())
        tenths = min(10, have * 10 // self.layers_bytes)
        if tenths <= self._tenths:
            return ""
        self._tenths = tenths
        return f"  pulled {have >> 20} of {self.layers_bytes >> 20} MiB"


def printed(line: str) -> dict[str, str]:
    """A line of `docker pull` that goes to no terminal, as the message it was made of.

    docker/cli prints `<layer>: <status>`; what has no layer is no progress.
    """
    match = re.fullmatch(r"([0-9a-f]{12}): (.+)", line.strip())
    return {"id": match[1], "status": match[2]} if match else {}


def last_line(text: str) -> str:
    """What `docker pull` says when it fails: its last line, without what is the same in all."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("Error response from daemon: ") if lines else "it says nothing"
