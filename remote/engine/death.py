"""Find why an engine died at boot in what it logged.

Invariant: an answer is always given; where no line tells, it says so and leaves the last lines to
speak. The first cause wins over what followed from it: a child's exception is printed before the
parent's "Engine core initialization failed. See root cause above."
"""

from __future__ import annotations

import re

from remote.engine.lines import LogLine, split
from remote.engine.redact import redact

UNKNOWN = "no line of the log names a cause"
_FOLLOWED = 2

# The last line of a Python traceback, at the start of a message: "ValueError: …", "a.b.Error: …".
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?::.*|$)")
_CONSEQUENCE = re.compile(
    r"root cause above|EngineDeadError|Engine core initialization failed|Engine process failed|"
    r"WorkerProc initialization failed|CalledProcessError: Command .*api_server|CancelledError"
)
_PLAIN = re.compile(
    r"error: unrecognized arguments|: error: |Address already in use|CUDA out of memory|"
    r"No space left on device|Driver/library version mismatch|No module named |"
    r"Illegal instruction|Segmentation fault|Bus error|\bKilled\b|core dumped|"
    r"error while loading shared libraries|cannot open shared object|Permission denied|"
    r"unsatisfied condition"
)


def cause_of_death(log: bytes | str) -> str:
    """The most telling line of a dead engine's log and its continuation, redacted."""
    lines = split(log)
    exceptions = [i for i, line in enumerate(lines) if _is_exception(line)]
    causes = [i for i in exceptions if not _CONSEQUENCE.search(lines[i].message)]
    plain = [i for i, line in enumerate(lines) if _is_plain(line)]
    if causes:
        return redact(_with_continuation(lines, causes[0]))
    if plain:
        return redact(lines[plain[0]].message.strip())
    if exceptions:
        return redact(lines[exceptions[0]].message.strip())
    return UNKNOWN


def last_lines(log: bytes | str, count: int = 20) -> tuple[str, ...]:
    """The last `count` lines that are not empty, redacted; of a progress bar, its last state."""
    shown = [line.text.rpartition("\r")[2].rstrip() for line in split(log)]
    return tuple(redact(text) for text in [t for t in shown if t][-count:])


def _is_exception(line: LogLine) -> bool:
    return line.level in ("", "ERROR", "CRITICAL") and bool(_EXCEPTION.match(line.message.strip()))


def _is_plain(line: LogLine) -> bool:
    return line.level in ("", "ERROR", "CRITICAL") and bool(_PLAIN.search(line.message))


def _with_continuation(lines: tuple[LogLine, ...], at: int) -> str:
    """An exception and up to two indented lines of its message, as pydantic writes them."""
    found = [lines[at].message.strip()]
    for line in lines[at + 1 : at + 1 + _FOLLOWED]:
        if not line.message.startswith("  ") or line.pid != lines[at].pid:
            break
        if line.message.lstrip().startswith(("File ", "For further information")):
            break
        found.append(line.message.strip())
    return "\n".join(found)
