"""How fast the hosts were: from the facts of windows; no table where they hold nothing of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sealed_run import Shape, make_run, small_plan

from analysis.conduct_tables import pace_table
from analysis.reading import read_run
from records import schema


def run(directory: Path, pace: Any) -> Any:
    def edit(event: Any) -> Any:
        if isinstance(event, schema.WindowEnded) and pace is not None:
            host = {**event.facts.get("host", {}), "pace_ns": pace}
            return replace(event, facts={**event.facts, "host": host})
        return event

    return read_run(make_run(directory, small_plan(), Shape(edit=edit)))


def test_by_host_and_arm(tmp_path: Path) -> None:
    (table,) = pace_table([run(tmp_path / "run", [1_000_000, 1_500_000])])
    assert {row[2] for row in table.rows} == {"draft", "none"}
    for row in table.rows:
        assert row[4:] == ("1.2500", "1.0000", "1.5000", "50.0")


def test_records_without_it(tmp_path: Path) -> None:
    assert pace_table([run(tmp_path / "none", None)]) == ()
    assert pace_table([run(tmp_path / "odd", "fast")]) == ()
