"""The event stream against the standard's own examples and against every way to cut it."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remote.client.sse import EventStream


def whole(stream: bytes) -> list[tuple[int, bytes]]:
    """The standard's algorithm over the whole stream: (offset behind the ending byte, data)."""
    at = 3 if stream.startswith(b"\xef\xbb\xbf") else 0
    events, data = [], []
    for match in re.finditer(rb"([^\r\n]*)(\r\n|\r|\n)", stream[at:]):
        line = match[1]
        if not line:
            if data:
                # a CR ends the line by itself; the LF behind it is already the next byte
                events.append((at + match.start(2) + 1, b"\n".join(data)))
            data = []
        elif line == b"data":
            data.append(b"")
        elif line.startswith(b"data:"):
            value = line[5:]
            data.append(value.removeprefix(b" "))
    return events


def stamped(stream: bytes, cuts: list[int]) -> list[tuple[int, bytes]]:
    """Each event with the offset at which the piece that gave it ends."""
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    parser, found = EventStream(), []
    for a, b in pairwise(edges):
        found += [(b, data) for data in parser.feed(stream[a:b])]
    return found


line = st.one_of(
    st.sampled_from(
        [
            b"data: x",
            b"data:y",
            b"data",
            b": comment",
            b"",
            b"",
            b"event: e",
            b"id: 1",
            b"da",
            b"data:  z",
        ]
    ),
    st.binary(max_size=6).map(lambda raw: re.sub(rb"[\r\n]", b".", raw)),
)
streams = st.lists(st.tuples(line, st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=12).map(
    lambda parts: b"".join(text + end for text, end in parts)
)


@given(streams, st.lists(st.integers(0, 120), max_size=60), st.booleans(), st.binary(max_size=3))
def test_any_cut_gives_the_events_at_the_piece_with_their_last_byte(
    stream: bytes, cuts: list[int], bom: bool, tail: bytes
) -> None:
    stream = (b"\xef\xbb\xbf" if bom else b"") + stream
    expected = whole(stream)
    edges = sorted({0, *(min(cut, len(stream)) for cut in cuts), len(stream)})
    at_piece = [(min(e for e in edges if e >= end), data) for end, data in expected]
    assert stamped(stream, cuts) == at_piece


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [b"YHOO\n+2\n10"]),
        (b": stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third\n\n",
         [b"first event", b"second event", b" third"]),
        (b"data\n\ndata\ndata\n\ndata:", [b"", b"\n"]),
        (b"data:test\n\ndata: test\n\n", [b"test", b"test"]),
    ],
)  # fmt: skip
def test_examples_of_the_standard(stream: bytes, data: list[bytes]) -> None:
    assert EventStream().feed(stream) == data
