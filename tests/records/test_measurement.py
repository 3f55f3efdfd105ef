"""What the client says adds up, or is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from records import schema
from records.errors import FormatError


def _first(events: list[Any], kind: type[Any]) -> Any:
    return next(e for e in events if isinstance(e, kind))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"outcome": "lost"}, "outcome 'lost'"),
        ({"chunk_tokens": (1, 3)}, "differ in length"),
        ({"error": "reset"}, "did not complete"),
        ({"outcome": "cancelled"}, "did not complete"),
    ],
)
def test_requests_that_contradict_themselves(
    events: list[Any], change: dict[str, Any], words: str
) -> None:
    done = _first(events, schema.WindowRequests).requests[0]
    with pytest.raises(FormatError, match=words):
        replace(done, **change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stamps": "nic"}, "stamps 'nic'"),
        ({"planned": 3}, "3 requests planned, but 1 completed"),
        ({"cancelled": 1}, "2 requests planned"),
    ],
)
def test_no_request_vanishes_from_a_report(
    events: list[Any], change: dict[str, Any], words: str
) -> None:
    report = _first(events, schema.WindowEnded).report
    with pytest.raises(FormatError, match=words):
        replace(report, **change)
