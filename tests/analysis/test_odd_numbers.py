"""Numbers of a journal that no measurement gives end in a word on them, in tables and audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sealed_run

from analysis.reading import read_run
from analysis.tables import study_tables
from audit.runner import audit
from records import schema
from records.errors import FormatError

_MOST = 2**63 - 1


def no_time(event: Any) -> Any:
    if not isinstance(event, schema.WindowEnded):
        return event
    return replace(event, report=replace(event.report, wall_ns=0))


def of_each_request(**values: Any) -> Callable[[Any], Any]:
    def edit(event: Any) -> Any:
        if not isinstance(event, schema.WindowRequests):
            return event
        return replace(event, requests=tuple(replace(r, **values) for r in event.requests))

    return edit


@pytest.mark.parametrize(
    ("edit", "analysed"),
    [
        pytest.param(no_time, False, id="a window without length"),
        pytest.param(of_each_request(sent_ns=_MOST), True, id="sent at the end of time"),
        pytest.param(
            of_each_request(chunk_ns=(1, 2), chunk_tokens=(_MOST, _MOST)), False, id="all tokens"
        ),
    ],
)
def test_it_is_said(tmp_path: Path, edit: Callable[[Any], Any], *, analysed: bool) -> None:
    data = tmp_path / "records" / "data"
    plan = sealed_run.small_plan(1, 2)
    run = sealed_run.make_run(data / "run-1", plan, sealed_run.Shape(edit=edit))
    sealed_run.list_run(data, run)
    assert any(f.severity == "error" for f in audit(tmp_path, data).findings)
    if analysed:
        assert study_tables([read_run(run)])
    else:
        with pytest.raises(FormatError):
            study_tables([read_run(run)])
