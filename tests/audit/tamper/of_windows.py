"""Lies of what a window measured that every hash confirms: requests, counters, bounds, calibration.

Invariant: each is applied with everything recomputed, so that nothing but what the events mean can
tell; the expected code is that of the rule it breaks.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

from records.digest import Digest
from tests.audit.tamper.corruption import Corruption, covered_up, drop, every, first, put, replanned
from tests.audit.tamper.healthy import Event, Repository

Edit = Callable[[list[Event]], None]


def _requests(change: Callable[[list[Any]], None], window: str = "c1") -> Edit:
    def edit(events: list[Event]) -> None:
        change(
            first(events, "window.requests", lambda v: v["window"] == window)["value"]["requests"]
        )

    return edit


def _set(key: str, value: Any, index: int = 0) -> Edit:
    def change(requests: list[Any]) -> None:
        requests[index][key] = value(requests[index][key]) if callable(value) else value

    return _requests(change)


def _list_moved(events: list[Event]) -> None:
    """A request's own steps taken out, as the server loses them, and more told of another."""
    batch = first(events, "window.requests", lambda v: bool(v["requests"][0]["step_accepted"]))
    one, other, *_ = batch["value"]["requests"]
    other["step_accepted"] = [0] * 1_000
    one["step_accepted"] = []


def _chunks_back(requests: list[Any]) -> None:
    times = requests[0]["chunk_ns"]
    times[2] = times[1] - 1


def _overlap(requests: list[Any]) -> None:
    requests[1]["sent_ns"] = requests[0]["sent_ns"] + 1
    requests[1]["scheduled_ns"] = requests[0]["scheduled_ns"] + 1


def _fail(requests: list[Any]) -> None:
    requests[0]["outcome"], requests[0]["error"] = "failed", "timeout"


def _chunk_gone(requests: list[Any]) -> None:
    del requests[0]["chunk_ns"][1], requests[0]["chunk_tokens"][1]


def _window(*path: str, to: Any, where: Callable[[Any], bool] = lambda _: True) -> Edit:
    return put("window.ended", *path, to=to, where=where)


def _drafted(value: Any) -> bool:
    return bool(value["counters"]["drafts"] > 0)


def _page(data: bytes) -> Callable[[Repository], None]:
    """Another page in place of one, its digest made anew in event and seal."""

    def apply(repository: Repository) -> None:
        path = min((repository.run() / "metrics").glob("*draft*.after.prom.gz"))
        path.write_bytes(gzip.compress(data, mtime=0))
        name = f"metrics/{path.name}"

        def edit(events: list[Event]) -> None:
            for value in every(events, "window.ended"):
                if name in value["metrics"]:
                    value["metrics"][name] = str(Digest.of(path.read_bytes()))

        repository.cover_up(edit)

    return apply


def _fewer(events: list[Event]) -> None:
    """The last request of a window left out, and the report made to fit."""
    batches = [e["value"] for e in events if e["type"] == "window.requests"]
    gone = batches[1]["requests"].pop()
    report = first(events, "window.ended")["value"]["report"]
    report["planned"] -= 1
    report["completed"] -= 1
    report["chunks"] -= len(gone["chunk_ns"])


def _is_void(value: Any) -> bool:
    return bool(value["void"])


def _revive(events: list[Event]) -> None:
    first(events, "window.ended", _is_void)["value"]["void"] = []


def _server_says(factor: float) -> Callable[[Repository], None]:
    """The server's own times in the pages of a window: so many times what the client saw."""

    def apply(repository: Repository) -> None:
        digests: dict[str, str] = {}

        def edit(events: list[Event]) -> None:
            window = first(events, "window.ended", lambda v: bool(v["metrics"]))["value"]
            requests = [
                request
                for value in every(events, "window.requests")
                if (value["boot"], value["window"]) == (window["boot"], window["window"])
                for request in value["requests"]
            ]
            whole = sum(request["end_ns"] for request in requests) / 1e9 * factor
            early = sum(request["chunk_ns"][0] for request in requests) / 1e9 * factor
            for name in window["metrics"]:
                zero = 0.0 if ".before." in name else 1.0
                path = repository.run() / name
                page = (
                    gzip.decompress(path.read_bytes())
                    + (
                        f"vllm:e2e_request_latency_seconds_count {len(requests) * zero}\n"
                        f"vllm:e2e_request_latency_seconds_sum {whole * zero!r}\n"
                        f"vllm:time_to_first_token_seconds_sum {early * zero!r}\n"
                    ).encode()
                )
                path.write_bytes(gzip.compress(page, mtime=0))
                digests[name] = str(Digest.of(path.read_bytes()))
            window["metrics"] = {name: digests[name] for name in window["metrics"]}

        repository.cover_up(edit)

    return apply


def _early(times: list[int]) -> list[int]:
    return [-5, *times[1:]]


def _pages_gone(repository: Repository) -> None:
    """The server's word on every window, and the counters that came from it."""
    for path in (repository.run() / "metrics").iterdir():
        path.unlink()

    def edit(events: list[Event]) -> None:
        for value in every(events, "window.ended"):
            value["metrics"] = {}
            value["counters"] = dict.fromkeys(value["counters"], -1)

    repository.cover_up(edit)


def _gpu_said(**facts: Any) -> Callable[[Any], Any]:
    return lambda value: {**value, "gpu": facts}


def _thread_said(**times: int) -> Callable[[Any], Any]:
    return lambda value: {**value, "busiest_thread": times}


ALL = (
    Corruption(
        "usage that disagrees with the tokens", "REQ01", covered_up(_set("completion_tokens", 15))
    ),
    Corruption("a chunk before the one it follows", "REQ02", covered_up(_requests(_chunks_back))),
    Corruption(
        "a request sent before it was scheduled",
        "REQ02",
        covered_up(_set("scheduled_ns", lambda v: v + 10**9)),
    ),
    Corruption("two requests at once on one connection", "REQ03", covered_up(_requests(_overlap))),
    Corruption(
        "a window that ends after its own record",
        "REQ04",
        covered_up(_window("report", "wall_ns", to=lambda v: v * 100)),
    ),
    Corruption(
        "a window that began before it was started",
        "REQ04",
        covered_up(_window("start_ns", to=lambda v: v - 10**10)),
    ),
    Corruption(
        "a host watched for longer than its window's events are apart",
        "REQ04",
        covered_up(_window("facts", to=lambda v: {**v, "host": {"duration_ns": 10**15}})),
    ),
    Corruption(
        "a thread that ran for longer than its window",
        "REQ04",
        covered_up(_window("facts", to=_thread_said(on_cpu_ns=10**15, waiting_ns=0, timeslices=1))),
    ),
    Corruption(
        "a thread that waited for less than no time",
        "REQ04",
        covered_up(_window("facts", to=_thread_said(on_cpu_ns=9, waiting_ns=-5, timeslices=1))),
    ),
    Corruption(
        "the client's lag made to look better",
        "REQ05",
        covered_up(_window("report", "lag_p99_ns", to=1)),
    ),
    Corruption("a request's number given twice", "COVER04", covered_up(_set("index", 1))),
    Corruption("a slow request taken out", "COVER04", covered_up(_requests(lambda x: x.pop()))),
    Corruption("an outcome flipped", "COVER05", covered_up(_requests(_fail))),
    Corruption("a chunk taken out of a request", "COVER05", covered_up(_requests(_chunk_gone))),
    Corruption(
        "accepted tokens raised",
        "COUNT01",
        covered_up(_window("counters", "accepted_tokens", to=lambda v: v + 1, where=_drafted)),
    ),
    Corruption(
        "drafts lowered",
        "COUNT01",
        covered_up(_window("counters", "drafts", to=lambda v: v - 1, where=_drafted)),
    ),
    Corruption(
        "prefix-cache hits hidden",
        "COUNT01",
        covered_up(_window("counters", "prefix_cache_hits", to=-1)),
    ),
    Corruption(
        "a request's accepted steps raised",
        "COUNT02",
        covered_up(
            put(
                "window.requests",
                "requests",
                0,
                "step_accepted",
                0,
                to=4,
                where=lambda v: bool(v["requests"][0]["step_accepted"]),
            )
        ),
    ),
    Corruption("a request's steps told of another", "COUNT02", covered_up(_list_moved)),
    Corruption(
        "a metrics page made anew with better counters",
        "COUNT01",
        _page(b'vllm:generation_tokens_total{engine="0"} 9000.0\n'),
    ),
    Corruption("an error counted as completed", "REQ06", covered_up(_set("status", 500))),
    Corruption(
        "a slow request hidden in the ramp",
        "REQ07",
        covered_up(_set("ramp", True, index=1)),
    ),
    Corruption("a chunk before its request", "REQ02", covered_up(_set("chunk_ns", _early))),
    Corruption("less than no steal", "REQ05", covered_up(_window("steal_ppm", to=-5))),
    Corruption("metrics pages left out", "COUNT06", _pages_gone),
    Corruption(
        "tokens from a cache that nobody counts", "COUNT02", covered_up(_set("cached_tokens", 9))
    ),
    Corruption("times shorter than the server's own", "COUNT04", _server_says(1.1)),
    Corruption("times far longer than the server's own", "COUNT05", _server_says(0.1)),
    Corruption(
        "a GPU's clocks left out of its windows",
        "VOID04",
        covered_up(replanned(lambda p: p["requirements"].update(compute_capability="8.9"))),
    ),
    Corruption("a metrics page that unpacks to no end", "COUNT03", _page(b"0" * (1 << 26) + b"\n")),
    Corruption(
        "a metrics page replaced by something else", "COUNT03", _page(b"<html>404</html>\n")
    ),
    Corruption("a window of fewer requests than planned", "COVER06", covered_up(_fewer)),
    Corruption("a calibration taken out", "CALIB01", covered_up(drop("client.calibrated"))),
    Corruption(
        "a calibration against another schedule",
        "CALIB02",
        covered_up(put("client.calibrated", "step_gap_ns", to=1)),
    ),
    Corruption(
        "a calibration improved",
        "CALIB03",
        covered_up(put("client.calibrated", "error_p99_ns", to=10)),
    ),
    Corruption(
        "a calibration over fewer chunks",
        "CALIB03",
        covered_up(put("client.calibrated", "chunks", to=1)),
    ),
    Corruption("a void window revived", "VOID01", covered_up(_revive, "run-2")),
    Corruption(
        "a window voided for its result",
        "VOID02",
        covered_up(_window("void", to=["host-steal: too slow"])),
    ),
    Corruption(
        "a window voided by a rule that there is not",
        "VOID02",
        covered_up(_window("void", to=["mood: too slow"])),
    ),
    Corruption("a window voided for no reason", "VOID02", covered_up(_window("void", to=[""]))),
    Corruption(
        "a GPU's trace emptied",
        "VOID05",
        covered_up(_window("facts", to=_gpu_said(traces=[{}]))),
    ),
    Corruption(
        "GPU throttling that is no list",
        "VOID05",
        covered_up(_window("facts", to=_gpu_said(traces=[{"reasons": "hardware slowdown"}]))),
    ),
    Corruption(
        "memory errors of the GPU as words",
        "VOID05",
        covered_up(_window("facts", to=_gpu_said(new_ecc_errors="3"))),
    ),
    Corruption(
        "host steal over its bound, window kept",
        "VOID01",
        covered_up(_window("steal_ppm", to=900_000)),
    ),
    Corruption(
        "GPU throttling, window kept",
        "VOID01",
        covered_up(_window("facts", to=_gpu_said(traces=[{"reasons": ["software power cap"]}]))),
    ),
    Corruption(
        "a memory error of the GPU, window kept",
        "VOID01",
        covered_up(_window("facts", to=_gpu_said(new_ecc_errors=1, new_xid_errors=-1))),
    ),
    Corruption(
        "another's process on the GPU, window kept",
        "VOID01",
        covered_up(_window("facts", to=_gpu_said(foreign_processes=1))),
    ),
    Corruption(
        "JIT in a window, window kept", "VOID01", covered_up(_window("jit_lines", to=["kernel"]))
    ),
)
