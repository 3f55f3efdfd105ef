"""The events of a run: their types, their fields, and the history of both.

Invariant: an event type or key that is not here is an error, in writing and in reading.

History
  1 (2026-11-30): first version. Added since, left out at its default: prompts.digest,
    run.started.blocks, run.resumed.cache_gone, run.ended.left_out, plan.estimates.setup_s,
    plan.bounds.power_cap_ppm, arm.blocks, arm.first_boot_s, window.client, host.observed
    facts.gpus.compute_capability and facts.processors.

Types of event added since: scheduler.observed, run.closed.

A field added to a version that has records carries metadata "since" and a default, and is written
only where it differs from it (records/decode.py): sealed runs, and the digests of their plans, stay
as they are.

Runs may be analysed together when `format`, `plan_digest` and `harness_digest` of their
`run.started` agree; the binding, the driver and the host are strata, never pooled silently.
Fields called `facts` hold what a probe of that name reported, keys as in its dataclass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from records.decode import from_object, to_object
from records.digest import Digest
from records.errors import FormatError
from records.measurement import ClientReport, Request
from records.plan import Plan, require_blocks

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Clock:
    """One reading of CLOCK_MONOTONIC and CLOCK_REALTIME together, and which boot of the host."""

    monotonic_ns: int
    realtime_ns: int
    host_boot: str


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The head of every run. `synthetic`: the engine was the reference server, not an engine.

    `blocks`: those of the plan's blocks that this run carries out; left out where it is all.
    """

    TYPE: ClassVar[str] = "run.started"
    format: int
    run_id: str
    synthetic: bool
    plan: Plan
    plan_digest: Digest
    harness_digest: Digest
    python: str
    clock: Clock
    blocks: tuple[int, ...] = field(default=(), metadata={"since": 2})

    def __post_init__(self) -> None:
        require_blocks(self.plan, self.blocks)


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The harness came back to an unfinished run. `interrupted`: the boot that was under way.

    `cache_gone`: the warm cache that the run had begun to use was not there any more, be it filled
    or carried; left out where it was.
    """

    TYPE: ClassVar[str] = "run.resumed"
    harness_digest: Digest
    interrupted: str
    clock: Clock
    cache_gone: bool = field(default=False, metadata={"since": 2})


@dataclass(frozen=True, slots=True)
class JournalRepaired:
    """A torn last line was cut off: how long it was, and the digest of what was cut."""

    TYPE: ClassVar[str] = "journal.repaired"
    dropped_bytes: int
    dropped_digest: Digest


@dataclass(frozen=True, slots=True)
class HostObserved:
    """Host facts at `phase`: "start", "resume" or "end".

    `compute_capability` of each of `gpus`, among the facts, is what nvidia-smi told; left out
    where it told none, and in runs from before it was asked.

    `processors`, among the facts of "start" and "resume", holds times of a fixed piece of work
    (`addends` added squares in an interpreter's loop): of `engine`'s processors one after the other
    (`alone`) and all at once (`together`), each with its number, `cpu`, and `times_ns`; and of
    `pairs`, `one` of the engine's and `other` of the client's, each alone and both. Empty `engine`
    or `client`: the kernel chose among all. `places`: siblings, package and node of each, in the
    kernel's words. Left out in runs from before they were timed, and where a host forbids it.
    """

    TYPE: ClassVar[str] = "host.observed"
    phase: str
    host_id: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SchedulerObserved:
    """The allocation that a scheduler gave the harness, after each `host.observed`, same phase.

    `job`: its number, with the task's in an array. `node`: a salted id of the node's name.
    `restarts`: how often the job was queued again, -1 where the scheduler does not say. `source`:
    which of the scheduler's commands told the figures among the facts; "none" where none could.
    """

    TYPE: ClassVar[str] = "scheduler.observed"
    phase: str
    scheduler: str
    job: str
    node: str
    restarts: int
    source: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EngineBound:
    """What the engine is, bound by digest, at `phase` "before" or "after" the boots.

    runtime "wheels": `digest` covers the RECORD of every installed distribution, as told in
    remote/binding.py, `lock_digest` the lock it was installed from. "docker" and "apptainer":
    `digest` is the image's index, `lock_digest` the image lock; of an image file of Apptainer the
    facts hold its own digest, `sif_digest`, beside.
    """

    TYPE: ClassVar[str] = "engine.bound"
    phase: str
    runtime: str
    digest: Digest
    lock: str
    lock_digest: Digest
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelBound:
    """The files of one model on the host, each by digest."""

    TYPE: ClassVar[str] = "model.bound"
    phase: str
    model: str
    files: dict[str, Digest]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The client against the reference server at one concurrency: what this host does to stamps.

    Errors are receive stamp minus the server's own send stamp. `capacity_chunks_per_s` is the
    client's: chunks over busiest CPU time, extrapolated to one full core. The error to reckon with
    is `error_p99_ns` where `report.stamps` is "kernel". Where the client stamped it is
    `error_max_ns`, for then nothing in a window tells how late the window's own stamps are.
    """

    TYPE: ClassVar[str] = "client.calibrated"
    concurrency: int
    step_gap_ns: int
    chunks: int
    error_p50_ns: int
    error_p99_ns: int
    error_max_ns: int
    server_late_p99_ns: int
    capacity_chunks_per_s: int
    report: ClientReport

    @property
    def bound_ns(self) -> int:
        """The error to reckon with, as above."""
        return self.error_p99_ns if self.report.stamps == "kernel" else self.error_max_ns


@dataclass(frozen=True, slots=True)
class BootStarted:
    """A boot begins: which one, and the exact command and environment (secrets redacted).

    `boot` is the planned boot's id, with ".2" and so on for the attempts after an interrupted one,
    or "prime-<arm>" with `planned` "" for the unmeasured boot that fills a warm arm's caches.
    """

    TYPE: ClassVar[str] = "boot.started"
    boot: str
    planned: str
    attempt: int
    arm: str
    argv: tuple[str, ...]
    env: dict[str, str]
    port: int
    compile_cache: dict[str, Any]
    clock: Clock


@dataclass(frozen=True, slots=True)
class BootHealthy:
    """The engine answered its health path `after_ns` after its start."""

    TYPE: ClassVar[str] = "boot.healthy"
    boot: str
    after_ns: int


@dataclass(frozen=True, slots=True)
class BootWarmed:
    """Warm-up ended: `jit_lines` logged by round; `quiet` when the last round logged none."""

    TYPE: ClassVar[str] = "boot.warmed"
    boot: str
    jit_lines: tuple[int, ...]
    quiet: bool
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class EngineDecided:
    """What the engine decided, read from its own log: backends, graph mode, cache, versions."""

    TYPE: ClassVar[str] = "engine.decided"
    boot: str
    version: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WindowStarted:
    """A window begins, `server_age_ns` after the engine became healthy."""

    TYPE: ClassVar[str] = "window.started"
    boot: str
    window: str
    server_age_ns: int


@dataclass(frozen=True, slots=True)
class WindowRequests:
    """A batch of the window's requests, in order of index."""

    TYPE: ClassVar[str] = "window.requests"
    boot: str
    window: str
    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class Counters:
    """Server counters over a window (after minus before); -1: the server has no such counter."""

    drafts: int
    draft_tokens: int
    accepted_tokens: int
    generation_tokens: int
    prompt_tokens: int
    prefix_cache_hits: int
    preemptions: int


@dataclass(frozen=True, slots=True)
class WindowEnded:
    """A window ended. `void`: why it must not be used, one reason each; empty when it may be.

    `metrics` names the compressed /metrics pages before and after; `facts` what the samplers saw.
    `busiest_thread`, among them, is the engine's thread with most time on a processor, `on_cpu_ns`,
    with its time on a run queue, `waiting_ns`, how often it was given a processor, `timeslices`,
    and on which it ran last before and after, `processors`; null where the kernel does not tell,
    left out in runs from before it was read.
    """

    TYPE: ClassVar[str] = "window.ended"
    boot: str
    window: str
    start_ns: int
    report: ClientReport
    counters: Counters
    metrics: dict[str, Digest]
    jit_lines: tuple[str, ...]
    steal_ppm: int
    facts: dict[str, Any]
    void: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BootEnded:
    """A boot ended, with its cause and what stopping left behind.

    outcome: "completed"; "failed" (the engine's doing: not tried again); "interrupted" (the
    harness or the host stopped: tried again on resume).
    """

    TYPE: ClassVar[str] = "boot.ended"
    boot: str
    outcome: str
    cause: str
    detail: str
    stop: dict[str, Any]
    logs: dict[str, Digest]


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Every planned boot has completed or failed. `modules`: all that the harness imported.

    `left_out`: blocks that were not begun, because the time the host was there for would have ended
    in them. They are the last of the run's blocks, whole, and left out before any of their boots.
    """

    TYPE: ClassVar[str] = "run.ended"
    completed: int
    failed: int
    modules: tuple[str, ...]
    clock: Clock
    left_out: tuple[int, ...] = field(default=(), metadata={"since": 2})


@dataclass(frozen=True, slots=True)
class RunClosed:
    """The host is gone for good: what came home of the run is all there will be. No run.ended.

    Appended at home, where the host's clock cannot be read: `t_ns` is that of the event before,
    `realtime_ns` CLOCK_REALTIME at home. `reason`: how the host went, in words. `kit`: the version
    that closed the run. `came_home`: how many events there are before this one. `interrupted`: the
    boot that was under way, "" for none. `not_bound_after`: "engine" and the models of which no
    binding "after" the last window came home, so that only the one before is known.
    """

    TYPE: ClassVar[str] = "run.closed"
    # What every list of runs calls such a run.
    WORD: ClassVar[str] = "closed: host gone"
    reason: str
    kit: str
    realtime_ns: int
    came_home: int
    interrupted: str
    not_bound_after: tuple[str, ...]


EVENTS: dict[str, type[Any]] = {
    event.TYPE: event
    for event in (
        RunStarted,
        RunResumed,
        JournalRepaired,
        HostObserved,
        SchedulerObserved,
        EngineBound,
        ModelBound,
        Calibrated,
        BootStarted,
        BootHealthy,
        BootWarmed,
        EngineDecided,
        WindowStarted,
        WindowRequests,
        WindowEnded,
        BootEnded,
        RunEnded,
        RunClosed,
    )
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """One decoded line: its place, its time (CLOCK_MONOTONIC) and the event it carries."""

    seq: int
    t_ns: int
    event: Any


def encode(event: Any) -> tuple[str, Any]:
    """The type name and plain value of an event."""
    return event.TYPE, to_object(event)


def decode(value: Any, where: str = "$") -> Envelope:
    """Decode a parsed line strictly; FormatError names the unknown type, key or wrong value."""
    if not isinstance(value, dict) or sorted(value) != ["prev", "seq", "t_ns", "type", "value"]:
        raise FormatError(f"{where}: an event has exactly prev, seq, t_ns, type and value")
    name = value["type"]
    if not isinstance(name, str) or name not in EVENTS:
        raise FormatError(f"{where}: unknown event type {name!r}")
    for key in ("seq", "t_ns"):
        if type(value[key]) is not int:
            raise FormatError(f"{where}: {key} is not an integer")
    return Envelope(value["seq"], value["t_ns"], from_object(EVENTS[name], value["value"], where))
