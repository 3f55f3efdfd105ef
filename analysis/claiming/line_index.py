"""Where in a journal each event stands, by boot and window, without decoding its requests.

Invariant: sequence numbers count from 0 and line numbers from 1; line = seq + 1. The places of
"boot" and "window" follow from the canonical order of keys (records/FORMAT.md).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from records.errors import FormatError

_HEAD = re.compile(
    rb'\{"prev":"sha256:[0-9a-f]{64}","seq":([0-9]+),"t_ns":-?[0-9]+,"type":"([a-z.]+)","value":'
)
_BOOT_FIRST = re.compile(rb'\{"boot":"([^"\\]*)"')
_WINDOW_LAST = re.compile(rb'"window":"([^"\\]*)"\}\}\n\Z')
_TAIL_BYTES = 200


@dataclass(slots=True)
class LineIndex:
    """Sequence numbers by what they are about; `run` by event type."""

    windows: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    boots: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    calibrations: dict[int, list[int]] = field(default_factory=dict)
    run: dict[str, list[int]] = field(default_factory=dict)

    def boot(self, boot: str, *types: str) -> list[int]:
        """Lines of these types about a boot, in order."""
        return sorted(seq for type_ in types for seq in self.boots.get((boot, type_), []))


def index_lines(path: Path) -> LineIndex:
    """Index a journal whose chain was verified. FormatError where a line is no event."""
    index = LineIndex()
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            head = _HEAD.match(line)
            if head is None:
                raise FormatError(f"{path}:{number}: not an event")
            _note(index, int(head[1]), head[2].decode(), line, head.end())
    return index


def _note(index: LineIndex, seq: int, type_: str, line: bytes, start: int) -> None:
    if type_.startswith("window."):
        boot, window = _BOOT_FIRST.match(line, start), _WINDOW_LAST.search(line[-_TAIL_BYTES:])
        if boot is None or window is None:
            raise FormatError(f"seq {seq}: {type_} without boot and window in their places")
        key = (boot[1].decode(), window[1].decode())
        index.windows.setdefault(key, []).append(seq)
        return
    if type_.startswith("boot.") or type_ == "engine.decided":
        name = str(json.loads(line)["value"]["boot"])
        index.boots.setdefault((name, type_), []).append(seq)
    elif type_ == "client.calibrated":
        concurrency = int(json.loads(line)["value"]["concurrency"])
        index.calibrations.setdefault(concurrency, []).append(seq)
    index.run.setdefault(type_, []).append(seq)
