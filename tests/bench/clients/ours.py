"""The kit's client, as the harness calls it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from clients.task import Result, Task

from records.load import Load
from records.measurement import Request
from remote.client.window import Target, measure


class Bodies:
    def __init__(self, task: Task) -> None:
        self._task = task

    def body(self, index: int) -> bytes:
        return json.dumps(self._task.body(index)).encode()


def main() -> None:
    task = Task.from_argv()
    requests: list[Request] = []

    def keep(batch: Sequence[Request]) -> None:
        requests.extend(batch)

    (cpu,) = os.sched_getaffinity(0)
    done = measure(
        Target("/v1/completions", port=task.port),
        Bodies(task),
        Load("closed", task.streams, requests=task.streams * task.rounds),
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
