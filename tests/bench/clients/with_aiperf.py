"""AIPerf, by its command line; its raw records have a stamp for every chunk.

Stamps are time.perf_counter_ns, which is CLOCK_MONOTONIC on Linux.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from clients.peer import cpu_between, run, stream_id
from clients.task import Result, Task


def argv(task: Task, directory: Path) -> list[str]:
    total = str(task.streams * task.rounds)
    return [
        os.environ["BENCH_PEER"], "profile", "-m", "synthetic",
        "--url", f"http://127.0.0.1:{task.port}", "--endpoint-type", "completions", "--streaming",
        "--concurrency", str(task.streams), "--request-count", total,
        "--tokenizer", os.environ["BENCH_TOKENIZER"], "--use-server-token-count",
        "--input-file", str(directory / "prompts.jsonl"), "--custom-dataset-type", "single_turn",
        "--extra-inputs", f"max_tokens:{task.chunks}", "--extra-inputs", "ignore_eos:true",
        "--export-level", "raw", "--output-artifact-dir", str(directory), "--ui", "simple",
    ]  # fmt: skip


def main() -> None:
    task = Task.from_argv()
    result = Result(os.environ["BENCH_PEER_VERSION"])
    starts = []
    with tempfile.TemporaryDirectory(dir=task.out.parent) as name:
        directory = Path(name)
        prompts = (task.body(i)["prompt"] for i in range(task.streams * task.rounds))
        text = "".join(json.dumps({"text": prompt}) + "\n" for prompt in prompts)
        (directory / "prompts.jsonl").write_text(text)
        samples = run(argv(task, directory), directory / "log")
        with (directory / "profile_export_raw.jsonl").open() as file:
            for line in file:
                record = json.loads(line)
                starts.append(record["start_perf_ns"])
                take(result, record["responses"])
    end_ns = max(stamps[-1] for stamps in result.stamps.values())
    result.cpu_ns = cpu_between(samples, min(starts), end_ns)
    result.write(task)


def take(result: Result, responses: list[dict]) -> None:
    """The stamps of one request; the last events hold usage and [DONE], no choice."""
    for response in responses:
        for packet in response["packets"]:
            if '"choices":[{' in packet["value"]:
                name = stream_id(json.loads(packet["value"])["id"])
                result.stamps.setdefault(name, []).append(response["perf_ns"])


if __name__ == "__main__":
    main()
