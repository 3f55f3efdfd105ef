"""The chain: every tampering of a small chain is found, at the line that was changed."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records import canonical, chain
from records.chain import BrokenLineError, ChainState
from records.digest import Digest
from records.errors import FormatError

VALUES = st.dictionaries(
    st.text("abcä", max_size=3),
    st.integers(-9, 10**12) | st.text('x"\\\n😀', max_size=5),
    max_size=3,
)
CHAINS = st.lists(VALUES, min_size=1, max_size=12)


def _make(values: list[Any], start: ChainState = chain.EMPTY) -> tuple[list[bytes], ChainState]:
    lines, state = [], start
    for number, value in enumerate(values):
        line = chain.make_line(state, 1000 + number, "test.event", value)
        lines.append(line)
        state = chain.extend(state, line)
    return lines, state


def _verify(data: bytes, seal: ChainState | None) -> ChainState:
    file = io.BytesIO(data)
    if seal is None:
        return chain.verify(file)
    return chain.verify(file, head=seal.head, length=seal.lines)


def _broken(data: bytes, seal: ChainState | None) -> BrokenLineError:
    with pytest.raises(BrokenLineError) as caught:
        _verify(data, seal)
    assert f"line {caught.value.line}:" in caught.value.message
    assert caught.value.got != caught.value.want
    return caught.value


def _line_found(data: bytes) -> int | None:
    try:
        _verify(data, None)
    except BrokenLineError as error:
        return error.line
    return None


@given(CHAINS)
def test_a_chain_follows_the_written_rule(values: list[Any]) -> None:
    lines, state = _make(values)
    prev = "0" * 64
    for seq, line in enumerate(lines):
        assert line.startswith(f'{{"prev":"sha256:{prev}","seq":{seq},"t_ns":'.encode())
        assert canonical.decode(line[:-1])["value"] == values[seq]
        prev = hashlib.sha256(line).hexdigest()
    assert state == ChainState(len(lines), sum(map(len, lines)), Digest(prev))
    assert chain.verify(lines) == state
    assert chain.verify(io.BytesIO(b"".join(lines)), head=state.head, length=len(lines)) == state


@given(CHAINS, st.data())
def test_verification_continues_from_any_place(values: list[Any], data: st.DataObject) -> None:
    lines, state = _make(values)
    cut = data.draw(st.integers(0, len(lines)))
    middle = chain.verify(lines[:cut])
    assert chain.verify(lines[cut:], start=middle, head=state.head, length=len(lines)) == state


@settings(max_examples=400)
@given(CHAINS, st.booleans(), st.data())
def test_a_changed_byte_is_found_at_its_line(
    values: list[Any], sealed: bool, data: st.DataObject
) -> None:
    lines, state = _make(values)
    index = data.draw(st.integers(0, len(lines) - 1), label="line")
    at = data.draw(st.integers(0, len(lines[index]) - 1), label="offset")
    changed = bytearray(lines[index])
    changed[at] ^= data.draw(st.integers(1, 255), label="xor")
    tampered = b"".join([*lines[:index], bytes(changed), *lines[index + 1 :]])
    if sealed:
        assert _broken(tampered, state).line == index + 1
    elif index < len(lines) - 1:
        assert _broken(tampered, None).line == index + 1
    else:  # nothing after it vouches for the last line of an unsealed journal
        assert _line_found(tampered) in (None, index, index + 1)


def test_every_byte_of_one_chain_with_every_bit() -> None:
    lines, state = _make([{"a": 1}, {"b": "ü"}, {"c": [1, 2]}])
    whole = b"".join(lines)
    for at in range(len(whole)):
        number = 1 + whole.count(b"\n", 0, at)
        for bit in range(8):
            tampered = bytearray(whole)
            tampered[at] ^= 1 << bit
            assert _broken(bytes(tampered), state).line == number
        tampered[at] = 10
        if whole[at] != 10:
            assert _broken(bytes(tampered), state).line == number


@given(CHAINS, st.booleans(), st.data())
def test_a_dropped_line_is_missed_at_its_place(
    values: list[Any], sealed: bool, data: st.DataObject
) -> None:
    lines, state = _make(values)
    index = data.draw(st.integers(0, len(lines) - 1))
    rest = b"".join(lines[:index] + lines[index + 1 :])
    if index < len(lines) - 1 or sealed:
        error = _broken(rest, state if sealed else None)
        assert error.line == index + 1
        if index < len(lines) - 1:
            assert (error.got, error.want) == (str(index + 1), str(index))
        else:
            assert error.want == f"{len(lines)} lines (from the seal)"
    else:
        assert _verify(rest, None).lines == len(lines) - 1


@given(CHAINS, st.booleans(), st.data())
def test_swapped_lines_are_found_at_the_first(
    values: list[Any], sealed: bool, data: st.DataObject
) -> None:
    lines, state = _make([{"first": 1}, *values])
    i = data.draw(st.integers(0, len(lines) - 2))
    j = data.draw(st.integers(i + 1, len(lines) - 1))
    lines[i], lines[j] = lines[j], lines[i]
    error = _broken(b"".join(lines), state if sealed else None)
    assert (error.line, error.got, error.want) == (i + 1, str(j), str(i))


@given(CHAINS, st.booleans(), st.data())
def test_a_repeated_line_is_found(values: list[Any], sealed: bool, data: st.DataObject) -> None:
    lines, state = _make(values)
    index = data.draw(st.integers(0, len(lines) - 1))
    lines.insert(index, lines[index])
    error = _broken(b"".join(lines), state if sealed else None)
    assert (error.line, error.got, error.want) == (index + 2, str(index), str(index + 1))


@given(CHAINS, VALUES)
def test_an_appended_line_is_beyond_the_seal(values: list[Any], more: Any) -> None:
    lines, state = _make(values)
    forged = chain.make_line(state, 5, "test.event", more)
    error = _broken(b"".join([*lines, forged]), state)
    assert error.line == len(lines) + 1
    assert error.want == f"{len(lines)} lines (from the seal)"
    assert _verify(b"".join([*lines, forged]), None).lines == len(lines) + 1


@pytest.mark.parametrize("tail", [b"\n", b"x", b"{}\n", b'{"prev":"sha256:', b"\x00\xff\n"])
def test_anything_else_appended_is_not_an_event(tail: bytes) -> None:
    lines, state = _make([{}, {}])
    for seal in (state, None):
        error = _broken(b"".join(lines) + tail, seal)
        assert error.line == 3
        assert error.want.startswith(f'{{"prev":"{state.head}","seq":2,"t_ns":')


@given(CHAINS, st.data())
def test_a_chain_forged_from_some_line_on_misses_the_head(
    values: list[Any], data: st.DataObject
) -> None:
    lines, state = _make(values)
    index = data.draw(st.integers(0, len(lines) - 1))
    forged, _ = _make([*values[:index], {"forged": True}, *values[index + 1 :]])
    chain.verify(forged)
    error = _broken(b"".join(forged), state)
    assert error.line == len(lines)
    assert error.want == f"{state.head} (from the seal)"


def test_an_empty_chain() -> None:
    assert chain.verify([]) == chain.EMPTY
    assert chain.verify([], head=chain.GENESIS, length=0) == chain.EMPTY
    _, state = _make([{}])
    assert _broken(b"", state).line == 1


def test_a_line_too_long_to_be_read_back_is_not_made() -> None:
    with pytest.raises(FormatError, match="bytes; at most"):
        chain.make_line(chain.EMPTY, 0, "test.event", "x" * chain.MAX_LINE_BYTES)


def test_a_huge_sequence_number_is_no_trouble() -> None:
    lines, state = _make([{}, {}])
    prefix, _, rest = lines[1].partition(b'"seq":1')
    tampered = lines[0] + prefix + b'"seq":' + b"9" * 10_000 + rest
    assert _broken(tampered, state).line == 2


def test_the_chain_reads_no_body() -> None:
    """Only the hash binds a body: a chain over bodies that are no JSON at all still verifies."""
    body = b"no JSON\n"
    prev, lines = "0" * 64, []
    for seq in range(3):
        lines.append(f'{{"prev":"sha256:{prev}","seq":{seq},"t_ns":'.encode() + body)
        prev = hashlib.sha256(lines[-1]).hexdigest()
    assert chain.verify(lines, head=Digest(prev)).lines == 3
    with pytest.raises(json.JSONDecodeError):
        json.loads(lines[0])
