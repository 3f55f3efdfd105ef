"""What stands in a record steers no terminal, whichever verb prints it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sealed_run

from records import schema

# Clear the screen, set its title, turn the order over; C1 and Cf, which click lets through.
HOSTILE = "\x1b[2J\x1b]0;mine\x07\u202e\x9b31m\r"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run whose engine, host and harness said whatever they liked."""

    def edit(event: Any) -> Any:
        if isinstance(event, schema.BootEnded):
            return replace(event, cause=f"no memory{HOSTILE}", detail=HOSTILE)
        if isinstance(event, schema.EngineDecided):
            return replace(event, version=f"0.29.0{HOSTILE}")
        if isinstance(event, schema.HostObserved):
            return replace(event, facts={**event.facts, "kernel": HOSTILE})
        return event

    data = tmp_path_factory.mktemp("hostile") / "data"
    shape = sealed_run.Shape(fail_last=True, edit=edit)
    plan = sealed_run.small_plan(blocks=2, requests=4)
    sealed_run.list_run(data, sealed_run.make_run(data / "run-1", plan, shape))
    return data


@pytest.mark.parametrize(
    "arguments",
    [
        ("analyze", "run-1"),
        ("analyze", "run-1", "--json"),
        ("status", "run-1"),
        ("status", "run-1", "--json"),
        ("audit",),
        ("audit", "--json"),
        ("trace", "--reverse", "run-1"),
        ("minutes", "run-1"),
        ("compare", "run-1"),
        ("compare", "run-1", "--json"),
        ("export", "in-toto", "run-1"),
    ],
    ids=" ".join,
)
def test_verb(records: Path, arguments: tuple[str, ...]) -> None:
    home = {"KIT_DATA": str(records), "KIT_OUT": str(records.parent / "out")}
    done = subprocess.run(
        [sys.executable, "-m", "kit.main", *arguments],
        env={**os.environ, **home, "KIT_HOME": str(records.parent / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert said
    assert said.replace("\n", "").isprintable()
