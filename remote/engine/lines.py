"""Split the log of a multi-process engine into lines that know their process, level and source.

Invariant: `text` of the lines, joined, loses nothing but line ends, carriage returns and colours;
`number` is the 1-based count of newline-terminated lines, so that it can be looked up in the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# "(EngineCore pid=1650) INFO 11-30 09:46:38 [cuda.py:492] Using …". Searched, not matched: a
# progress bar ends without a newline and may stand before it on the same line.
_RECORD = re.compile(
    r"(?:\((?P<process>[^()\s]+) pid=(?P<pid>\d+)\) )?"
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d "
    r"\[(?P<source>[^\]\s]+)\] ?(?P<message>.*)"
)
_PREFIX = re.compile(r"\((?P<process>[^()\s]+) pid=(?P<pid>\d+)\) ?(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. `level` and `source` are empty where another formatter wrote it."""

    number: int
    process: str
    pid: int
    level: str
    source: str
    message: str
    text: str


def split(log: bytes | str, first_number: int = 1) -> tuple[LogLine, ...]:
    """The lines of a log, numbered from `first_number`; bytes that are not UTF-8 are replaced."""
    text = log.decode("utf-8", errors="replace") if isinstance(log, bytes) else log
    raw = text.split("\n")
    if raw[-1] == "":
        raw.pop()
    return tuple(_line(first_number + i, line) for i, line in enumerate(raw))


def _line(number: int, raw: str) -> LogLine:
    text = _COLOUR.sub("", raw).strip("\r")
    match = _RECORD.search(text)
    if match is not None:
        return LogLine(
            number=number,
            process=match["process"] or "",
            pid=int(match["pid"] or 0),
            level=match["level"],
            source=match["source"],
            message=match["message"],
            text=text,
        )
    prefix = _PREFIX.match(text)
    if prefix is None:
        return LogLine(number, "", 0, "", "", text, text)
    return LogLine(number, prefix["process"], int(prefix["pid"]), "", "", prefix["rest"], text)
