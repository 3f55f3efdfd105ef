"""The server's own times of a window's requests: of the real records, and where there are none."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_words import metrics_page, times_page
from sealed_run import Shape, make_run, small_plan

from analysis.reading import Run, read_run
from analysis.server_clock import QUANTITIES, Means, WindowClock, window_clocks
from analysis.server_clock_table import server_clock_table
from analysis.table import as_object
from analysis.tables import study_tables
from records import schema
from records.digest import Digest
from records.errors import ChainError
from records.plan import Plan
from records.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]
DATA = ROOT / "records" / "data"
FIRST, SECOND = "20261130T170838Z-sm90-confounds-70604b", "20261130T172404Z-sm90-confounds-aee89a"
SMOKE = "20261130T115921Z-smoke-cpu-5d0eba"
EMPTY = schema.Counters(*[0] * 7)
# Run, boot, window: mean end-to-end time and TTFT over the server's, ms; and the server's. Counted
# by a script of a few lines over the same journals and pages, with a regular expression.
MEASURED = (
    (FIRST, "b01-1-none", "c1", 1.114, 1.085, 104.75, 11.11),
    (FIRST, "b01-1-none", "c64", 27.731, 21.319, 279.06, 58.97),
    (FIRST, "b01-1-none", "c64-plain", 16.833, 15.570, 211.86, 45.24),
    (FIRST, "b01-2-ngram", "c64", 7.914, 9.322, 405.18, 24.92),
    (FIRST, "b01-2-ngram", "c64-plain", 14.612, 16.155, 390.65, 36.88),
    (FIRST, "b01-4-draft-eager", "c64-plain", 13.111, 14.706, 2302.38, 177.51),
    (SECOND, "b02-1-draft-eager", "c64", 13.246, 16.049, 3841.23, 295.83),
    (SECOND, "b02-1-draft-eager", "c64-plain", 18.196, 20.269, 3473.18, 262.70),
    (SECOND, "b02-2-draft", "c64", 11.630, 14.582, 1617.83, 104.90),
    (SECOND, "b02-2-draft", "c64-plain", 14.424, 17.395, 1955.88, 143.98),
)


@pytest.fixture(scope="module")
def measured() -> dict[str, Run]:
    return {name: read_run(RunDirectory(DATA / name)) for name in (FIRST, SECOND, SMOKE)}


@pytest.fixture(scope="module")
def clocks(measured: dict[str, Run]) -> dict[tuple[str, str, str], WindowClock]:
    return {
        (run_id, one.boot, one.window): one
        for run_id, run in measured.items()
        for one in window_clocks(run)
    }


@pytest.mark.parametrize("of", MEASURED, ids=lambda of: "-".join(of[1:3]))
def test_it_gives_what_was_counted_by_hand_over_the_real_records(clocks, of):
    run, boot, window, whole, first, server_whole, server_first = of
    means = clocks[run, boot, window].means
    assert means["whole"].over_server_ms == pytest.approx(whole, abs=5e-4)
    assert means["ttft.sent"].over_server_ms == pytest.approx(first, abs=5e-4)
    assert means["whole"].server_ms == pytest.approx(server_whole, abs=5e-3)
    assert means["ttft.sent"].server_ms == pytest.approx(server_first, abs=5e-3)


def test_no_client_is_faster_than_the_server_and_every_usable_window_is_there(measured, clocks):
    assert len(clocks) == sum(
        len([*boot.usable_windows, *boot.peer_windows])
        for run in measured.values()
        for boot in run.boots
    )
    for one in clocks.values():
        assert one.client == ("asyncio" if one.window == "c64-plain" else "kit")
        for id_ in ("whole", "ttft.sent"):
            assert 0 < one.means[id_].over_server_ms < 50


def test_per_token_both_clocks_see_the_same_engine(clocks):
    for one in clocks.values():
        means = one.means["tpot.n-1"]
        assert means.client_ms == pytest.approx(means.server_ms, rel=0.05)


# --- made runs: what is not there is not made up


def made(path: Path, plan: Plan | None = None, **looks: Any) -> Run:
    return read_run(make_run(path / "run-1", plan or small_plan(1), Shape(clocked=True, **looks)))


def by_window(run: Run) -> dict[str, WindowClock]:
    return {f"{one.boot} {one.window}": one for one in window_clocks(run)}


def reasons(run: Run) -> set[str]:
    return {means.why for one in window_clocks(run) for means in one.means.values()}


def test_what_the_pages_hold_comes_out(tmp_path):
    for one in window_clocks(made(tmp_path)):
        assert one.means["ttft.sent"].over_server_ms == pytest.approx(1)
        assert one.means["whole"].over_server_ms == pytest.approx(2)
        assert one.means["tpot.n-1"].over_server_ms == pytest.approx(0, abs=1e-9)
        assert one.client == "kit"


def of_windows(change: Callable[[schema.WindowEnded], Any]) -> Callable[[Any], Any]:
    return lambda event: change(event) if isinstance(event, schema.WindowEnded) else event


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_window_without_a_page_has_no_clock(tmp_path, moment):
    """The engine answered no more, or not yet."""

    def lost(event: schema.WindowEnded) -> schema.WindowEnded:
        kept = {name: d for name, d in event.metrics.items() if f".{moment}." not in name}
        return replace(event, metrics=kept)

    run = made(tmp_path, edit=of_windows(lost))
    assert reasons(run) == {f"no page from {moment} it"}
    (table,) = [t for t in study_tables([run]) if t.name == "server-clock"]
    assert {row[-1] for row in table.rows} == {f"1: no page from {moment} it"}
    for row in as_object(table)["rows"]:
        assert row["boots"] == 0
        assert row["server_median"] is row["over_the_server_s_median"] is None


def test_a_window_in_which_a_request_failed_has_none(tmp_path):
    def one_failed(event: Any) -> Any:
        if not isinstance(event, schema.WindowRequests) or event.window != "c1":
            return event
        first, *others = event.requests
        return replace(event, requests=(replace(first, outcome="failed", error="timeout"), *others))

    found = by_window(made(tmp_path, edit=one_failed))
    for name, one in found.items():
        want = "a request did not complete" if name.endswith("c1") else ""
        assert {means.why for means in one.means.values()} == {want}


def test_a_report_of_other_requests_than_the_journals_gives_none(tmp_path):
    def said(event: schema.WindowEnded) -> schema.WindowEnded:
        report = replace(event.report, planned=event.report.planned + 1, failed=1)
        return replace(event, report=report)

    assert reasons(made(tmp_path, edit=of_windows(said))) == {"a request did not complete"}


def rewritten(tmp_path: Path, page: Callable[[str, bytes], bytes]) -> Run:
    """A run whose pages are others, named as such by its journal. `page`: moment, old -> new."""
    root = tmp_path / "run-1"

    def edit(event: schema.WindowEnded) -> schema.WindowEnded:
        named = {}
        for name in event.metrics:
            path = root / name
            new = page(name.split(".")[-3], gzip.decompress(path.read_bytes()))
            path.write_bytes(gzip.compress(new, mtime=0))
            named[name] = Digest.of(path.read_bytes())
        return replace(event, metrics=named)

    return made(tmp_path, edit=of_windows(edit))


@pytest.mark.parametrize("more", [-1, 1, 5])
def test_counts_that_do_not_fit_the_window_give_none(tmp_path, more):
    """Others were served too, or a request was counted twice: their mean is not the window's."""

    def page(moment: str, old: bytes) -> bytes:
        other = times_page([], more) if moment == "after" else times_page([])
        return metrics_page(EMPTY) + other

    run = rewritten(tmp_path, page)
    assert reasons(run) == {"the server counted other requests than the window's"}


def test_a_server_without_such_a_histogram_has_no_clock(tmp_path):
    """Another engine: its families have other names."""
    run = rewritten(tmp_path, lambda _, old: old.replace(b"request_latency", b"time"))
    for one in window_clocks(run):
        assert one.means["whole"] == Means(why="the server has no vllm:e2e_request_latency_seconds")
        assert one.means["ttft.sent"].over_server_ms == pytest.approx(1)


@pytest.mark.parametrize(
    ("before", "after"),
    [("-1e300", "1e308"), ("1e308", "1"), ("0", "-1"), ("0", "1e307"), ("1e17", "1e17")],
)
def test_sums_that_no_server_can_have_counted_give_none(tmp_path, before, after):
    """They fall, or are beyond any time that requests can have taken."""

    def page(moment: str, old: bytes) -> bytes:
        value = before if moment == "before" else after
        return re.sub(rb"(_seconds_sum\{.*\}) \S+", rb"\1 " + value.encode(), old)

    assert reasons(rewritten(tmp_path, page)) == {"the server's sums are no times of requests"}


def on_one_page(change: Callable[[bytes], bytes]) -> Callable[[str, bytes], bytes]:
    """Of all the pages of a run the first from after a window is another."""
    changed: list[bytes] = []

    def page(moment: str, old: bytes) -> bytes:
        if moment == "before" or changed:
            return old
        changed.append(change(old))
        return changed[0]

    return page


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda old: old + old, "twice"),
        (lambda old: old + b"vllm:e2e_request_latency_seconds_sum{a=\n", "not the text format"),
        (lambda _: b"\xff\xfe", "cannot be unpacked"),
    ],
    ids=["series twice", "no line of it", "no text"],
)
def test_what_is_no_page_costs_its_window_its_clock_and_nothing_else(tmp_path, change, said):
    run = rewritten(tmp_path, on_one_page(change))
    spoilt, *others = window_clocks(run)
    name = f"run-1/metrics/{spoilt.boot}.{spoilt.window}.after.prom.gz"
    for means in spoilt.means.values():
        assert means.over_server_ms is None
        assert means.why.startswith(f"{name}: ")
        assert said in means.why
    assert {means.why for one in others for means in one.means.values()} == {""}
    tables = {table.name: table for table in study_tables([run])}
    assert name in str(tables["server-clock"].rows)
    assert tables["latency"].rows
    assert tables["by-boot"].rows


@pytest.mark.parametrize("value", [b"NaN", b"+Inf"])
def test_a_sum_that_is_no_number_costs_its_quantity_its_mean_and_nothing_else(tmp_path, value):
    """`kit analyze` had ended at it, for the whole run."""

    def change(old: bytes) -> bytes:
        return re.sub(rb"(e2e_request_latency_seconds_sum\{.*\}) \S+", rb"\1 " + value, old)

    spoilt, *others = window_clocks(rewritten(tmp_path, on_one_page(change)))
    name = f"run-1/metrics/{spoilt.boot}.{spoilt.window}.after.prom.gz"
    why = spoilt.means["whole"].why
    assert why == f"{name}: vllm:e2e_request_latency_seconds_sum is {float(value)}"
    assert spoilt.means["ttft.sent"].over_server_ms == pytest.approx(1)
    assert {means.why for one in others for means in one.means.values()} == {""}


def test_a_server_that_began_to_count_within_the_window_has_no_clock(tmp_path):
    run = rewritten(tmp_path, lambda at, old: metrics_page(EMPTY) if at == "before" else old)
    assert reasons(run) == {f"the server has no {one.family}" for one in QUANTITIES}


def test_a_request_without_a_chunk_or_of_one_token_is_undefined_by_the_client(tmp_path):
    def edit(event: Any) -> Any:
        if not isinstance(event, schema.WindowRequests):
            return event
        first, *others = event.requests
        cut = (
            replace(first, chunk_ns=(), chunk_tokens=())
            if event.window == "c1"
            else replace(first, chunk_ns=first.chunk_ns[:1], chunk_tokens=(1,))
        )
        return replace(event, requests=(cut, *others))

    for name, one in by_window(made(tmp_path, edit=edit)).items():
        chunkless = name.endswith("c1")
        want = "a request without a chunk" if chunkless else "a request of one token"
        assert one.means["tpot.n-1"].why == want
        assert one.means["whole"].over_server_ms == pytest.approx(2)
        assert (one.means["ttft.sent"].why == want) is chunkless


def test_a_page_that_is_not_the_one_kept_is_refused(tmp_path):
    run = made(tmp_path)
    page = min((tmp_path / "run-1" / "metrics").glob("*draft*.after.prom.gz"))
    was = page.read_bytes()
    page.write_bytes(gzip.compress(gzip.decompress(was).replace(b"16", b"17"), mtime=0))
    with pytest.raises(ChainError, match=f"{page.name}: got sha256:.* want sha256:"):
        window_clocks(run)
    page.unlink()
    with pytest.raises(ChainError, match="missing"):
        window_clocks(run)
    page.symlink_to("/dev/zero")
    with pytest.raises(ChainError, match="missing"):
        window_clocks(run)


def test_a_run_that_was_not_read_from_a_directory_has_no_pages(tmp_path):
    run = made(tmp_path)
    run.directory = None
    assert reasons(run) == {"no page was kept"}


# --- tables


def clock(
    boot: str, server_ms: float | None, client_ms: float | None, why: str = ""
) -> WindowClock:
    means = {one.id: Means(server_ms, client_ms, why) for one in QUANTITIES}
    return WindowClock("run-1", boot, "draft", "c64", "kit", means, (0, 0))


def test_the_table_gives_median_least_and_greatest_over_the_boots_that_can_tell():
    of = [
        clock("b1", 10, 11),
        clock("b2", 20, 23),
        clock("b3", 30, 32),
        clock("b4", None, None, "x"),
    ]
    rows = as_object(server_clock_table(of))["rows"]
    assert [row["quantity"] for row in rows] == [one.name for one in QUANTITIES]
    for row in rows:
        assert (row["boots"], row["left_out"]) == (3, "1: x")
        assert [row[f"server_{end}"] for end in ("median", "least", "greatest")] == [20, 10, 30]
        over = [row[f"over_the_server_s_{end}"] for end in ("median", "least", "greatest")]
        assert over == [2, 1, 3]


def test_the_peer_table_tells_how_far_the_engine_itself_went_another_way(measured):
    (table,) = [t for t in study_tables([measured[FIRST]]) if t.name == "peer"]
    rows = {(row["arm"], row["quantity"]): row for row in as_object(table)["rows"]}
    ttft = rows["none", "TTFT from sending"]
    assert ttft["server_difference"] == pytest.approx(45.24 - 58.97, abs=0.01)
    assert ttft["beyond_the_server_s_difference"] == pytest.approx(15.570 - 21.319, abs=1e-3)
    whole = rows["ngram", "end-to-end time"]
    assert whole["beyond_the_server_s_difference"] == pytest.approx(14.612 - 7.914, abs=2e-3)
    assert whole["difference_p95"] is None
    assert rows["ngram", "step gap"]["server_difference"] is None
    assert any("what the engine did differently" in note for note in table.notes)


def test_runs_are_pooled_boot_by_boot(measured):
    pooled = [one for name in (FIRST, SECOND) for one in window_clocks(measured[name])]
    rows = {
        (row["arm"], row["window"], row["quantity"]): row
        for row in as_object(server_clock_table(pooled))["rows"]
    }
    row = rows["draft", "c64", "end-to-end time"]
    assert row["boots"] == 2
    assert row["over_the_server_s_least"] == pytest.approx(10.567, abs=1e-3)
    assert row["over_the_server_s_greatest"] == pytest.approx(11.630, abs=1e-3)


def test_a_copy_elsewhere_gives_the_same(tmp_path, clocks):
    shutil.copytree(DATA / SECOND, tmp_path / SECOND)
    for one in window_clocks(read_run(RunDirectory(tmp_path / SECOND))):
        assert one == clocks[SECOND, one.boot, one.window]
