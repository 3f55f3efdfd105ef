"""Take secrets and names of people and machines out of text before it is stored.

Invariant: `redact` is idempotent and never changes the number of lines. Known leak that this
answers: the engine logs `--hf-token` in clear (vllm issue 53625).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MARK = "<redacted>"
# "<" ends a value, so that a mark already in place is never read as one.
_BARE = r"""[^\s'",;)\]}<]+"""
_VALUE = rf"""(?:\[[^\]\n<]*\]|'[^'\n<]+'|"[^"\n<]+"|(?!(?:None|True|False)\b){_BARE})"""
_CREDENTIAL = (
    r"(?:(?:hf|hub|auth|access|api|refresh|session|github)[-_]?token|(?:api|access|secret)[-_]?key"
    r"(?:[-_]id)?|client[-_]secret|passwd|password)"
)

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\bhf_[A-Za-z0-9]{8,}"), MARK),
    (re.compile(r"\b(?:sk|nvapi|ghp|gho|glpat|github_pat)[-_][A-Za-z0-9_-]{8,}"), MARK),
    (re.compile(r"\bAKIA[0-9A-Z]{16}\b"), MARK),
    # "Authorization: Bearer …", as a header, in a dict, on a command line
    (
        re.compile(r"""(?i)(authorization['"]?\s*[:=])(?!\s*['"]?<)[ \t]*['"]?[^'"\n,}]+"""),
        rf"\1 {MARK}",
    ),
    (re.compile(rf"(?i)\b(bearer +){_BARE}"), rf"\1{MARK}"),
    # --api-key X Y, --hf-token=X, and the same as elements of a printed list
    (
        re.compile(
            rf"""(?i)(--{_CREDENTIAL}['"]?(?:\s*=\s*|[ \t]*,?[ \t]+))['"]?(?!-){_BARE}"""
            rf"""(?:[ \t]+(?!-){_BARE})*['"]?"""
        ),
        rf"\1{MARK}",
    ),
    # 'api_key': ['X'], HF_TOKEN=X, "password": "X"
    (re.compile(rf"""(?i)(?<![A-Za-z0-9-])({_CREDENTIAL}['"]?\s*[:=]\s*){_VALUE}"""), rf"\1{MARK}"),
    # user:password@host in a URL
    (re.compile(r"(://)[^/\s:@'\"<>]+:[^/\s@'\"<>]+@"), rf"\1{MARK}@"),
    (re.compile(r"""/(?:home|Users)/[^/\s'",:;)\]}>]+"""), "~"),
    (re.compile(r"""(?<![\w.~-])/root(?=[/\s'",:;)\]}>]|$)""", re.MULTILINE), "~"),
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
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return _ADDRESS.sub(_address, text)


def _address(match: re.Match[str]) -> str:
    numbers = match[0].split(".")
    local = numbers[0] == "127" or all(int(n) == 0 for n in numbers)
    return match[0] if local or any(int(n) > 255 for n in numbers) else MARK
