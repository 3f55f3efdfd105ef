"""The kit's client, as the harness calls it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version

from clients.task import Result, Task

from records.load import Load, Prompts, Sampling, Window
from records.measurement import Request
from remote.client.window import Target, measure
from remote.prompts import request_source


def window(task: Task) -> Window:
    """The task as a plan would have it."""
    zero, one = Decimal(0), Decimal(1)
    return Window(
        "bench",
        "completions",
        Load("closed", task.streams, requests=task.streams * task.rounds),
        Prompts("builtin", count=8, seed=0, unique=True),
        Sampling(task.chunks, 0, True, zero, one, 0, zero, 0, zero, zero, one),
    )


def main() -> None:
    task = Task.from_argv()
    asked = window(task)
    requests: list[Request] = []

    def keep(batch: Sequence[Request]) -> None:
        requests.extend(batch)

    (cpu,) = os.sched_getaffinity(0)
    done = measure(
        Target("/v1/completions", port=task.port),
        request_source(asked, "synthetic"),
        asked.load,
        seed=0,
        sink=keep,
        cpus=(cpu,),
        spill_dir=task.out.parent,
    )
    try:
        name = version("spec-fp8-reproduction-kit")
    except PackageNotFoundError:
        name = "this tree"
    upper = {request.index: list(request.merged) for request in requests}
    result = Result(name, cpu_ns=done.report.cpu_ns, upper=upper)
    for request in requests:
        origin = done.start_ns + request.sent_ns
        result.stamps[request.index] = [origin + ns for ns in request.chunk_ns]
    result.write(task)


if __name__ == "__main__":
    main()
