"""Read a WWW-Authenticate header: which scheme a registry wants, and with which parameters.

Invariant: only the schemes that registries use are understood (Basic, RFC 7617; Bearer, RFC 6750
with the parameters of the distribution specification); anything else raises FormatError.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from records.errors import FormatError

_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # RFC 9110, 5.6.2
# Not a credential: the form of one name=value pair, RFC 9110, 11.2.
_PAIR = re.compile(rf'\s*({_NAME})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|({_NAME}))\s*(?:,|$)')
_SCHEME = re.compile(rf"\s*({_NAME})(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class Challenge:
    """`scheme` in lower case; parameter names in lower case, values as they came."""

    scheme: str
    parameters: dict[str, str]


def parse(header: str) -> Challenge:
    """The first challenge of the header. FormatError where it does not have the form of one."""
    match = _SCHEME.match(header)
    if match is None:
        raise FormatError(f"WWW-Authenticate: no scheme in {header[:120]!r}")
    scheme = match[1].lower()
    if scheme not in ("basic", "bearer"):
        raise FormatError(f"WWW-Authenticate: scheme {match[1]!r} is neither Basic nor Bearer")
    parameters: dict[str, str] = {}
    at = match.end()
    while at < len(header):
        pair = _PAIR.match(header, at)
        if pair is None:
            # A second challenge may follow the first; a first pair that does not parse is an error.
            if parameters and _SCHEME.match(header, at):
                break
            raise FormatError(f"WWW-Authenticate: cannot read {header[at : at + 80]!r}")
        quoted, plain = pair[2], pair[3]
        value = re.sub(r"\\(.)", r"\1", quoted) if plain is None else plain
        parameters.setdefault(pair[1].lower(), value)
        at = pair.end()
    if scheme == "bearer" and "realm" not in parameters:
        raise FormatError("WWW-Authenticate: Bearer without the realm that gives tokens")
    return Challenge(scheme, parameters)
