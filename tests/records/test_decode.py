"""Strict decoding: every key known, every value of exactly its type, the place named."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.decode import DecodeError, from_object, to_object
from records.digest import Digest
from records.errors import FormatError


@dataclass(frozen=True, slots=True)
class Inner:
    size: int

    def __post_init__(self) -> None:
        if self.size < 0:
            raise FormatError("size is negative", remedy="turn it round")


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    quiet: bool
    digest: Digest
    rate: Decimal
    inner: Inner
    offsets: tuple[int, ...]
    inners: tuple[Inner, ...]
    table: dict[str, Digest]
    facts: dict[str, Any]
    maybe: Digest | None
    limit: int = 3
    tags: tuple[str, ...] = field(default_factory=tuple)


D = Digest.of(b"x")
GOOD: dict[str, Any] = {
    "name": "n",
    "quiet": True,
    "digest": str(D),
    "rate": "0.50",
    "inner": {"size": 1},
    "offsets": [1, 2],
    "inners": [{"size": 2}],
    "table": {"a": str(D)},
    "facts": {"x": [None, {"y": "z"}]},
    "maybe": None,
}


def test_a_whole_object_is_read_and_written_back() -> None:
    outer = from_object(Outer, GOOD)
    assert outer.inner == Inner(1)
    assert outer.rate == Decimal("0.50")
    assert outer.table == {"a": D}
    assert outer.limit == 3
    assert to_object(outer) == GOOD | {"limit": 3, "tags": []}
    assert from_object(Outer, to_object(outer)) == outer


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"naem": "n"}, "$", "unknown key 'naem'; nearest known key: 'name'"),
        ({"zzzzzzz": 1}, "$", "unknown key 'zzzzzzz'"),
        ({"quiet": 1}, "$.quiet", "expected bool, got int"),
        ({"limit": True}, "$.limit", "expected int, got bool"),
        ({"limit": "3"}, "$.limit", "expected int, got str"),
        ({"limit": None}, "$.limit", "expected int, got null"),
        ({"limit": 3.0}, "$.limit", "expected int, got float"),
        ({"name": 1}, "$.name", "expected str, got int"),
        ({"offsets": [1, True]}, "$.offsets[1]", "expected int, got bool"),
        ({"offsets": "12"}, "$.offsets", "expected a list, got str"),
        ({"inners": [{"size": 1}, {"size": "1"}]}, "$.inners[1].size", "expected int"),
        ({"inner": []}, "$.inner", "expected an object, got list"),
        ({"inner": {}}, "$.inner", "missing key 'size'"),
        ({"inner": {"size": -1}}, "$.inner", "size is negative"),
        ({"inner": {"size": 1, "sise": 2}}, "$.inner", "nearest known key: 'size'"),
        ({"table": {"a": "b"}}, "$.table.a", "not a digest"),
        ({"table": []}, "$.table", "expected an object"),
        ({"digest": 5}, "$.digest", "expected a string, got int"),
        ({"maybe": "sha256:no"}, "$.maybe", "not a digest"),
        ({"rate": 1}, "$.rate", "expected a string, got int"),
        ({"rate": "much"}, "$.rate", "not a decimal number"),
        ({"rate": "NaN"}, "$.rate", "not a finite number"),
        ({"rate": "Infinity"}, "$.rate", "not a finite number"),
        ({"rate": " 1"}, "$.rate", "not in plain decimal form"),
        ({"rate": "1_0"}, "$.rate", "not in plain decimal form"),
        ({"rate": "\u0661"}, "$.rate", "not in plain decimal form"),
        ({"rate": "01"}, "$.rate", "write 1"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(DecodeError) as caught:
        from_object(Outer, GOOD | change)
    assert caught.value.path == path
    assert words in caught.value.message


@pytest.mark.parametrize("key", [*GOOD])
def test_each_required_key_is_missed(key: str) -> None:
    with pytest.raises(DecodeError, match=f"missing key '{key}'") as caught:
        from_object(Outer, {k: v for k, v in GOOD.items() if k != key})
    assert caught.value.key == key


def test_the_remedy_of_an_inner_error_is_kept() -> None:
    with pytest.raises(DecodeError) as caught:
        from_object(Outer, GOOD | {"inner": {"size": -1}})
    assert caught.value.remedy == "turn it round"


@pytest.mark.parametrize("value", [None, [], "x", 1, True])
def test_only_an_object_is_an_object(value: Any) -> None:
    with pytest.raises(DecodeError, match="expected an object"):
        from_object(Inner, value)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_keep_their_digits(number: Decimal) -> None:
    outer = from_object(Outer, GOOD | {"rate": str(number)})
    assert str(outer.rate) == to_object(outer)["rate"] == str(number)


@dataclass(frozen=True)
class _Grown:
    old: int
    new: str = field(default="", metadata={"since": 2})


def test_a_later_field_at_its_default_leaves_older_bytes_as_they_were():
    assert to_object(_Grown(1)) == {"old": 1}
    assert from_object(_Grown, {"old": 1}) == _Grown(1)
    assert to_object(_Grown(1, "x")) == {"old": 1, "new": "x"}
    assert from_object(_Grown, {"old": 1, "new": "x"}) == _Grown(1, "x")
