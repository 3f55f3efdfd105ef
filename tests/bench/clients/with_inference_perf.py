"""inference-perf, by its command line; its per-request report has a stamp for every chunk.

Stamps are time.perf_counter, which is CLOCK_MONOTONIC on Linux.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from clients.peer import cpu_between, run, stream_id
from clients.task import Result, Task


def config(task: Task, directory: Path) -> dict[str, object]:
    total = task.streams * task.rounds
    words = {"min": 8, "max": 8, "mean": 8, "std_dev": 0, "total_count": total}
    length = {"min": task.chunks, "max": task.chunks, "mean": task.chunks}
    stage = {"concurrency_level": task.streams, "num_requests": total}
    return {
        "api": {"type": "completion", "streaming": True},
        "data": {
            "type": "random",
            "input_distribution": words,
            "output_distribution": length | {"std_dev": 0, "total_count": total},
        },
        "load": {
            "type": "concurrent",
            "num_workers": 1,
            "worker_max_concurrency": task.streams,
            "stages": [stage],
        },
        "server": {
            "type": "vllm",
            "model_name": "synthetic",
            "base_url": f"http://127.0.0.1:{task.port}",
            "ignore_eos": True,
        },
        "tokenizer": {"pretrained_model_name_or_path": os.environ["BENCH_TOKENIZER"]},
        "report": {"request_lifecycle": {"summary": False, "per_request": True}},
        "storage": {"local_storage": {"path": str(directory / "report")}},
    }


def main() -> None:
    task = Task.from_argv()
    with tempfile.TemporaryDirectory(dir=task.out.parent) as name:
        directory = Path(name)
        (directory / "config.yaml").write_text(json.dumps(config(task, directory)))
        argv = [os.environ["BENCH_PEER"], "-c", str(directory / "config.yaml")]
        samples = run(argv, directory / "log")
        report = directory / "report" / "per_request_lifecycle_metrics.json"
        requests = json.loads(report.read_text())
    result = Result(os.environ["BENCH_PEER_VERSION"])
    for request in requests:
        said = request["info"]["response_metrics"]
        name = stream_id(json.loads(said["response_chunks"][0])["id"])
        result.stamps[name] = [round(t * 1e9) for t in said["chunk_times"]]
    start_ns = round(min(r["start_time"] for r in requests) * 1e9)
    result.cpu_ns = cpu_between(samples, start_ns, max(s[-1] for s in result.stamps.values()))
    result.write(task)


if __name__ == "__main__":
    main()
