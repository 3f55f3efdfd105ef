"""Take secrets and names of people and machines out of text before it is stored.

Invariant: `redact` is idempotent and never changes the number of lines; values that will be JSON go
through `redact_value`, which cannot break them. Known leak that this answers: the engine logs
`--hf-token` in clear (vllm issue 53625).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

MARK = "<redacted>"
# "<" ends a value, so that a mark already in place is never read as one; a backslash does, so that
# text inside a JSON string stays one. Quotes and brackets around a value are kept for that, too.
_BARE = r"""[^\s'",;)\]}<\\]+"""
_QUOTE = r"""(?:\\?['"])"""
_INSIDE = r"""[^'"\\\n<]+"""
_CREDENTIAL = (
    r"(?:(?:hf|hub|auth|access|api|refresh|session|github)[-_]?token|(?:api|access|secret)[-_]?key"
    r"(?:[-_]id)?|client[-_]secret|passwd|password)"
)
_CREDENTIAL_KEY = re.compile(rf"(?i)(?<![a-z0-9]){_CREDENTIAL}$|^authorization$")

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"hf_[A-Za-z0-9]{16,}"), MARK),
    (re.compile(r"\b(?:sk|nvapi|ghp|gho|glpat|github_pat)[-_][A-Za-z0-9_-]{8,}"), MARK),
    (re.compile(r"\bAKIA[0-9A-Z]{16}\b"), MARK),
    # "Authorization: Bearer …", as a header, in a dict, on a command line
    (
        re.compile(
            rf"""(?i)(authorization{_QUOTE}?[ \t]*[:=][ \t]*{_QUOTE}?)"""
            r"""[^\s'"\\,}<][^'"\\\n,}<]*"""
        ),
        rf"\1{MARK}",
    ),
    (re.compile(rf"(?i)\b(bearer +){_BARE}"), rf"\1{MARK}"),
    # --api-key X Y, --hf-token=X, and the same as elements of a printed list
    (
        re.compile(
            rf"(?i)(--{_CREDENTIAL}{_QUOTE}?(?:[ \t]*=[ \t]*|,?[ \t]*)(?<!\w){_QUOTE}?)"
            rf"(?!-){_BARE}(?:[ \t]+(?!-){_BARE})*"
        ),
        rf"\1{MARK}",
    ),
    # 'api_key': ['X', 'Y'], HF_TOKEN=X, "password": "X"
    (
        re.compile(
            rf"(?i)(?<![A-Za-z0-9-])({_CREDENTIAL}{_QUOTE}?[ \t]*[:=][ \t]*\[?)"
            rf"(?:({_QUOTE}){_INSIDE}(?:{_QUOTE},[ \t]*{_QUOTE}{_INSIDE})*"
            rf"|(?!\[|(?:None|True|False|null|true|false)\b){_BARE})"
        ),
        rf"\1\2{MARK}",
    ),
    # user:password@host in a URL
    (re.compile(r"(://)[^/\s:@'\"<>\\]+:[^/\s@'\"<>\\]+@"), rf"\1{MARK}@"),
    (re.compile(r"""/(?:home|Users)/+[^/\s'",:;)\]}<>\\]+"""), "~"),
    (re.compile(r"""(?<![\w.~-])/root(?=[/\s'",:;)\]}<>\\]|$)""", re.MULTILINE), "~"),
)
# Four numbers after "==" or "version " or "-" are a version of something, not an address.
_ADDRESS = re.compile(
    r"(?<![\w.-])(?<!==)(?<!version )(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)(?!\.\d)(?![A-Za-z_])"
)


def redact(text: str, names: Iterable[str] = ()) -> str:
    """`text` without tokens, keys, home directories, addresses and the literal `names` given.

    `names` is for what only the caller knows: this host's name, the user's, a token's value.
    Loopback and the unspecified address stay: they say how the engine listened.
    """
    for name in sorted((n for n in names if len(n) > 2), key=len, reverse=True):
        if name not in MARK:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", MARK, text)
    # What one rule hides may bare the start of another's match. It ends: each pass that changes
    # anything leaves less text outside the marks.
    while (cleaned := _pass(text)) != text:
        text = cleaned
    return text


def _pass(text: str) -> str:
    text = _ADDRESS.sub(_address, text)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def redact_value(value: Any, names: Iterable[str] = ()) -> Any:
    """A plain JSON value with every string redacted; what a credential's key holds goes whole."""
    known = tuple(names)
    if isinstance(value, str):
        return redact(value, known)
    if isinstance(value, (list, tuple)):
        return [redact_value(item, known) for item in value]
    if isinstance(value, dict):
        return {
            redact(key, known): MARK
            if item and _CREDENTIAL_KEY.search(key)
            else redact_value(item, known)
            for key, item in value.items()
        }
    return value


def _address(match: re.Match[str]) -> str:
    numbers = match[0].split(".")
    local = numbers[0] == "127" or all(int(n) == 0 for n in numbers)
    return match[0] if local or any(int(n) > 255 for n in numbers) else MARK
