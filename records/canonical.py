"""Canonical JSON: one value, one byte string.

Invariant: `decode(encode(v)) == v` and `encode(decode(b)) == b` for every accepted b. The form is
that of RFC 8785 (JCS) without floating point, whose printed form is where canonicalisations
disagree: fractions travel as integers with the unit in the key (`_ns`, `_ppm`) or as decimal
strings. Keys are in order of code points, which is the order of their UTF-8 bytes; JCS orders by
UTF-16 units, which differs only for keys beyond the Basic Multilingual Plane.
"""

from __future__ import annotations

import json
import re
from typing import Any

from records.errors import FormatError

# Nanoseconds need 64 bits (2**53 of them are 104 days); beyond that readers differ (RFC 8259, 6).
MAX_INT = 2**63 - 1
_LONG = re.compile(rb"[0-9]{19}")


def encode(value: Any) -> bytes:
    """Encode to canonical UTF-8 without a line end. FormatError on floats and non-string keys."""
    _check(value, "$")
    return _dumps(value)


def encode_trusted(value: Any) -> bytes:
    """As `encode`, without the walk over every leaf: for values built by this package itself."""
    return _dumps(value)


def decode(data: bytes) -> Any:
    """Decode canonical JSON; FormatError where the bytes are not the canonical form."""
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text,
            parse_float=_no_float,
            parse_constant=_no_float,
            # A call for each integer would slow the long arrays: only where one may be too long.
            parse_int=_int if _LONG.search(data) else None,
            object_pairs_hook=_pairs,
        )
        again = _dumps(value)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}") from error
    if again != data:
        raise FormatError("JSON, but not in canonical form")
    return value


def _dumps(value: Any) -> bytes:
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FormatError(f"text with a lone surrogate: {error}") from error


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise FormatError("an object names a key twice")
    return value


def _int(text: str) -> int:
    # 20 characters first: int() itself refuses thousands of digits with a ValueError of its own.
    if len(text) > 20 or not -MAX_INT <= int(text) <= MAX_INT:
        raise FormatError(f"integer beyond 63 bits: {text[:40]}")
    return int(text)


def _no_float(text: str) -> None:
    raise FormatError(f"floating point in a record: {text}")


def _check(value: Any, path: str) -> None:
    if value is None or isinstance(value, (bool, str)):
        return
    if isinstance(value, int):
        if not -MAX_INT <= value <= MAX_INT:
            raise FormatError(f"{path}: integer beyond 63 bits")
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _check(item, f"{path}[{i}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise FormatError(f"{path}: key {key!r} is not a string")
            _check(item, f"{path}.{key}")
    else:
        raise FormatError(f"{path}: a {type(value).__name__} has no canonical form")
