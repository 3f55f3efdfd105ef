"""guidellm, by its command line; it reports the first and the last chunk of a request alone.

Stamps are time.time, brought to CLOCK_MONOTONIC by one reading of both after the run.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

from clients.peer import cpu_between, run, stream_id
from clients.task import Result, Task


def argv(task: Task, directory: Path) -> list[str]:
    backend = f"kind=openai_http,target=http://127.0.0.1:{task.port},model=synthetic"
    return [
        os.environ["BENCH_PEER"], "run",
        "--backend", f"{backend},request_format=/v1/completions",
        "--profile", f"kind=concurrent,streams={task.streams}",
        "--constraint", f"kind=max_requests,count={task.streams * task.rounds}",
        "--data", f"kind=json_file,path={directory}/prompts.jsonl",
        "--output", f"kind=json,path={directory}/report.json", "--disable-progress",
    ]  # fmt: skip


def main() -> None:
    task = Task.from_argv()
    with tempfile.TemporaryDirectory(dir=task.out.parent) as name:
        directory = Path(name)
        rows = (
            {"prompt": task.body(i)["prompt"], "output_tokens_count": task.chunks}
            for i in range(task.streams * task.rounds)
        )
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (directory / "prompts.jsonl").write_text(text)
        samples = run(argv(task, directory), directory / "log")
        offset_ns = time.time_ns() - time.monotonic_ns()
        report = json.loads((directory / "report.json").read_text())
    requests = report["benchmarks"][0]["requests"]["successful"]
    result = Result(os.environ["BENCH_PEER_VERSION"], which=[0, -1])
    for request in requests:
        times = request["info"]["timings"]
        result.stamps[stream_id(request["response_id"])] = [
            round(times[f"{which}_token_iteration"] * 1e9) - offset_ns
            for which in ("first", "last")
        ]
    starts = [round(r["info"]["timings"]["request_start"] * 1e9) - offset_ns for r in requests]
    end_ns = max(stamps[-1] for stamps in result.stamps.values())
    result.cpu_ns = cpu_between(samples, min(starts), end_ns)
    result.write(task)


if __name__ == "__main__":
    main()
