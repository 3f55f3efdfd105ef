"""One run counted a second time, from the lines of its journal: the windows that give numbers.

Invariant: nothing of analysis/ is used, not even its reading of records, and no numpy: so that one
mistake, or one altered function, does not stand on both sides. Source of the definitions: the table
of README and the docstrings of analysis/; percentiles by Hyndman and Fan (1996), type 7. The kept
/metrics pages, which the journal names by digest, are read by the audit's own reader.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from audit import counted_processors
from audit.counted_states import WindowState, state_of
from audit.counter_page import read_times
from records.decode import from_object
from records.plan import Plan, boot_order

_NS_PER_S, _NS_PER_MS = 1e9, 1e6
_PPM_95 = 0.95
# Quantity -> the server's count and sum (audit/counter_page.py), and the client's sum.
CLOCKS = {
    "whole": ("requests", "whole_s", "whole_ns"),
    "ttft.sent": ("first_tokens", "first_token_s", "first_ns"),
}


@dataclass(slots=True)
class Counted:
    """One window of a completed boot that nothing voids. Times in ms, one a gap or a request."""

    arm: str
    window: str
    tokens: int = 0
    wall_ns: int = 0
    drafts: int = -1
    accepted: int = -1
    per_request: dict[str, array[float]] = field(default_factory=dict)
    # Of completed requests: prompt -> the digests of what it was answered with, "" where unknown.
    answers: dict[int, set[str]] = field(default_factory=dict)
    # Of completed requests, ramp included: what an objective looks at; NaN where undefined.
    objectives: dict[str, array[float]] = field(default_factory=dict)
    # Of all requests, as the server counts; `pages`: moment -> the page of /metrics kept then.
    boot: str = ""
    block: int = 0
    planned: int = 0
    completed: int = 0
    answered: int = 0
    whole_ns: int = 0
    first_ns: int = 0
    pages: dict[str, Path] = field(default_factory=dict)
    # What a fixed piece of work took before and after the window.
    pace_ns: tuple[int, ...] = ()

    @property
    def throughput(self) -> float:
        """Output tokens per second of wall time."""
        return self.tokens / (self.wall_ns / _NS_PER_S)

    @property
    def acceptance(self) -> float:
        """1 + accepted / drafts, by the server's counters."""
        return 1 + self.accepted / self.drafts

    def p95(self, quantity: str) -> float:
        """p95 within the window, ms."""
        return percentile(self.per_request.get(quantity, array("d")), _PPM_95)

    def over_server_ms(self, quantity: str) -> float:
        """The client's mean of "whole" or "ttft.sent" minus the server's; NaN where its pages do
        not count exactly these requests. FormatError: one of them is no page."""
        counted, total, client_ns = CLOCKS[quantity]
        same = self.planned == self.completed == self.answered > 0
        if not same or set(self.pages) != {"before", "after"}:
            return math.nan
        before, after = (
            read_times(self.pages[moment], (counted, total)) for moment in ("before", "after")
        )
        if after.get(counted, math.nan) - before.get(counted, math.nan) != self.completed:
            return math.nan
        server_s = after.get(total, math.nan) - before.get(total, math.nan)
        client_s = getattr(self, client_ns) / _NS_PER_S
        return float((client_s - server_s) / self.completed * 1e3)


@dataclass(slots=True)
class RunCount:
    """All that is counted of one run. `outcomes`: planned boot -> (arm, how its last attempt ended)

    `void`: arm -> void windows of completed boots. `calibrated_ns`: concurrency -> worst p99 error.
    `worths`, `beside_client`: of the processors, once for each time that they were timed.
    `states`: of completed boots, with their arm: what each window's facts tell of GPU and engine.
    `warmed`, `decided`: of completed boots, with their arm: kernels compiled by round of warm-up,
    and what the engine told.
    """

    windows: list[Counted] = field(default_factory=list)
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)
    void: dict[str, int] = field(default_factory=dict)
    calibrated_ns: dict[int, int] = field(default_factory=dict)
    worths: list[float] = field(default_factory=list)
    beside_client: list[float] = field(default_factory=list)
    states: dict[str, tuple[str, list[WindowState]]] = field(default_factory=dict)
    warmed: dict[str, tuple[str, list[int]]] = field(default_factory=dict)
    decided: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)


def percentile(values: Sequence[float], share: float) -> float:
    """Linear interpolation between order statistics; NaN of no values."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def count_run(events: Path) -> RunCount:
    """Read a journal that was verified and decodes."""
    found = RunCount()
    attempts: dict[str, tuple[str, str]] = {}
    open_windows: dict[str, list[tuple[Counted, bool]]] = {}
    begun: dict[tuple[str, str], Counted] = {}
    cycled: dict[str, int] = {}
    voids: list[tuple[str, str]] = []
    started: Any = {}
    blocks: dict[str, int] = {}
    with events.open("rb") as file:
        for line in file:
            event = json.loads(line)
            kind, value = event["type"], event["value"]
            if kind == "run.started":
                cycled = {w["id"]: _cycled(w["prompts"]) for w in value["plan"]["windows"]}
                started = value
                plan = from_object(Plan, value["plan"])
                blocks = {one.id: one.block for one in boot_order(plan)}
            elif kind == "host.observed":
                found.worths.append(counted_processors.worth(value["facts"]))
                found.beside_client.append(counted_processors.beside_the_client(value["facts"]))
            elif kind == "client.calibrated":
                known = found.calibrated_ns.get(value["concurrency"], 0)
                found.calibrated_ns[value["concurrency"]] = max(known, value["error_p99_ns"])
            elif kind == "boot.started" and value["planned"]:
                attempts[value["boot"]] = (value["planned"], value["arm"])
            elif kind == "boot.warmed" and value["boot"] in attempts:
                found.warmed[value["boot"]] = (attempts[value["boot"]][1], value["jit_lines"])
            elif kind == "engine.decided" and value["boot"] in attempts:
                found.decided[value["boot"]] = (attempts[value["boot"]][1], value["facts"])
            elif kind == "window.requests" and value["boot"] in attempts:
                key = (value["boot"], value["window"])
                if key not in begun:
                    begun[key] = Counted(attempts[value["boot"]][1], value["window"])
                for request in value["requests"]:
                    _add(begun[key], request)
                    _answer(begun[key], request, cycled[value["window"]])
            elif kind == "window.ended" and value["boot"] in attempts:
                key = (value["boot"], value["window"])
                one = begun.pop(key, Counted(attempts[value["boot"]][1], value["window"]))
                one.wall_ns = value["report"]["wall_ns"]
                one.drafts = value["counters"]["drafts"]
                one.accepted = value["counters"]["accepted_tokens"]
                one.boot, one.planned = value["boot"], value["report"]["planned"]
                one.block = blocks.get(attempts[value["boot"]][0], 0)
                one.pages = {name.split(".")[-3]: events.parent / name for name in value["metrics"]}
                one.pace_ns = _pace(value["facts"].get("host"))
                arm = attempts[value["boot"]][1]
                states = found.states.setdefault(value["boot"], (arm, []))
                states[1].append(state_of(value["facts"]))
                open_windows.setdefault(value["boot"], []).append((one, bool(value["void"])))
            elif kind == "boot.ended" and value["boot"] in attempts:
                planned, arm = attempts[value["boot"]]
                found.outcomes[planned] = (arm, value["outcome"])
                if value["outcome"] != "completed":
                    found.warmed.pop(value["boot"], None)
                    found.decided.pop(value["boot"], None)
                    found.states.pop(value["boot"], None)
                for one, void in open_windows.pop(value["boot"], []):
                    if value["outcome"] == "completed" and void:
                        voids.append((planned, arm))
                    elif value["outcome"] == "completed":
                        found.windows.append(one)
            elif kind == "run.closed":
                cut = _cut_off(started, found.outcomes)
                found.outcomes = {p: end for p, end in found.outcomes.items() if p not in cut}
                found.windows = [w for w in found.windows if attempts[w.boot][0] not in cut]
                voids = [(planned, arm) for planned, arm in voids if planned not in cut]
                for of_boots in (found.warmed, found.decided, found.states):
                    for boot in [b for b in of_boots if attempts[b][0] in cut]:
                        of_boots.pop(boot)
    found.void = dict(Counter(arm for _, arm in voids))
    return found


def _cut_off(started: Any, outcomes: Mapping[str, tuple[str, str]]) -> set[str]:
    """Of a run whose host went away the planned boots of blocks that did not come to an end."""
    boots = boot_order(from_object(Plan, started["plan"]), tuple(started.get("blocks", ())))
    ends = ("completed", "failed")
    cut = {one.block for one in boots if outcomes.get(one.id, ("", ""))[1] not in ends}
    return {one.id for one in boots if one.block in cut}


def _pace(host: Any) -> tuple[int, ...]:
    """Facts are of any form."""
    times = host.get("pace_ns") if isinstance(host, dict) else None
    return tuple(ns for ns in times if type(ns) is int) if isinstance(times, list) else ()


def _add(window: Counted, request: Mapping[str, Any]) -> None:
    chunks, tokens = request["chunk_ns"], sum(request["chunk_tokens"])
    window.tokens += tokens
    window.completed += request["outcome"] == "completed"
    if request["outcome"] != "completed" or not chunks:
        return
    window.answered += 1
    window.whole_ns += request["end_ns"]
    window.first_ns += chunks[0]
    gaps = [(b - a) / _NS_PER_MS for a, b in pairwise(chunks)]
    span, first = chunks[-1] - chunks[0], request["chunk_tokens"][0]
    times = {
        "tpot.n-1": _over(span, tokens - 1),
        "tpot.n-k1": _over(span, tokens - first),
        "ntpot": _over(chunks[-1], tokens),
    }
    objectives = {**times, "p95-step-gap": percentile(gaps, _PPM_95)}
    for name, one in objectives.items():
        window.objectives.setdefault(name, array("d")).append(one)
    if not request["ramp"]:
        window.per_request.setdefault("step-gap", array("d")).extend(gaps)
        for name, one in times.items():
            if not math.isnan(one):
                window.per_request.setdefault(name, array("d")).append(one)
        window.per_request.setdefault("ttft.sent", array("d")).append(chunks[0] / _NS_PER_MS)


def _cycled(prompts: Mapping[str, Any]) -> int:
    """How many prompts a window sends over and over; 0 where each request has its own."""
    return 0 if prompts["unique"] else int(prompts["count"])


def _answer(window: Counted, request: Mapping[str, Any], prompts: int) -> None:
    if prompts and request["outcome"] == "completed":
        asked = window.answers.setdefault(request["index"] % prompts, set())
        asked.add(request["tokens_digest"] or "")


def _over(span_ns: int, tokens: int) -> float:
    return span_ns / tokens / _NS_PER_MS if tokens > 0 else math.nan
