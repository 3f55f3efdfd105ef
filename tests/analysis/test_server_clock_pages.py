"""Pages of /metrics, of engines and of what is none, as the server's clock reads them."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.server_clock import QUANTITIES, read_page, totals
from records.digest import Digest
from records.errors import FormatError
from records.run_directory import RunDirectory
from remote.reference.counters import Counters

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "vllm-0.29.0"


def test_pages_of_the_engine_on_both_kinds_of_host_have_all_histograms():
    cuda = (FIXTURES / "cuda" / "metrics-bf16-fa2.prom").read_text()
    cpu = (FIXTURES / "cpu" / "http" / "metrics.http").read_text()
    want = {f"{one.family}_{part}" for one in QUANTITIES for part in ("sum", "count")}
    assert set(totals(cuda)) == set(totals(cpu)) == want


def test_the_reference_servers_page_has_no_end_to_end_time():
    found = totals(Counters().exposition("m", 4, ()).decode())
    assert "vllm:time_to_first_token_seconds_count" in found
    assert "vllm:e2e_request_latency_seconds_count" not in found


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=4))
def test_engines_of_one_server_add_up_and_names_that_only_begin_alike_do_not(values):
    name = "vllm:e2e_request_latency_seconds_sum"
    lines = [f'{name}{{engine="{i}"}} {value!r}' for i, value in enumerate(values)]
    other = f"{name}_total 5.0\n{name.removesuffix('_sum')}_created 1.7e9\n"
    found = totals(other + "\n".join(lines) + "\n")
    assert set(found) == {name}
    assert math.isclose(found[name], math.fsum(values), rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize(
    "page",
    [
        gzip.compress(b"\xff\xfe", mtime=0),
        b"no gzip",
        gzip.compress(b"vllm:time_to_first_token_seconds_sum{a=\n", mtime=0),
        gzip.compress(b"vllm:time_to_first_token_seconds_sum x\n", mtime=0),
        gzip.compress(b"0" * ((1 << 26) + 1), mtime=0),
    ],
    ids=["no text", "no gzip", "no end of labels", "no number", "too long"],
)
def test_what_is_no_page_is_told_by_name(tmp_path, page):
    (tmp_path / "p.prom.gz").write_bytes(page)
    with pytest.raises(FormatError, match=r"p\.prom\.gz: "):
        read_page(RunDirectory(tmp_path), "p.prom.gz", Digest.of(page))
