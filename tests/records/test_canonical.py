"""Canonical JSON: one value, one byte string, and nothing else is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import canonical
from records.errors import FormatError

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
INTS = st.integers(-canonical.MAX_INT, canonical.MAX_INT)
VALUES = st.recursive(
    st.none() | st.booleans() | INTS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_encoded_decodes_to_itself(value: Any) -> None:
    data = canonical.encode(value)
    assert canonical.decode(data) == value
    assert canonical.encode(canonical.decode(data)) == data
    assert canonical.encode_trusted(value) == data
    assert b"\n" not in data
    assert json.loads(data) == value


@given(VALUES, st.data())
def test_whatever_bytes_are_accepted_encode_to_themselves(value: Any, data: st.DataObject) -> None:
    good = bytearray(canonical.encode(value))
    position = data.draw(st.integers(0, len(good) - 1))
    good[position] ^= data.draw(st.integers(1, 255))
    try:
        accepted = canonical.decode(bytes(good))
    except FormatError:
        return
    assert canonical.encode(accepted) == bytes(good)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_in_one_way(data: bytes) -> None:
    try:
        value = canonical.decode(data)
    except FormatError:
        return
    assert canonical.encode(value) == data


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        float("nan"),
        float("inf"),
        {"a": [{"b": 0.5}]},
        {1: "a"},
        {None: 1},
        2**63,
        -(2**63),
        b"bytes",
        {1, 2},
        1j,
        "\ud800",
        {"\udfff": 1},
    ],
    ids=repr,
)
def test_values_without_a_canonical_form_are_refused(value: Any) -> None:
    with pytest.raises(FormatError):
        canonical.encode(value)


def test_the_path_of_the_offending_value_is_named() -> None:
    with pytest.raises(FormatError, match=r"\$\.a\[1\]\.b"):
        canonical.encode({"a": [0, {"b": 0.5}]})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" 1",
        b"1\n",
        b'{"a": 1}',
        b'{"b":1,"a":2}',
        b'{"a":1,"a":1}',
        b'{"a":1,"a":2}',
        b'{"a":{"b":1,"b":1}}',
        b"1.0",
        b"1e3",
        b"-0",
        b"01",
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"[1,]",
        b'"\\u0041"',
        b'"\\/"',
        b'"\\u000A"',
        b'"\\ud800"',
        b'"\\ud83d\\ude00"',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b"\xef\xbb\xbf1",
        b"9223372036854775808",
        b"-9223372036854775808",
        b"1" + b"0" * 5000,
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
    ],
    ids=lambda data: repr(data[:24]),
)
def test_other_spellings_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        canonical.decode(data)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, b"null"),
        ({}, b"{}"),
        ([], b"[]"),
        ((1, True, False), b"[1,true,false]"),
        (2**63 - 1, b"9223372036854775807"),
        ({"b": 1, "a": {"d": 2, "c": 3}}, b'{"a":{"c":3,"d":2},"b":1}'),
        ('\x00\x1f\x7f\b\t\n\f\r"\\/', b'"\\u0000\\u001f\x7f\\b\\t\\n\\f\\r\\"\\\\/"'),
        ("é😀\u2028", '"é😀\u2028"'.encode()),
        (
            {"Z": 1, "a": 2, "é": 3, "\uffff": 4, "😀": 5},
            '{"Z":1,"a":2,"é":3,"\uffff":4,"😀":5}'.encode(),
        ),
    ],
    ids=lambda x: repr(x)[:30],
)
def test_the_form_byte_for_byte(value: Any, data: bytes) -> None:
    assert canonical.encode(value) == data
