"""What the hosts' processors are worth: from the facts of hosts; no row where they hold none."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sealed_run import Shape, make_run, small_plan

from analysis.claiming.claim import evaluate
from analysis.claiming.reading import Reading, read_study_run
from analysis.claims import claims_of
from analysis.processor_table import in_words, processor_table, processors_of
from analysis.reading import read_run
from analysis.report.run_views import run_view
from analysis.trace import run_trace
from audit.counted import count_run
from audit.recount import value_of
from records import schema
from records.decode import to_object
from records.errors import ClaimError
from records.processors import Burst, Pair, Place, Processors
from records.run_directory import RunDirectory

ALONE, SLOW = (1_000_000,) * 3, (1_600_000,) * 3
# Four processors of a virtual machine that are two cores: 0 and 2, 1 and 3.
TWO_CORES = Processors(
    engine=(0, 1, 2),
    client=(3,),
    addends=5_000,
    places=tuple(Place(cpu, str(cpu), "0", "0") for cpu in range(4)),
    alone=tuple(Burst(cpu, ALONE) for cpu in range(3)),
    together=(Burst(0, SLOW), Burst(1, ALONE), Burst(2, SLOW)),
    pairs=(
        Pair(0, 3, ALONE, ALONE, ALONE, ALONE),
        Pair(1, 3, ALONE, SLOW, ALONE, SLOW),
        Pair(2, 3, ALONE, (), ALONE, ALONE),
    ),
)


def run(directory: Path, facts: Any) -> Any:
    def edit(event: Any) -> Any:
        if isinstance(event, schema.HostObserved) and event.phase == "start":
            return replace(event, facts={**event.facts, "processors": facts})
        return event

    return read_run(make_run(directory, small_plan(), Shape(edit=edit)))


def test_two_cores_that_look_like_four(tmp_path: Path) -> None:
    (table,) = processor_table([run(tmp_path / "run", to_object(TWO_CORES))])
    (row,) = table.rows
    assert row[2:] == (
        *("start", "0-2", "3", "3"),
        *("2.25", "1.0000", "1.0000"),
        *("2", "1", "1 and 3", "1.60", "1"),
    )


def test_on_the_page_of_the_run(tmp_path: Path) -> None:
    found = run(tmp_path / "run", to_object(TWO_CORES))
    trace = run_trace(read_study_run(RunDirectory(tmp_path / "run")), tmp_path)
    told = dict(run_view(found, trace, "run-1").machine)
    assert told["processors at once"] == in_words(TWO_CORES)
    assert "3 of the engine's do the work of 2.2 at once; 1 of 2 pairs" in in_words(TWO_CORES)


@pytest.mark.parametrize(
    "facts",
    [
        None,
        "fast",
        [],
        {"engine": [0]},
        {**to_object(TWO_CORES), "alone": [None]},
        {**to_object(TWO_CORES), "more": 1},
    ],
)
def test_records_without_it_or_of_another_shape(tmp_path: Path, facts: Any) -> None:
    assert processor_table([run(tmp_path / "run", facts)]) == ()
    counted = count_run(RunDirectory(tmp_path / "run").events)
    assert all(map(math.isnan, (*counted.worths, *counted.beside_client)))


def test_times_that_no_clock_gives_tell_nothing() -> None:
    odd = replace(TWO_CORES, alone=(Burst(0, (0, 0, 0)), Burst(1, (-1,) * 3)), pairs=())
    found = processors_of({"processors": to_object(odd)})
    assert found == odd
    assert found is not None
    assert found.worth is None


def _claim(name: str) -> Any:
    (found,) = [c for c in claims_of("s", small_plan()) if c.id == f"s.host.processors.{name}"]
    return found


def test_claims_take_the_worst_time_of_the_study(tmp_path: Path) -> None:
    run(tmp_path / "a", to_object(TWO_CORES))
    run(tmp_path / "b", to_object(replace(TWO_CORES, together=TWO_CORES.together[:1], pairs=())))
    directories = [RunDirectory(tmp_path / name) for name in "ab"]
    runs = tuple(map(read_study_run, directories))
    worth = evaluate(_claim("worth"), Reading("s", runs))
    assert worth.printed == "0.62 processors"
    assert [(line.run, line.number) for line in worth.lines if line.run == "a"]
    beside = evaluate(_claim("beside-client"), Reading("s", runs))
    assert beside.printed == "1.60"
    again = [count_run(directory.events) for directory in directories]
    for value in (worth, beside):
        assert value_of(value.claim.id, "s", again) == pytest.approx(value.value, rel=1e-9)


@pytest.mark.parametrize(
    "facts", [None, to_object(replace(TWO_CORES, together=(Burst(0, ()),), pairs=()))]
)
def test_claims_without_times_have_no_value(tmp_path: Path, facts: Any) -> None:
    run(tmp_path / "run", facts)
    directory = RunDirectory(tmp_path / "run")
    runs = (read_study_run(directory),)
    for name in ("worth", "beside-client"):
        assert value_of(_claim(name).id, "s", [count_run(directory.events)]) is None
        with pytest.raises(ClaimError):
            evaluate(_claim(name), Reading("s", runs))
