"""What a single field of a plan may hold: checks that name the field they refuse.

Invariant: nothing is converted; a value passes as it stands or FieldError says which key is wrong.
"""

from __future__ import annotations

import unicodedata

from records.errors import FormatError


class FieldError(FormatError):
    """A field that cannot be: `key` is its path below the object that holds it (`arms[1].id`)."""

    def __init__(self, key: str, problem: str, remedy: str = "") -> None:
        super().__init__(problem, remedy)
        self.key = key


def at_least(least: int, **fields: int) -> None:
    """FieldError for the first field below `least`."""
    for key, value in fields.items():
        if value < least:
            raise FieldError(key, f"{key} is {value}; must be at least {least}")


def plain_text(key: str, *texts: str) -> None:
    """FieldError unless the texts are free of control characters and lone surrogates.

    A command line, an environment and a path end at NUL; a terminal obeys the others.
    """
    for text in texts:
        for char in text:
            if unicodedata.category(char) in ("Cc", "Cs"):
                raise FieldError(key, f"{key}: control character {char!r} in {text[:40]!r}")


def printable(text: str) -> str:
    """A text from a record as a terminal may be given it: what steers one is shown by its code.

    Control characters, and those that are invisible or turn the order of characters over (Cf).
    """
    return "".join(_shown(char) for char in text) if not text.isprintable() else text


def _shown(char: str) -> str:
    if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return char
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"
