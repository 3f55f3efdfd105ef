"""Sealed runs of hosts, GPUs, spreads and shares that a test names, through tests/sealed_run.py.

Invariant: rates follow from the length of each window, which is the only thing changed of it: base
length times the factor asked for, so that a ratio of rates is a ratio of factors. The response that
ends last ends so much later, its tokens do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from analysis.claiming.reading import StudyRun, read_study_run
from records import schema
from records.load import Load
from records.measurement import Request
from records.plan import Arm, Plan, PlannedBoot, boot_order
from tests.sealed_run import MS, Shape, make_run, small_plan

# Factor of a window's length, at least 1, by planned boot; of one block more than of another.
Lengths = Callable[[PlannedBoot], float]
_DRAFT = '{"method":"draft_model","model":"drafter","num_speculative_tokens":4}'
L4_ARMS = (
    "draft-bf16-graph",
    "draft-bf16-eager",
    "ngram-bf16-graph",
    "none-bf16-graph",
    "draft-fp8-graph",
    "draft-bf16-target-pinned",
)


def l4_plan(blocks: int = 12, arms: Sequence[str] = L4_ARMS) -> Plan:
    """A plan called l4-confounds with arms that claims name, small in everything else."""
    plan = small_plan(blocks, requests=4)
    made = tuple(
        Arm(
            id_,
            "target",
            "" if id_.startswith("none") else _DRAFT,
            (),
            {},
            {"speculation": id_},
            "none",
        )
        for id_ in arms
    )
    window = replace(plan.windows[0], id="c64", load=Load("closed", 2, requests=4))
    return replace(
        plan, id="l4-confounds", arms=made, windows=(window,), thresholds_ms=(20, 40, 75)
    )


@dataclass(frozen=True)
class Made:
    """What a made run is to look like. `gpu` "": a host without one.

    `capability`: compute capability as recorded; "" as in records from before it was asked for.
    `target`, `draft`: backend by arm, where not as the engine's log of tests/sealed_run.py has it.
    `decided`: other facts of the engine's log by arm, as dotted names.
    `outcomes`: planned boot -> how it ended, where it did not complete; "missing" leaves it out.
    `begun_s`: CLOCK_REALTIME of every boot; 0 leaves it.
    """

    host: str = "host-1"
    gpu: str = "NVIDIA L4"
    capability: str = ""
    driver: str = "580.1"
    version: str = "0.29.0"
    lengths: Lengths = lambda _: 1.0
    accepted: Lengths = lambda _: 1.0
    target: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    draft: Mapping[str, str] = field(default_factory=dict)
    decided: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    outcomes: Mapping[str, str] = field(default_factory=dict)
    blocks: tuple[int, ...] = ()
    begun_s: int = 0
    shape: Shape = field(default_factory=Shape)


def made_run(directory: Path, plan: Plan, made: Made) -> StudyRun:
    """Make and read one such run; `directory`'s name is its id."""
    planned = {boot.id: boot for boot in boot_order(plan)}
    counts = {window.id: window.load.requests for window in plan.windows}
    arms = {boot.id: boot.arm for boot in planned.values()}

    def known(boot: str) -> PlannedBoot | None:
        return planned.get(boot.partition(".")[0])

    def edit(event: Any) -> Any:
        boot = known(event.boot) if hasattr(event, "boot") else None
        if boot is not None:
            outcome = made.outcomes.get(boot.id, "")
            if (made.blocks and boot.block not in made.blocks) or outcome == "missing":
                return None
            if isinstance(event, schema.WindowRequests):
                return _lasting(event, counts[event.window] - 1, made.lengths(boot))
            event = _of_boot(event, boot, arms[boot.id], outcome, made)
        if isinstance(event, schema.RunStarted):
            return replace(event, blocks=made.blocks)
        if isinstance(event, schema.HostObserved):
            gpu = {"name": made.gpu}
            if made.capability:
                gpu["compute_capability"] = made.capability
            gpus = [gpu] if made.gpu else []
            facts = {**event.facts, "driver": made.driver, "cuda": "13.0", "gpus": gpus}
            return replace(event, host_id=made.host, facts=facts)
        return event

    return read_study_run(make_run(directory, plan, replace(made.shape, edit=edit)))


def _lasting(event: schema.WindowRequests, last: int, length: float) -> schema.WindowRequests:
    """The window of tests/sealed_run.py is a millisecond longer than its last request's end."""

    def one(request: Request) -> Request:
        wall_ns = request.sent_ns + request.end_ns + MS
        later = round(wall_ns * length) - wall_ns if request.index == last else 0
        return replace(request, end_ns=request.end_ns + later)

    return replace(event, requests=tuple(map(one, event.requests)))


def _of_boot(event: Any, boot: PlannedBoot, arm: str, outcome: str, made: Made) -> Any:
    if isinstance(event, schema.BootStarted) and made.begun_s:
        clock = replace(event.clock, realtime_ns=made.begun_s * 10**9)
        return replace(event, clock=clock)
    if isinstance(event, schema.EngineDecided):
        facts = dict(event.facts)
        if arm in made.target:
            backend, flash = made.target[arm]
            facts["target"] = {
                **facts["target"], "backend": backend, "flash_attention_version": flash
            }  # fmt: skip
        if arm in made.draft:
            facts["draft"] = {**facts["draft"], "backend": made.draft[arm]}
        for name, value in made.decided.get(arm, {}).items():
            part, _, key = name.rpartition(".")
            facts |= {part: {**facts[part], key: value}} if part else {key: value}
        return replace(event, version=made.version, facts=facts)
    if isinstance(event, schema.WindowEnded):
        wall_ns = round(event.report.wall_ns * made.lengths(boot))
        counters = event.counters
        if counters.drafts > 0:
            accepted = round(1000 * counters.accepted_tokens * made.accepted(boot))
            counters = replace(counters, drafts=1000 * counters.drafts, accepted_tokens=accepted)
        return replace(event, report=replace(event.report, wall_ns=wall_ns), counters=counters)
    if isinstance(event, schema.BootEnded) and outcome:
        return replace(event, outcome=outcome, cause="as the test wants it")
    return event
