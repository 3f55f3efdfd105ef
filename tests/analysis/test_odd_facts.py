"""Facts of any shape: whoever audits, tells or exports a run reads what is left of it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sealed_run

from analysis.facts import integer, integers, part, parts
from analysis.report.run_views import gpu_names
from audit.runner import audit
from kit.main import main
from records import schema

_MOST = 2**63 - 1
_ODD = {
    "null": None,
    "a number": _MOST,
    "a negative number": -_MOST,
    "a text": "x",
    "a truth": True,
    "a list of nulls": [None],
    "a list of numbers": [_MOST],
    "a list of lists": [["a"]],
    "an object": {"a": 1},
    "objects of nulls": [{"name": None, "sm_clock_mhz": None, "reasons": None, "uuid": None}],
    "objects of lists": [{"name": [], "sm_clock_mhz": [[]], "reasons": [[]], "uuid": []}],
}
_OF_A_HOST = (
    *("gpus", "cpu", "memory", "cores_online", "driver", "cuda", "os", "kernel", "container"),
    *("governor", "python", "processors"),
)


def shaped(*, inside: bool) -> sealed_run.Shape:
    """Facts of hosts and windows are each of _ODD in turn, or every value that they hold is."""
    turn = itertools.cycle(_ODD.values())

    def edit(event: Any) -> Any:
        if isinstance(event, schema.HostObserved):
            facts = dict(zip(_OF_A_HOST, turn, strict=False))
            if inside:
                gpus = [{"name": o, "compute_capability": o, "memory_total_mib": o} for o in _ODD]
                facts |= {"cpu": {"model": None}, "memory": {"total_bytes": "x"}, "gpus": gpus}
            return replace(event, facts={**event.facts, **facts})
        if isinstance(event, schema.WindowEnded):
            odd = next(turn)
            if not inside:
                return replace(event, facts={"gpu": odd, "host": odd})
            trace = {"uuid": odd, "sm_clock_mhz": odd, "reasons": odd}
            traces = odd if isinstance(odd, (str, bool)) else [trace, odd]
            counts = dict.fromkeys(("new_ecc_errors", "new_xid_errors", "foreign_processes"), odd)
            gpu = {"traces": traces, **counts}
            return replace(event, facts={"gpu": gpu, "host": {"pace_ns": odd}})
        if isinstance(event, schema.EngineDecided):
            odd = next(turn)
            return replace(event, facts={"target": odd, "draft": {"backend": odd}})
        return event

    return sealed_run.Shape(edit=edit)


@pytest.mark.parametrize("inside", [False, True], ids=["whole", "inside"])
def test_every_verb_reads_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, inside: bool
) -> None:
    data, out = tmp_path / "records" / "data", tmp_path / "out"
    for name, path in (("HOME", tmp_path / ".kit"), ("DATA", data), ("OUT", out)):
        monkeypatch.setenv(f"KIT_{name}", str(path))
    plan = sealed_run.small_plan(blocks=3, requests=2)
    run = sealed_run.make_run(data / "run-1", plan, shaped(inside=inside))
    sealed_run.list_run(data, run)
    assert audit(tmp_path, data).findings
    assert main(["analyze", "run-1"]) == 0
    assert main(["report", "run-1", "--out", str(tmp_path / "report.html")]) == 0


@pytest.mark.parametrize("odd", _ODD.values(), ids=_ODD)
def test_a_host_of_any_facts_is_told(odd: Any) -> None:
    facts = dict.fromkeys(_OF_A_HOST, odd)
    assert gpu_names(facts)
    assert gpu_names({"gpus": [{"name": odd}]})
    assert part(facts, "cpu") in ({}, odd)
    assert all(isinstance(one, dict) for one in parts(facts, "gpus"))
    assert all(type(one) is int for one in integers(facts, "gpus"))
    assert integer(facts, "cpu") is None or isinstance(odd, int)
