"""Runs that are consistent in every byte, but should not be: each gives its codes and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sealed_run import Shape, small_plan

from records import schema
from records.digest import Digest
from records.plan import boot_order

Edit = Callable[[Any], Any]
OTHER = Digest.of(b"something else")


def skip(kind: type, when: Callable[[Any], bool] = lambda _: True) -> Edit:
    """Drop the first event of a kind."""
    done: list[Any] = []

    def edit(event: Any) -> Any:
        if isinstance(event, kind) and not done and when(event):
            done.append(event)
            return None
        return event

    return edit


def change(kind: type, when: Callable[[Any], bool] = lambda _: True, **fields: Any) -> Edit:
    """Change fields of the first event of a kind."""
    done: list[Any] = []

    def edit(event: Any) -> Any:
        if isinstance(event, kind) and not done and when(event):
            done.append(event)
            return replace(event, **{k: v(event) if callable(v) else v for k, v in fields.items()})
        return event

    return edit


def always(kind: type, **fields: Any) -> Any:
    """Replace fields of every event of this kind."""
    return lambda event: replace(event, **fields) if isinstance(event, kind) else event


def report_with(**fields: Any) -> Callable[[Any], Any]:
    return lambda event: replace(event.report, **fields)


def without_first_request(event: Any) -> Any:
    return event.requests[1:]


def without_block_2(event: Any) -> Any:
    """The events of a run whose host goes back before its second block."""
    if getattr(event, "boot", "").startswith("b02"):
        return None
    if isinstance(event, schema.RunEnded):
        return replace(event, completed=event.completed // 2, left_out=(2,))
    return event


RUNS: dict[str, tuple[Shape, set[str]]] = {
    "the last block left out": (Shape(edit=without_block_2), set()),
    "the last block left out by a harness that came back": (
        Shape(interrupt_first=True, edit=without_block_2),
        {"COVER10"},
    ),
    "a block left out that had begun": (
        Shape(edit=change(schema.RunEnded, left_out=(2,))),
        {"COVER07", "COVER08"},
    ),
    "the first block left out": (
        Shape(edit=change(schema.RunEnded, left_out=(1,))),
        {"COVER07", "COVER08"},
    ),
    "synthetic": (Shape(synthetic=True), {"PLAN04"}),
    "plan digest": (Shape(edit=change(schema.RunStarted, plan_digest=OTHER)), {"PLAN01"}),
    "format": (Shape(edit=change(schema.RunStarted, format=2)), {"EVENT06"}),
    "no start": (Shape(edit=skip(schema.RunStarted)), {"EVENT05"}),
    "no end": (Shape(edit=skip(schema.RunEnded)), {"EVENT05"}),
    "foreign boot": (
        Shape(edit=change(schema.BootStarted, lambda e: e.planned, planned="b09-1-draft")),
        {"PLAN03", "COVER01", "COVER07"},
    ),
    "unbound engine": (
        Shape(edit=skip(schema.EngineBound, lambda e: e.phase == "before")),
        {"BIND01"},
    ),
    "unbound model": (
        Shape(edit=skip(schema.ModelBound, lambda e: e.phase == "before")),
        {"BIND01"},
    ),
    "container of no locked image": (
        Shape(edit=always(schema.EngineBound, runtime="docker")),
        {"BIND07"},
    ),
    "not bound after": (
        Shape(edit=skip(schema.EngineBound, lambda e: e.phase == "after")),
        {"BIND02"},
    ),
    "engine changed": (
        Shape(edit=change(schema.EngineBound, lambda e: e.phase == "after", digest=OTHER)),
        {"BIND03"},
    ),
    "model changed": (
        Shape(
            edit=change(
                schema.ModelBound,
                lambda e: e.phase == "after",
                files=lambda e: {**e.files, "config.json": OTHER},
            )
        ),
        {"BIND03", "BIND05"},
    ),
    "boot without end": (
        Shape(edit=skip(schema.BootEnded, lambda e: e.boot.startswith("b02-1"))),
        {"COVER01", "COVER02", "COVER07"},
    ),
    "boot left interrupted": (
        Shape(
            edit=change(schema.BootEnded, lambda e: e.boot.startswith("b02"), outcome="interrupted")
        ),
        {"COVER01", "COVER07", "COVER09"},
    ),
    "window without end": (Shape(edit=skip(schema.WindowEnded)), {"COVER03"}),
    "request missing": (
        Shape(edit=change(schema.WindowRequests, requests=without_first_request)),
        {"COUNT02", "COVER04", "COVER05", "VOID01"},
    ),
    "request twice": (
        Shape(
            edit=change(schema.WindowRequests, requests=lambda e: (*e.requests[1:], e.requests[1]))
        ),
        {"COVER04", "REQ03"},
    ),
    "report of fewer": (
        Shape(edit=change(schema.WindowEnded, report=report_with(planned=5, completed=5))),
        {"COVER04", "COVER05", "COVER06"},
    ),
    "totals": (Shape(edit=change(schema.RunEnded, completed=3)), {"COVER07"}),
    "not calibrated": (
        Shape(edit=skip(schema.Calibrated)),
        {"CALIB01", "VOID01"},
    ),
    "other step gap": (Shape(edit=change(schema.Calibrated, step_gap_ns=1)), {"CALIB02"}),
    "user stamps after kernel stamps": (
        Shape(edit=change(schema.WindowEnded, report=report_with(stamps="user"))),
        {"CALIB02"},
    ),
    "user stamps count with the largest error": (
        Shape(
            edit=change(
                schema.Calibrated, report=report_with(stamps="user"), error_max_ns=5_000_000
            )
        ),
        {"CALIB02", "VOID01"},
    ),
    "bad calibration": (
        Shape(edit=change(schema.Calibrated, error_p99_ns=5_000_000, error_max_ns=5_000_000)),
        {"VOID01"},
    ),
    "lag": (
        Shape(
            edit=change(schema.WindowEnded, report=report_with(lag_p99_ns=10**8, lag_max_ns=10**8))
        ),
        {"VOID01"},
    ),
    "jit": (Shape(edit=change(schema.WindowEnded, jit_lines=("kernel",))), {"VOID01"}),
    "steal": (Shape(edit=change(schema.WindowEnded, steal_ppm=900_000)), {"VOID01"}),
    "counters": (
        Shape(
            edit=change(
                schema.WindowEnded, counters=lambda e: replace(e.counters, generation_tokens=1)
            )
        ),
        {"COUNT01", "VOID01"},
    ),
    "voided at will": (
        Shape(edit=change(schema.WindowEnded, void=("host-steal: too slow for my taste",))),
        {"VOID02"},
    ),
    "steps in one chunk": (
        Shape(
            edit=change(
                schema.WindowEnded,
                lambda e: "draft" in e.boot,
                counters=lambda e: replace(e.counters, accepted_tokens=1),
            )
        ),
        {"COUNT01", "COUNT02", "VOID03"},
    ),
    "other harness": (
        Shape(interrupt_first=True, edit=change(schema.RunResumed, harness_digest=OTHER)),
        {"PLAN05"},
    ),
    "engine loaded": (
        Shape(edit=change(schema.RunEnded, modules=("records", "remote", "torch", "torch.nn"))),
        {"ENGINE02"},
    ),
    "other log": (
        Shape(edit=change(schema.BootEnded, logs=lambda e: dict.fromkeys(e.logs, OTHER))),
        {"SEAL06"},
    ),
    "other name": (Shape(edit=change(schema.RunStarted, run_id="run-7")), {"SEAL05"}),
    "secret": (
        Shape(edit=change(schema.BootStarted, env={"HF_TOKEN": "hf_" + "a" * 34})),
        {"HYGIENE01"},
    ),
    "open": (Shape(seal=False), {"CKPT08"}),
}


@pytest.mark.parametrize("name", RUNS)
def test_consistent_but_wrong_runs(project, codes, name):
    shape, want = RUNS[name]
    project.add_run("run-3", shape)
    assert codes(project) == want


def test_boots_out_of_order(project, codes):
    """Two blocks, in the order of another seed."""
    plan = small_plan()
    turned = next(
        other
        for other in (replace(plan, seed=seed) for seed in range(100))
        if [b.arm for b in boot_order(other)] == [b.arm for b in boot_order(plan)][::-1]
    )
    project.add_run(
        "run-3", Shape(edit=change(schema.RunStarted, plan=turned, plan_digest=turned.digest)), plan
    )
    assert codes(project) >= {"PLAN03"}


def test_later_block_first(project, codes):
    order = [b.id for b in boot_order(small_plan())]
    swap = {order[0]: order[2], order[2]: order[0]}
    arms = {b.id: b.arm for b in boot_order(small_plan())}
    if arms[order[0]] != arms[order[2]]:
        swap = {order[0]: order[3], order[3]: order[0]}

    def edit(event: Any) -> Any:
        if isinstance(event, schema.BootStarted) and event.planned in swap:
            return replace(event, planned=swap[event.planned])
        return event

    project.add_run("run-3", Shape(edit=edit))
    assert codes(project) == {"PLAN02"}
