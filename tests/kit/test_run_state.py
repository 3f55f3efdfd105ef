from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kit.run.follow import describe, duration, harness_error
from kit.run.state import JournalTail, RunState, read_state
from records.errors import BindingError, FormatError, InterruptedRunError, KitError
from records.schema import WindowEnded
from tests.sealed_run import Shape, make_run, small_plan

# A host that was there for a quarter of an hour.
LEFT_OUT = (
    Path(__file__).parents[2] / "records/data/20261130T172404Z-sm90-confounds-aee89a/events.jsonl"
)
RUN = "20261130T100000Z-test-plan-0a1b2c"


def test_a_finished_run_is_told_from_its_events(tmp_path: Path) -> None:
    run = make_run(tmp_path / RUN, small_plan(), Shape(fail_last=True, void_first_window=True))
    state = read_state(run.events)
    assert (state.total, state.done, state.failed, state.ended) == (4, 4, 1, True)
    assert list(state.failures.values()) == ["the engine ran out of memory"]
    assert set(state.voids.values()) == {("jit: 1 kernels compiled in the window",)}
    assert state.left_s(0) is None


def test_an_interrupted_boot_counts_once_it_was_made_good(tmp_path: Path) -> None:
    run = make_run(tmp_path / RUN, small_plan(), Shape(interrupt_first=True))
    state = read_state(run.events)
    assert (state.done, state.failed, state.resumed) == (4, 0, 1)


def test_a_growing_journal_is_read_in_whole_lines_each_once(tmp_path: Path) -> None:
    whole = make_run(tmp_path / RUN, small_plan()).events.read_bytes()
    grown = tmp_path / "events.jsonl"
    tail, state, shown = JournalTail(grown), RunState(), []
    assert list(tail.new_events()) == []
    for end in range(0, len(whole) + 997, 997):
        grown.write_bytes(whole[:end])
        for envelope in tail.new_events():
            shown.append(envelope.seq)
            state.see(envelope)
    assert shown == sorted(set(shown))
    assert state == read_state(grown)
    assert state.ended


def test_a_line_beyond_what_one_may_hold_is_refused_by_its_number_at_any_look(
    tmp_path: Path,
) -> None:
    whole = make_run(tmp_path / RUN, small_plan()).events.read_bytes()
    grown = tmp_path / "events.jsonl"
    grown.write_bytes(whole)
    tail, lines = JournalTail(grown), whole.count(b"\n")
    assert list(tail.new_events())
    for end in (b"", b"\n"):
        grown.write_bytes(whole + b"x" * (9 << 20) + end)
        with pytest.raises(FormatError, match=f"events.jsonl:{lines + 1}: too long"):
            list(tail.new_events())


def test_the_lines_shown_name_boot_window_and_cause(tmp_path: Path) -> None:
    shape = Shape(fail_last=True, void_first_window=True, interrupt_first=True)
    run = make_run(tmp_path / RUN, small_plan(), shape)
    state = RunState()
    text = "\n".join(state.see(envelope) for envelope in JournalTail(run.events).new_events())
    for words in (
        f"run {RUN}: 4 boots",
        "boot 1 of 4: b01-1-",
        "  window c2: 6 of 6 requests in ",
        "failed: the engine ran out of memory",
        "a torn last line of 17 bytes was cut off and recorded",
        "client calibrated at concurrency 2: p99 error 0.020 ms",
        "run ended: 3 boots completed, 1 failed",
    ):
        assert words in text


def test_a_void_window_is_told_in_units_for_people_and_kept_as_recorded(tmp_path: Path) -> None:
    recorded = (
        "client-lag: p99 1250000 ns, bound 1000000",
        "host-steal: 70000 ppm of CPU time, bound 50000",
    )

    def edit(event: Any) -> Any:
        return replace(event, void=recorded) if isinstance(event, WindowEnded) else event

    run = make_run(tmp_path / RUN, small_plan(blocks=1), Shape(edit=edit))
    state = RunState()
    text = "\n".join(state.see(envelope) for envelope in JournalTail(run.events).new_events())
    assert (
        "  window c1 VOID: client-lag: p99 1.25 ms, bound 1.00 ms; "
        "host-steal: 7.00 % of CPU time, bound 5.00 %\n"
    ) in text
    assert set(state.voids.values()) == {recorded}


def test_blocks_that_were_left_out_are_told_at_the_end() -> None:
    lines = [state.see(e) for state in [RunState()] for e in JournalTail(LEFT_OUT).new_events()]
    assert lines[-1] == (
        "run ended: 2 boots completed, 0 failed; blocks 4, 12 left out, "
        "as the host's time was running out"
    )


def test_time_left_follows_the_boots_so_far(tmp_path: Path) -> None:
    run = make_run(tmp_path / RUN, small_plan())
    state, lefts = RunState(), []
    for envelope in JournalTail(run.events).new_events():
        state.see(envelope)
        left = state.left_s(envelope.t_ns)
        if left is not None:
            lefts.append(left)
    assert lefts[0] == 4 * (5 + 2 * 1)  # the plan's estimates
    assert lefts[-1] == 0
    assert "boots done" in describe(state, state.last_ns)


def test_durations_are_told_in_two_units_at_most() -> None:
    assert [duration(s) for s in (0, 59, 60, 200, 3600, 18_240)] == [
        "0 s",
        "59 s",
        "1 min 00 s",
        "3 min 20 s",
        "1 h 00 min",
        "5 h 04 min",
    ]


def test_the_harness_error_comes_back_as_its_own_kind() -> None:
    log = "binding\nerror: got a, want b\nmore of it\n  try: make reproduce\nlate line\n"
    error = harness_error(31, log, "run x", "x.log")
    assert isinstance(error, BindingError)
    assert error.message == "run x: got a, want b\nmore of it"
    assert error.remedy == "make reproduce"


def test_an_unknown_end_shows_the_last_lines() -> None:
    error = harness_error(1, "Traceback\nValueError: x\n", "run x", "x.log")
    assert type(error) is KitError
    assert "ValueError: x" in error.message
    assert error.remedy == "read x.log"
    assert isinstance(harness_error(0, "", "run x", "x.log"), InterruptedRunError)


def test_before_the_first_event_nothing_is_said_of_how_many_boots() -> None:
    assert describe(RunState(), 0) == "  … starting: no boot begun"
