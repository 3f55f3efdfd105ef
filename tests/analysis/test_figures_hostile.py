"""Words of an engine's log in a figure: drawn as they stand, whatever they hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.figures import study_figures
from analysis.figures.rendering import render
from analysis.reading import read_run
from records import schema
from tests.sealed_run import Shape, make_run, small_plan


@pytest.mark.parametrize("word", [r"$\nosuch{$", "\x1b[31m\x07", "\u6f22\u202e", "$a$ $b", "\n"])
def test_a_backend_of_any_name_is_drawn(
    tmp_path: Path, word: str, recwarn: pytest.WarningsRecorder
) -> None:
    def edit(event: Any) -> Any:
        if not isinstance(event, schema.EngineDecided):
            return event
        target = {**event.facts["target"], "backend": word}
        return replace(event, facts={**event.facts, "target": target})

    run = read_run(make_run(tmp_path / "run-1", small_plan(requests=2), Shape(edit=edit)))
    figure = next(one for one in study_figures([run]) if one.name == "decisions")
    assert not figure.absent
    assert render(figure, "svg").startswith(b"<?xml")
    assert not recwarn.list
