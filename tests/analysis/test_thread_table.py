"""What the engine's busiest thread did: from the facts of windows; no table without them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sealed_run import Shape, make_run, small_plan

from analysis.reading import Run, read_run
from analysis.thread_table import thread_table
from records import schema


def run(directory: Path, thread: Any, duration_ns: Any = 1_000) -> Run:
    def edit(event: Any) -> Any:
        if isinstance(event, schema.WindowEnded):
            host = {**event.facts.get("host", {}), "duration_ns": duration_ns}
            return replace(event, facts={**event.facts, "host": host, "busiest_thread": thread})
        return event

    return read_run(make_run(directory, small_plan(), Shape(edit=edit)))


def test_by_arm_and_window(tmp_path):
    thread = {"on_cpu_ns": 900, "waiting_ns": 50, "timeslices": 3, "processors": [2, 5]}
    (table,) = thread_table([run(tmp_path / "run", thread)])
    assert [row[1:3] for row in table.rows] == [
        ("draft", "c1"), ("draft", "c2"), ("none", "c1"), ("none", "c2")
    ]  # fmt: skip
    for row in table.rows:
        assert row[4:8] == ("90.0", "90.0", "5.00", "5.00")
        assert row[8] == row[3]  # each of its windows moved


@pytest.mark.parametrize(
    "thread",
    [None, "busy", {}, {"on_cpu_ns": 9}, {"on_cpu_ns": 9, "waiting_ns": 1, "processors": [1]}],
)
def test_records_that_do_not_tell(tmp_path, thread):
    assert thread_table([run(tmp_path / "run", thread)]) == ()


def test_a_window_of_no_length_tells_nothing(tmp_path):
    thread = {"on_cpu_ns": 900, "waiting_ns": 50, "processors": [2, 2]}
    assert thread_table([run(tmp_path / "run", thread, duration_ns=0)]) == ()
