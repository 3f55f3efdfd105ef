"""Tables: the same bytes each time, one directory a run, and what they leave out is counted."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from sealed_run import Shape, list_run, make_run, small_plan

from analysis.measure_tables import boot_metrics_table
from analysis.metrics import run_metrics
from analysis.pools import pools
from analysis.publish import write_run_tables, write_tables
from analysis.reading import read_run
from analysis.statistics.dispersion import cv_interval
from analysis.table import (
    MISSING,
    Column,
    Table,
    as_csv,
    as_object,
    latex,
    markdown,
    number,
    words,
)
from analysis.tables import study_tables
from records.errors import ChainError
from records.run_directory import RunDirectory
from records.void_words import reason_text

SIMPLE = Table(
    "simple",
    "A table",
    ("A note.",),
    (*words("arm"), Column("rate", "tok/s")),
    (("a|b_c", "1.50"), ("100 %", MISSING)),
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two runs of one plan, one of another, a synthetic one and an open one."""
    data = tmp_path / "data"
    data.mkdir()
    list_run(data, make_run(data / "run-1", small_plan(), Shape()))
    list_run(data, make_run(data / "run-2", small_plan(), Shape(scale_ppm=900_000)))
    other = replace(small_plan(), id="other")
    eventful = Shape(interrupt_first=True, fail_last=True, void_first_window=True)
    list_run(data, make_run(data / "run-3", other, eventful))
    make_run(data / "run-open", small_plan(), Shape(seal=False))
    make_run(data / "demo", small_plan(), Shape(synthetic=True))
    return data


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


def test_written_twice_the_same_bytes(data, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    one, two = write_tables(data, first), write_tables(data, second)
    assert [p.relative_to(first) for p in one] == [p.relative_to(second) for p in two]
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]


def test_one_directory_a_run_and_one_a_pool(data, tmp_path):
    write_tables(data, tmp_path / "out")
    made = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert made == ["pooled-test-plan-from-run-1", "run-1", "run-2", "run-3"]
    assert len(list((tmp_path / "out" / "run-1").iterdir())) == 11 * 3


def test_tables_of_a_run_do_not_depend_on_other_runs(data, tmp_path):
    alone = write_run_tables(read_run_of(data, "run-1"), tmp_path / "alone")
    write_tables(data, tmp_path / "all")
    for path in alone:
        assert path.read_bytes() == (tmp_path / "all" / "run-1" / path.name).read_bytes()


def test_runs_of_other_plans_or_hosts_are_not_pooled(data):
    runs = [read_run_of(data, name) for name in ("run-1", "run-2", "run-3")]
    assert [pool.runs for pool in pools(runs)] == [("run-1", "run-2")]
    runs[1].hosts = [replace(one, facts={**one.facts, "driver": "570.9"}) for one in runs[1].hosts]
    assert list(pools(runs)) == []
    runs[1].hosts = runs[0].hosts
    assert len(list(pools(runs))) == 1
    runs[1].host_id = "host-2"
    assert list(pools(runs)) == []


def test_fewer_chunks_than_steps_leave_no_count_of_steps_without_a_draft(data):
    """The server put several steps into one chunk: their difference is no count."""
    metrics = run_metrics(read_run_of(data, "run-1"))
    drafting = next(place for place, one in enumerate(metrics) if one.acceptance.server_length)
    merged = replace(metrics[drafting].acceptance, undrafted_chunks=-4)
    plain = boot_metrics_table(metrics)
    metrics[drafting] = replace(metrics[drafting], acceptance=merged)
    found = boot_metrics_table(metrics)
    place = [column.name for column in found.columns].index("steps without draft")
    assert MISSING in [row[place] for row in found.rows if row[0] == metrics[drafting].arm]
    assert not [row for row in found.rows if row[place].startswith("-") and row[place] != MISSING]
    (note,) = set(found.notes) - set(plain.notes)
    assert "several steps into one chunk" in note


def test_dispersion_is_over_boots(data, tmp_path):
    write_run_tables(read_run_of(data, "run-1"), tmp_path)
    dots = [
        float(row["output (tok/s)"])
        for row in rows(tmp_path / "run-1" / "by-boot.csv")
        if (row["arm"], row["window"]) == ("draft", "c1")
    ]
    assert len(dots) == 2
    cell = next(
        row
        for row in rows(tmp_path / "run-1" / "dispersion.csv")
        if (row["arm"], row["window"]) == ("draft", "c1")
    )
    want = cv_interval(dots)
    assert float(cell["CV (%)"]) == pytest.approx(100 * want.cv, abs=0.05)
    assert cell["CV 95 % low (%)"] == cell["CV 95 % high (%)"] == ""  # two boots have one spread


def test_an_interval_needs_three_boots(data):
    pooled = study_tables([read_run_of(data, name) for name in ("run-1", "run-2")])
    table = next(table for table in pooled if table.name == "dispersion")
    row = as_object(table)["rows"][0]
    assert row["boots"] == 4
    assert (
        row["cv_95_percent_low_percent"] <= row["cv_percent"] <= row["cv_95_percent_high_percent"]
    )


def test_the_ramp_is_counted_beside_the_requests_that_remain(data, tmp_path):
    write_run_tables(read_run_of(data, "run-1"), tmp_path)
    for row in rows(tmp_path / "run-1" / "latency.csv"):
        boots = [b for b in read_run_of(data, "run-1").boots if b.started.arm == row["arm"]]
        planned = sum(
            len(w.requests) for b in boots for w in b.usable_windows if w.window.id == row["window"]
        )
        assert int(row["requests"]) + int(row["ramp"]) == planned


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        (
            "client-cpu: 612345 ppm of a core, bound 500000",
            "client-cpu: 61.23 % of a core, bound 50.00 %",
        ),
        ("client-lag: p99 60000000 ns, bound 50000000", "client-lag: p99 60.00 ms, bound 50.00 ms"),
        (
            "calibration: error 100200 ns, bound 100000",
            "calibration: error 0.1002 ms, bound 0.1000 ms",
        ),
        ("calibration: error 5 ns, bound 5", "calibration: error 0.00 ms, bound 0.00 ms"),
        (f"x {'9' * 5000} ns, bound 5", f"x {'9' * 5000} ns, bound 5"),
        ("jit: 1 kernels compiled in the window", "jit: 1 kernels compiled in the window"),
    ],
)
def test_reasons_are_shown_in_units_for_people(recorded, shown):
    assert reason_text(recorded) == shown


def test_what_was_not_used_is_counted(data, tmp_path):
    write_run_tables(read_run_of(data, "run-3"), tmp_path)
    boots = {row["arm"]: row for row in rows(tmp_path / "run-3" / "boots.csv")}
    assert sum(int(row["failed"]) for row in boots.values()) == 1
    assert sum(int(row["interrupted"]) for row in boots.values()) == 1
    assert sum(int(row["void"]) for row in boots.values()) == 3
    assert all(int(row["planned"]) == 2 for row in boots.values())
    reasons = [row["reason"] for row in rows(tmp_path / "run-3" / "void.csv")]
    assert "failed: the engine ran out of memory" in reasons
    assert reasons.count("jit: 1 kernels compiled in the window") == 2


def test_objective_on_chunks_and_on_tokens_rank_differently(data, tmp_path):
    """At 20 ms no drafting request passes on its step gap; all pass per token."""
    write_run_tables(read_run_of(data, "run-1"), tmp_path)
    share = {
        (row["arm"], row["window"], row["quantity"], row["threshold (ms)"]): row
        for row in rows(tmp_path / "run-1" / "goodput.csv")
    }
    assert share["draft", "c1", "p95 step gap", "20"]["requests meeting it (%)"] == "0.0"
    assert share["draft", "c1", "TPOT(n-1)", "20"]["requests meeting it (%)"] == "100.0"


def test_synthetic_is_said_in_every_table(data):
    for table in study_tables([read_run_of(data, "demo")]):
        assert "SYNTHETIC" in table.title
        assert "SYNTHETIC" in markdown(table)
        assert "SYNTHETIC" in latex(table)


def test_a_count_that_the_engine_did_not_log_is_no_number(data):
    run = read_run_of(data, "run-1")
    boots = tuple(
        replace(
            boot, decided=replace(boot.decided, facts={**boot.decided.facts, "spec_tokens": -1})
        )
        for boot in run.boots
        if boot.decided is not None
    )
    decisions = study_tables([replace(run, boots=boots)])[0]
    place = [column.heading for column in decisions.columns].index("drafted tokens")
    assert {row[place] for row in decisions.rows} == {"unlogged"}


def test_no_table_from_a_changed_run(data, tmp_path):
    events = data / "run-2" / "events.jsonl"
    events.write_bytes(events.read_bytes()[:-1] + b" ")
    with pytest.raises(ChainError):
        write_tables(data, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_markdown():
    assert markdown(SIMPLE) == (
        "## A table\n\n"
        "| arm    | rate (tok/s) |\n"
        "| ------ | -----------: |\n"
        "| a\\|b_c |         1.50 |\n"
        "| 100 %  |            - |\n\n"
        "- A note.\n"
    )


def test_an_empty_table_says_so():
    assert "\nNone.\n" in markdown(replace(SIMPLE, rows=()))


def test_json_has_numbers_and_stable_keys():
    told = as_object(SIMPLE)
    assert [column["key"] for column in told["columns"]] == ["arm", "rate_tok_per_s"]
    assert told["rows"] == [
        {"arm": "a|b_c", "rate_tok_per_s": 1.5},
        {"arm": "100 %", "rate_tok_per_s": None},
    ]


def test_latex_keeps_comparison_signs():
    assert r"\textless{}= \textgreater{}" in latex(replace(SIMPLE, rows=(("<= >", "1"),)))


def test_csv_leaves_missing_numbers_empty():
    assert as_csv(SIMPLE) == "arm,rate (tok/s)\na|b_c,1.50\n100 %,\n"


def test_latex_escapes():
    text = latex(SIMPLE)
    assert r"a|b\_c & 1.50 \\" in text
    assert r"100 \% & - \\" in text
    assert r"\begin{tabular}{lr}" in text
    assert r"\toprule" in text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1.005, 2, "1.00"),
        (-0.0001, 2, "0.00"),
        (float("inf"), 2, MISSING),
        (float("nan"), 2, MISSING),
        (None, 1, MISSING),
        (20, 0, "20"),
    ],
)
def test_number(value, digits, text):
    assert number(value, digits) == text


def read_run_of(data: Path, name: str):
    return read_run(RunDirectory(data / name))


def test_no_form_of_a_table_steers_what_shows_it():
    """Words of engines and hosts stand in cells: no escape, tag, formula or line of theirs."""
    hostile = "=HYPERLINK(1)\x1b[31m<script>\u202e\n| x"
    table = replace(SIMPLE, rows=((hostile, "1"), ("-2+3", "-0.5")), notes=(hostile,))
    for form in (markdown, as_csv, latex):
        text = form(table)
        assert not set(text) & {"\x1b", "\u202e"}
        assert r"\x1b" in text or "textbackslash" in text
    assert "\n| x" not in markdown(table)
    assert "<script>" not in markdown(table).replace(r"\<script>", "")
    lines = as_csv(table).splitlines()[1:]
    assert lines[0].startswith("'=HYPERLINK")
    assert lines[1] == "'-2+3,-0.5"
