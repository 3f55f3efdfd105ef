"""The response reader: the same payload however the bytes are cut; framing errors are errors."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remote.client.http1 import ProtocolError, ResponseReader

CHUNKED = b"HTTP/1.1 200 OK\r\nserver: any\r\ntransfer-encoding: chunked\r\n\r\n"


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def read(parts: list[bytes]) -> tuple[ResponseReader, list[bytes]]:
    reader = ResponseReader()
    return reader, [reader.feed(part) for part in parts]


def chunked(bodies: list[bytes], extension: bytes = b"", trailer: bytes = b"") -> bytes:
    framed = [b"%x%b\r\n%b\r\n" % (len(body), extension, body) for body in bodies]
    return CHUNKED + b"".join(framed) + b"0" + extension + b"\r\n" + trailer + b"\r\n"


bodies = st.lists(st.binary(min_size=1, max_size=40), max_size=6)
cuts = st.lists(st.integers(0, 600), max_size=40)


@given(
    bodies,
    cuts,
    st.sampled_from([b"", b";a=b", b' ; name="x"']),
    st.sampled_from([b"", b"T: v\r\n"]),
)
def test_any_cut_of_a_chunked_response_gives_its_payload(
    bodies: list[bytes], cuts: list[int], extension: bytes, trailer: bytes
) -> None:
    data = chunked(bodies, extension, trailer)
    parts = pieces(data, cuts)
    reader, payloads = read(parts)
    assert b"".join(payloads) == b"".join(bodies)
    assert reader.done
    assert (reader.status, reader.keep_alive) == (200, True)
    whole = ResponseReader()
    for part in parts[:-1]:
        whole.feed(part)
        assert not whole.done or not parts[-1]


@given(bodies, cuts)
def test_left_leads_to_the_next_size_line_or_is_unknown(
    bodies: list[bytes], cuts: list[int]
) -> None:
    data = chunked(bodies)
    lines, at = set(), len(CHUNKED)
    for body in [*bodies, b""]:
        lines.add(at)
        at += len(b"%x" % len(body)) + 4 + len(body)
    reader, seen = ResponseReader(), 0
    for part in pieces(data, cuts):
        reader.feed(part)
        seen += len(part)
        if reader.left >= 0 and not reader.done:
            assert seen + reader.left in lines


@given(st.binary(max_size=50), cuts)
def test_any_cut_of_a_response_with_content_length(body: bytes, cuts: list[int]) -> None:
    data = b"HTTP/1.1 404 Not Found\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    reader, payloads = read(pieces(data, cuts))
    assert (b"".join(payloads), reader.status, reader.done) == (body, 404, True)


def test_a_body_without_framing_ends_with_the_connection() -> None:
    reader, payloads = read([b"HTTP/1.0 200 OK\r\n\r\nab", b"c"])
    assert (payloads, reader.done, reader.keep_alive) == ([b"ab", b"c"], False, False)
    assert reader.close()
    assert reader.done


def test_closing_inside_a_chunk_is_not_an_end() -> None:
    reader, _ = read([CHUNKED + b"5\r\nab"])
    assert not reader.close()


@pytest.mark.parametrize(
    ("head", "keep"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\ncontent-length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n", True),
        (b"HTTP/1.1 204\r\n\r\n", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\n", True),
    ],
)
def test_whether_a_connection_serves_again(head: bytes, keep: bool) -> None:
    reader, _ = read([head])
    assert (reader.done, reader.keep_alive) == (True, keep)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nfolded: a\r\n b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"-5\r\n",
        CHUNKED + b"1\n",
        CHUNKED + b"1\r\nabc",
        CHUNKED + b"0\r\nbad trailer\r\n",
        CHUNKED + b"0\r\n\r\nmore",
        CHUNKED + b"1" * 10_000,
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000,
    ],
)
def test_bad_framing_is_an_error(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read([data])
