"""One strict pass over a journal: every line decoded, requests reduced to what checks need.

Invariant: a line that does not decode becomes a problem with its number, never an exception, so
that one broken line hides nothing that follows it; after a thousand of them the file is given up.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from audit.own_steps import cut_off
from audit.request_faults import RequestFault, faults
from records import canonical, schema
from records.chain import MAX_LINE_BYTES
from records.errors import FormatError
from records.plan import Arm, Plan
from records.run_directory import is_regular
from records.schema import Envelope, WindowRequests

_MOST_FAULTS = 20
# A file of nothing but line ends would fill the memory with what is wrong with it.
_MOST_PROBLEMS = 1_000


@dataclass(frozen=True, slots=True)
class LineProblem:
    """A line (from 1) that is not canonical JSON, or not an event of the format."""

    line: int
    kind: Literal["canonical", "event", "seq"]
    message: str


@dataclass(frozen=True, slots=True)
class Event:
    """A decoded line and its number, from 1."""

    line: int
    envelope: Envelope

    @property
    def value(self) -> Any:
        """The event itself."""
        return self.envelope.event


@dataclass(slots=True)
class RequestCount:
    """What the requests of one window add up to, and the line of the last batch.

    `sent_ns` and `end_ns` count from the start of the window, for requests that were sent; `faults`
    keeps the first few contradictions, so that a spoilt file cannot fill the memory.
    `unlisted`: requests of several tokens that came without a list of their steps, with so many
    `unlisted_tokens` after the first, and `unlisted_alone` of them with one token in the last
    chunk. `over_least`, `over_most`: by how much the steps and accepted tokens of a list exceed the
    tokens after the first, over the requests with one. `cut_off`: accepted tokens that the last
    chunks lost, by those lists; `not_steps`: lists that are not of their request's chunks
    (audit/own_steps.py). `prompt_tokens` is -1 where the server did
    not say of each request. `whole_ns`, `first_ns`: how long the completed requests took in all, to
    their end and to their first chunk. `ramp_last_ns`, `steady_first_ns`: when the last request of
    the ramp was sent, and the first that is none; -1.
    """

    line: int = 0
    indices: array[int] = field(default_factory=lambda: array("q"))
    outcomes: dict[str, int] = field(default_factory=dict)
    chunks: int = 0
    merged: int = 0
    short: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    steps: int = 0
    accepted: int = 0
    unlisted: int = 0
    unlisted_tokens: int = 0
    unlisted_alone: int = 0
    over_least: int = 0
    over_most: int = 0
    cut_off: int = 0
    not_steps: int = 0
    cached_tokens: int = 0
    ramp_last_ns: int = -1
    steady_first_ns: int = -1
    whole_ns: int = 0
    first_ns: int = 0
    sent_ns: array[int] = field(default_factory=lambda: array("q"))
    end_ns: array[int] = field(default_factory=lambda: array("q"))
    faults: list[RequestFault] = field(default_factory=list)

    def add(self, line: int, batch: WindowRequests, least_tokens: int) -> None:
        """Count one batch; `least_tokens`: fewer than that in a completed request is short."""
        self.line = line
        for request in batch.requests:
            received = sum(request.chunk_tokens)
            self.indices.append(request.index)
            self.outcomes[request.outcome] = self.outcomes.get(request.outcome, 0) + 1
            self.chunks += len(request.chunk_ns)
            self.merged += len(request.merged)
            self.tokens += received
            known = self.prompt_tokens >= 0 and request.prompt_tokens >= 0
            self.prompt_tokens = self.prompt_tokens + request.prompt_tokens if known else -1
            self.steps += len(request.step_accepted)
            self.accepted += sum(request.step_accepted)
            later = received - 1  # the first comes from the prefill
            if request.step_accepted:
                over = len(request.step_accepted) + sum(request.step_accepted) - later
                self.over_least = min(self.over_least, over)
                self.over_most = max(self.over_most, over)
                cut = cut_off(request.chunk_tokens, request.step_accepted)
                self.cut_off += cut or 0
                self.not_steps += cut is None
            elif later > 0:
                self.unlisted += 1
                self.unlisted_tokens += later
                self.unlisted_alone += request.chunk_tokens[-1] == 1
            self.cached_tokens += max(request.cached_tokens, 0)
            if request.ramp:
                self.ramp_last_ns = max(self.ramp_last_ns, request.sent_ns)
            elif request.sent_ns >= 0:
                first_ns = self.steady_first_ns
                self.steady_first_ns = (
                    request.sent_ns if first_ns < 0 else min(first_ns, request.sent_ns)
                )
            if request.outcome == "completed" and request.chunk_ns:
                self.whole_ns += request.end_ns
                self.first_ns += request.chunk_ns[0]
            if request.sent_ns >= 0:
                self.sent_ns.append(request.sent_ns)
                self.end_ns.append(min(request.sent_ns + request.end_ns, canonical.MAX_INT))
            if len(self.faults) < _MOST_FAULTS:
                self.faults.extend(faults(line, request, received))
            self.short += request.outcome == "completed" and received < least_tokens


@dataclass(slots=True)
class JournalScan:
    """All events but the batches of requests, whose sums are kept by (boot, window).

    `arms`: boot -> its arm, for boots of an arm that the plan has.
    """

    events: list[Event] = field(default_factory=list)
    counts: dict[tuple[str, str], RequestCount] = field(default_factory=dict)
    problems: list[LineProblem] = field(default_factory=list)
    lines: int = 0
    arms: dict[str, Arm] = field(default_factory=dict)

    def arm_of(self, boot: str) -> Arm | None:
        """The plan's arm that a boot started; None where it started none of the plan's."""
        return self.arms.get(boot)

    def count_of(self, window: schema.WindowEnded, line: int = 0) -> RequestCount:
        """What the requests of a window add up to; an empty count of `line` where it has none."""
        return self.counts.get((window.boot, window.window), RequestCount(line))

    @property
    def decodes(self) -> bool:
        """Whether every line is an event of this format."""
        return not self.problems

    def of(self, kind: type[Any]) -> Iterator[Event]:
        """The events of one type, in order."""
        return (event for event in self.events if isinstance(event.value, kind))

    @property
    def closed(self) -> schema.RunClosed | None:
        """How the run was closed at home, where it was; audit/checks/closing.py holds its place."""
        return next((event.value for event in self.of(schema.RunClosed)), None)

    @property
    def started(self) -> schema.RunStarted | None:
        """The head of the run, where the journal has one in its place."""
        if self.events and isinstance(self.events[0].value, schema.RunStarted):
            return self.events[0].value
        return None


def scan_journal(path: Path) -> JournalScan:
    """Read a journal; an absent one gives an empty scan."""
    scan = JournalScan()
    if not is_regular(path):
        return scan
    plan: Plan | None = None
    with path.open("rb") as file:
        for line in iter(lambda: file.readline(MAX_LINE_BYTES), b""):
            if not line.endswith(b"\n"):
                break  # a torn tail is no event; the check of the chain reports it
            scan.lines += 1
            event = _decode(scan, line)
            if event is None:
                if len(scan.problems) >= _MOST_PROBLEMS:
                    break
                continue
            if isinstance(event.value, schema.RunStarted):
                plan = event.value.plan
            if isinstance(event.value, WindowRequests):
                batch = event.value
                count = scan.counts.setdefault((batch.boot, batch.window), RequestCount())
                count.add(event.line, batch, _least_tokens(plan, batch.window))
                # The batch itself is let go; its place in time is kept.
                event = Event(event.line, Envelope(event.envelope.seq, event.envelope.t_ns, None))
            scan.events.append(event)
    if scan.started is not None:
        arms = {arm.id: arm for arm in scan.started.plan.arms}
        boots = (event.value for event in scan.of(schema.BootStarted))
        scan.arms = {boot.boot: arms[boot.arm] for boot in boots if boot.arm in arms}
    return scan


def _decode(scan: JournalScan, line: bytes) -> Event | None:
    number = scan.lines
    try:
        value = canonical.decode(line[:-1])
    except FormatError as error:
        scan.problems.append(LineProblem(number, "canonical", error.message))
        return None
    try:
        envelope = schema.decode(value, f"line {number}")
    except FormatError as error:
        scan.problems.append(LineProblem(number, "event", error.message))
        return None
    if envelope.seq != number - 1:
        scan.problems.append(LineProblem(number, "seq", f"seq {envelope.seq}, want {number - 1}"))
        return None
    return Event(number, envelope)


def _least_tokens(plan: Plan | None, window_id: str) -> int:
    """As the harness counts short responses: what the plan's sampling makes the engine produce."""
    for window in plan.windows if plan else ():
        if window.id == window_id:
            sampling = window.sampling
            return sampling.max_tokens if sampling.ignore_eos else sampling.min_tokens
    return 0
