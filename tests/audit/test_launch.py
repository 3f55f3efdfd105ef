"""Runs that were started otherwise than their plan asks, or with another engine."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sealed_run import LOCK_TEXT, Shape, small_plan

from audit.checks.launch import _same
from records import schema
from records.digest import Digest

DRAFTED = '{"method":"draft_model","model":"/models/d","num_speculative_tokens":%d}'


def plan_with_options() -> Any:
    """The arm without speculation has options and a variable."""
    plan = small_plan()
    draft, none = plan.arms
    none = replace(none, args=("--max-num-seqs", "8"), env={"VLLM_CPU_KVCACHE_SPACE": "1"})
    return replace(plan, arms=(draft, none))


def of_boots(arm: str, **fields: Any) -> Shape:
    """Every boot of an arm with other fields; a function gets the boot."""

    def edit(event: Any) -> Any:
        if not isinstance(event, schema.BootStarted) or event.arm != arm:
            return event
        return replace(event, **{k: v(event) if callable(v) else v for k, v in fields.items()})

    return Shape(edit=edit)


LAUNCHES: dict[str, tuple[Shape, set[str]]] = {
    "as planned": (Shape(), set()),
    "without an option": (of_boots("none", argv=lambda b: b.argv[:-1]), {"LAUNCH02"}),
    "another value": (of_boots("none", argv=lambda b: (*b.argv[:-1], "16")), {"LAUNCH02"}),
    "one option more": (of_boots("none", argv=lambda b: (*b.argv, "--fast")), {"LAUNCH02"}),
    "no command": (of_boots("none", argv=()), {"LAUNCH02"}),
    "no draft": (of_boots("draft", argv=lambda b: b.argv[:-2]), {"LAUNCH02"}),
    "other draft": (of_boots("draft", argv=lambda b: (*b.argv[:-1], DRAFTED % 5)), {"LAUNCH02"}),
    "draft by path": (of_boots("draft", argv=lambda b: (*b.argv[:-1], DRAFTED % 4)), set()),
    "draft unread": (of_boots("draft", argv=lambda b: (*b.argv[:-1], "{")), {"LAUNCH02"}),
    "no variable": (of_boots("none", env={}), {"LAUNCH03"}),
    "variable": (of_boots("none", env={"VLLM_CPU_KVCACHE_SPACE": "4"}), {"LAUNCH03"}),
    "attempt left out": (of_boots("none", attempt=2), {"LAUNCH01"}),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_launch(project, codes, name):
    shape, want = LAUNCHES[name]
    project.add_run("run-3", shape, plan_with_options())
    assert codes(project) == want


def test_other_version(project, codes):
    def edit(event: Any) -> Any:
        decided = isinstance(event, schema.EngineDecided)
        return replace(event, version="0.30.0") if decided else event

    project.add_run("run-3", Shape(edit=edit))
    assert codes(project) == {"ENGINE05"}


def test_other_files_than_the_lock_installs(project, codes):
    known = {"lock_digest": str(Digest.of(LOCK_TEXT)), "binding_digest": str(Digest.of(b"other"))}
    path = project.root / "images" / "wheels-cpu.binding.json"
    path.write_text(json.dumps(known | {"lock_digest": str(Digest.of(b"another lock"))}))
    assert codes(project) == set()
    path.write_text(json.dumps(known))
    assert codes(project) == {"BIND08"}


def test_redacted_parts_alone_may_differ():
    assert _same("<models>/x", "/srv/models/x")
    assert _same("a.b", "a.b")
    assert not _same("a.b", "axb")
    assert not _same("<models>/y", "/srv/models/x")
