"""HTTP requests out of a byte stream: any split of the bytes gives the same requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remote.reference.request import BadRequestError, Request, take


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=4), st.data())
def test_any_split_of_the_bytes_gives_the_same_requests(
    bodies: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(
        b"POST /p%d?q HTTP/1.1\r\nx-request-id: %d\r\ncontent-length: %d\r\n\r\n%b"
        % (i, i, len(body), body)
        for i, body in enumerate(bodies)
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    inbox, found = bytearray(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        inbox += stream[start:end]
        while (request := take(inbox)) is not None:
            found.append(request)
    assert [request.body for request in found] == bodies
    assert [request.path for request in found] == [f"/p{i}" for i in range(len(bodies))]
    assert not inbox


def test_keep_alive_follows_version_and_header() -> None:
    def parsed(text: str) -> Request | None:
        return take(bytearray(text.replace("\n", "\r\n").encode()))

    for text, keep in (
        ("GET / HTTP/1.1\n\n", True),
        ("GET / HTTP/1.1\nConnection: Close\n\n", False),
        ("GET / HTTP/1.0\n\n", False),
        ("\n\nGET / HTTP/1.0\nconnection: keep-alive\n\n", True),
    ):
        request = parsed(text)
        assert request is not None
        assert request.keep_alive is keep
    assert parsed("GET / HTTP/1.1\n") is None
    with pytest.raises(BadRequestError):
        parsed("GET /\n\n")
