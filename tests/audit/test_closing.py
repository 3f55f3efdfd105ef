"""A run that was closed: warnings for what it lacks, errors where closing would hide a thing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import closed_run
import pytest
import sealed_run

from audit.finding import Finding
from audit.harness_archive import digest_of, sources_in
from audit.runner import audit
from records import canonical, chain
from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME, Checkpoint, Leaf, parse_runs
from records.digest import Digest
from records.run_directory import RunDirectory
from records.seal import write_seal

Events = list[dict[str, Any]]


def cut(project: Any, name: str = "run-3", shape: Any = None, whole_boots: int = 2) -> RunDirectory:
    """An unfinished run whose host went away in its second block."""
    shape = shape or sealed_run.Shape(edit=closed_run.gone_host)
    shape = replace(shape, harness=digest_of(sources_in(project.root)))
    return closed_run.cut_short(project.data / name, whole_boots, shape=shape)


def findings(project: Any) -> list[Finding]:
    return list(audit(project.root, project.data).findings)


def rewritten(project: Any, run: RunDirectory, edit: Callable[[Events], None]) -> None:
    """The run with other events; chain, seal and lists made anew over them."""
    events = [canonical.decode(line) for line in run.events.read_bytes().splitlines()]
    edit(events)
    state, out = chain.EMPTY, b""
    for event in events:
        line = chain.make_line(state, event["t_ns"], event["type"], event["value"])
        state, out = chain.extend(state, line), out + line
    run.events.write_bytes(out)
    (run.path / "seal.json").unlink()
    write_seal(run.path, run.path.name, state)
    runs = project.data / RUNS_NAME
    leaves = [
        replace(leaf, seal=run.seal_digest) if leaf.run_id == run.path.name else leaf
        for leaf in parse_runs(runs.read_text())
    ]
    runs.write_text("".join(f"{leaf}\n" for leaf in leaves))
    (project.data / CHECKPOINT_NAME).write_text(str(Checkpoint.of(leaves)))


def test_a_closed_run_says_what_it_lacks_and_is_no_error(project: Any) -> None:
    run = cut(project)
    assert {f.code for f in findings(project)} == {"CKPT08"}
    assert closed_run.closed(run).missing == (2,)
    found = {f.code: f for f in findings(project)}
    assert set(found) == {"CLOSE01", "CLOSE02"}
    assert {f.severity for f in found.values()} == {"warning"}
    assert "run run-3: bound before, not after" in found["CLOSE01"].message
    assert found["CLOSE01"].got == "engine, target, drafter"
    assert found["CLOSE02"].message == "run run-3: 1 of 2 planned blocks are missing"
    assert found["CLOSE02"].got == "without 2"
    plan = sealed_run.small_plan()
    assert (
        f"kit reproduce --new --plan {plan.id} --blocks 2 measures them" in found["CLOSE02"].remedy
    )
    assert f"kit plan show {plan.id} still gives {plan.digest}" in found["CLOSE02"].remedy


def test_a_run_closed_without_a_whole_block_lacks_them_all(project: Any) -> None:
    closed_run.closed(cut(project, whole_boots=1))
    (lacking,) = [f for f in findings(project) if f.code == "CLOSE02"]
    assert "2 of 2 planned blocks are missing" in lacking.message


def test_a_failed_boot_of_a_closed_run_is_an_outcome(project: Any) -> None:
    def fails(event: Any) -> Any:
        event = closed_run.gone_host(event)
        if getattr(event, "outcome", "") == "completed" and event.boot.startswith("b01-2"):
            return replace(event, outcome="failed", cause="the engine ran out of memory")
        return event

    closed = closed_run.closed(cut(project, shape=sealed_run.Shape(edit=fails)))
    assert (closed.carried_out, closed.failed) == ((1,), 1)
    assert {f.code for f in findings(project)} == {"CLOSE01", "CLOSE02"}


def _again(events: Events) -> None:
    events.append(dict(events[-1]))
    events[-1]["value"] = {**events[-1]["value"], "came_home": len(events) - 1}


def _goes_on(events: Events) -> None:
    seen = next(event for event in events if event["type"] == "host.observed")
    events.append({**seen, "t_ns": events[-1]["t_ns"]})


def _after_an_end(events: Events) -> None:
    closed = events.pop()
    clock = {"host_boot": "gone", "monotonic_ns": closed["t_ns"], "realtime_ns": 1}
    value = {"completed": 2, "failed": 0, "modules": ["records", "remote"], "clock": clock}
    ended = {"type": "run.ended", "t_ns": closed["t_ns"], "value": value}
    closed["value"]["came_home"] += 1
    events += [ended, closed]


def says(key: str, value: Any) -> Callable[[Events], None]:
    def edit(events: Events) -> None:
        events[-1]["value"][key] = value

    return edit


def _later(events: Events) -> None:
    events[-1]["t_ns"] += 1


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        pytest.param(_again, "CLOSE03", id="twice"),
        pytest.param(_goes_on, "CLOSE03", id="followed by another event"),
        pytest.param(_after_an_end, "CLOSE03", id="after run.ended"),
        pytest.param(says("came_home", 7), "CLOSE04", id="fewer events came home"),
        pytest.param(says("interrupted", ""), "CLOSE04", id="no boot was under way"),
        pytest.param(says("interrupted", "b01-1-draft"), "CLOSE04", id="another boot was"),
        pytest.param(says("not_bound_after", []), "CLOSE04", id="all was bound after"),
        pytest.param(says("not_bound_after", ["engine"]), "CLOSE04", id="models were bound after"),
        pytest.param(says("reason", " "), "CLOSE04", id="no reason"),
        pytest.param(says("reason", "x" * 501), "CLOSE04", id="a reason longer than any"),
        pytest.param(says("reason", "gone\x1b[2J"), "CLOSE04", id="a reason for terminals"),
        pytest.param(says("reason", "\u202eenog"), "CLOSE04", id="a reason turned over"),
        pytest.param(says("kit", "0.1.0\n"), "CLOSE04", id="a kit of two lines"),
        pytest.param(says("kit", ""), "CLOSE04", id="no kit"),
        pytest.param(says("realtime_ns", 1), "CLOSE04", id="closed before it began"),
        pytest.param(_later, "CLOSE04", id="a time of its own"),
    ],
)
def test_what_run_closed_says_is_held_against_the_journal(
    project: Any, edit: Callable[[Events], None], code: str
) -> None:
    run = cut(project)
    closed_run.closed(run)
    rewritten(project, run, edit)
    errors = {f.code for f in findings(project) if f.severity == "error"}
    assert errors == {code}


def test_a_run_that_ended_cannot_be_turned_into_a_closed_one_once_git_knows_it(
    project: Any, codes: Callable[[Any], set[str]]
) -> None:
    run = RunDirectory(project.run("run-1"))

    def truncate(events: Events) -> None:
        last = next(
            place
            for place, event in enumerate(events)
            if event["type"] == "boot.started" and event["value"]["planned"].startswith("b02")
        )
        del events[last + 1 :]
        value = {
            "came_home": len(events),
            "interrupted": events[-1]["value"]["boot"],
            "kit": "0.1.0",
            "not_bound_after": ["engine", "drafter", "target"],
            "realtime_ns": closed_run.REASON.realtime_ns,
            "reason": "the host went away",
        }
        events.append({"type": "run.closed", "t_ns": events[-1]["t_ns"], "value": value})

    for path in [*run.path.glob("logs/b02*"), *run.path.glob("metrics/b02*")]:
        path.unlink()
    rewritten(project, run, truncate)
    assert {"HIST01", "HIST02", "HIST04"} <= codes(project)
    project.commit("a host that went away")
    assert {"HIST01", "HIST02", "HIST04"} <= codes(project)


@pytest.mark.parametrize("committed_closed", [False, True])
def test_an_open_run_that_git_knows_cannot_be_cut_shorter_before_it_is_closed(
    project: Any, codes: Callable[[Any], set[str]], committed_closed: bool
) -> None:
    """Three boots came home and were committed; two of them are to be all there was."""
    run = cut(project, whole_boots=3)
    project.commit("what came home")
    text = run.events.read_bytes()
    shorter = closed_run.cut_short(project.root / "aside" / "records" / "data" / "run-3").events
    lines = len(shorter.read_bytes().splitlines())
    run.events.write_bytes(b"".join(text.splitlines(keepends=True)[:lines]))
    closed_run.closed(run)
    if committed_closed:
        project.commit("closed")
    assert "HIST02" in codes(project)


def test_an_open_run_that_git_knows_may_be_closed(
    project: Any, codes: Callable[[Any], set[str]]
) -> None:
    run = cut(project)
    project.commit("what came home")
    closed_run.closed(run)
    assert codes(project) == {"CLOSE01", "CLOSE02"}
    project.commit("closed")
    assert codes(project) == {"CLOSE01", "CLOSE02"}


def test_a_host_that_measured_another_run_afterwards_was_not_gone(project: Any) -> None:
    """The run is closed that began first on a boot of its host; the other one began later."""
    first, second = sorted(("run-3", "run-4"), key=sealed_run.begins_ns)
    closed_run.closed(cut(project, first))
    project.add_run(second, sealed_run.Shape(edit=closed_run.gone_host))
    (finding,) = [f for f in findings(project) if f.code == "TIME02"]
    assert f"run {first}" in finding.message
    assert finding.got.startswith(f"{second} began at ")
    assert {f.code for f in findings(project)} == {"CLOSE01", "CLOSE02", "TIME02"}


def test_a_host_that_measured_before_may_be_gone(project: Any) -> None:
    first, second = sorted(("run-3", "run-4"), key=sealed_run.begins_ns)
    project.add_run(first, sealed_run.Shape(edit=closed_run.gone_host))
    closed_run.closed(cut(project, second))
    assert {f.code for f in findings(project)} == {"CLOSE01", "CLOSE02"}


def test_two_closed_runs_that_overlap_are_one_under_two_names(project: Any) -> None:
    run = cut(project)
    closed_run.closed(run)
    shutil.copytree(run.path, project.data / "run-9")
    other = RunDirectory(project.data / "run-9")

    def renamed(events: Events) -> None:
        events[0]["value"]["run_id"] = "run-9"

    runs = project.data / RUNS_NAME
    runs.write_text(runs.read_text() + str(Leaf("run-9", Digest.of(b"x"))) + "\n")
    rewritten(project, other, renamed)
    assert "TIME01" in {f.code for f in findings(project)}


def test_its_remedy_is_told_where_a_run_is_open(project: Any) -> None:
    cut(project)
    (finding,) = findings(project)
    assert "where it was begun: kit reproduce --run RUN_ID" in finding.remedy
    assert "elsewhere: kit fetch-records" in finding.remedy
    assert "kit close RUN_ID" in finding.remedy


def test_nothing_of_an_open_run_that_was_being_closed_is_lost(project: Any) -> None:
    """The kit was stopped between its event and the seal: closing again completes it."""
    run = cut(project)
    closed_run.closed(run)
    (run.path / "seal.json").unlink()
    runs = project.data / RUNS_NAME
    leaves = parse_runs(runs.read_text())[:-1]
    runs.write_text("".join(f"{leaf}\n" for leaf in leaves))
    (project.data / CHECKPOINT_NAME).write_text(str(Checkpoint.of(leaves)))
    assert {f.code for f in findings(project)} == {"CKPT08"}
    before = run.events.read_bytes()
    assert closed_run.closed(run).listed
    assert run.events.read_bytes() == before
    assert {f.code for f in findings(project)} == {"CLOSE01", "CLOSE02"}
