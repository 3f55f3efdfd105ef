"""vLLM's own request function, from the file in its wheel, without vLLM's dependencies.

The stamps are rebuilt from what it returns: start_time + ttft, then the running sum of itl, all of
time.perf_counter, which is CLOCK_MONOTONIC on Linux.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from itertools import accumulate
from types import ModuleType

import aiohttp
from clients.task import Result, Task


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("endpoint_request_func", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def run(task: Task, result: Result, vllm: ModuleType) -> None:
    # As vllm/benchmarks/serve.py makes its session.
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=0, force_close=False)
    timeout = aiohttp.ClientTimeout(total=6 * 60 * 60)

    async def stream(session: aiohttp.ClientSession, first: int) -> None:
        for index in range(first, task.streams * task.rounds, task.streams):
            body = task.body(index)
            asked = vllm.RequestFuncInput(
                prompt=body["prompt"],
                api_url=task.url,
                prompt_len=3,
                output_len=task.chunks,
                model=body["model"],
                extra_body={"return_token_ids": True, "temperature": 0.0},
                ignore_eos=True,
                request_id=str(index),
            )
            said = await vllm.async_request_openai_completions(asked, session)
            times = accumulate([said.start_time + said.ttft, *said.itl])
            result.stamps[index] = [round(t * 1e9) for t in times]

    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, trust_env=False
    ) as session:
        result.start()
        await asyncio.gather(*(stream(session, first) for first in range(task.streams)))
        result.finish(task)


if __name__ == "__main__":
    name = f"vLLM {os.environ['BENCH_VLLM_VERSION']}, aiohttp {aiohttp.__version__}"
    module = load(os.environ["BENCH_VLLM_FILE"])
    asyncio.run(run(Task.from_argv(), Result(name), module))
