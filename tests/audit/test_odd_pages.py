"""Kept /metrics pages that no server wrote: told as such, and the audit goes on."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from audit.counter_page import read_page, read_times
from records.errors import FormatError

_TOKENS = "vllm:generation_tokens_total"
_WHOLE = "vllm:e2e_request_latency_seconds_sum"
_FIRST = "vllm:time_to_first_token_seconds_sum"
_ODD = ("NaN", "+Inf", "-1", "1e308", "1e6145", "9" * 5000, "1_0", "x")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "b.w.after.prom.gz"


@pytest.mark.parametrize("value", _ODD, ids=lambda text: text[:11])
def test_a_value_that_no_server_counts_is_none(page: Path, value: str) -> None:
    page.write_bytes(gzip.compress(f"{_TOKENS} {value}\n".encode()))
    with pytest.raises(FormatError, match=r"b\.w\.after"):
        read_page(page)
    page.write_bytes(gzip.compress(f"{_WHOLE} {value}\n".encode()))
    with pytest.raises(FormatError, match=r"b\.w\.after"):
        read_times(page)


@pytest.mark.parametrize("reader", [read_page, read_times])
def test_a_series_that_stands_twice_is_no_page(page: Path, reader: Any) -> None:
    line = "".join(f'{name}{{engine="0"}} 7\n' for name in (_TOKENS, _WHOLE))
    page.write_bytes(gzip.compress((line + line.replace('"0"', '"1"')).encode()))
    assert set(reader(page).values()) == {14}
    page.write_bytes(gzip.compress((line + line).encode()))
    with pytest.raises(FormatError, match="twice"):
        reader(page)


@pytest.mark.parametrize("value", ["NaN", "1e308", "1e6145"])
def test_the_audit_tells_of_such_times(project: Any, codes: Any, value: str) -> None:
    """They could not be compared with the client's, and so hide a client that is too fast."""
    for path in project.run().glob("metrics/*.after.prom.gz"):
        text = gzip.decompress(path.read_bytes()).decode()
        path.write_bytes(gzip.compress(f"{text}{_WHOLE} {value}\n".encode(), mtime=0))
    assert "COUNT03" in codes(project)


def test_a_time_that_is_not_asked_for_does_not_matter(page: Path) -> None:
    page.write_bytes(gzip.compress(f"{_WHOLE} NaN\n{_FIRST} 7\n".encode()))
    assert read_times(page, ("first_token_s",)) == {"first_token_s": 7}
