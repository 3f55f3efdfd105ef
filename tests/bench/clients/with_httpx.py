"""A client on httpx, as most scripts are: asynchronous streams, lines stamped as they come."""

from __future__ import annotations

import asyncio
import time

import httpx
from clients.task import Result, Task


async def run(task: Task, result: Result) -> None:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)

    async def stream(client: httpx.AsyncClient, first: int) -> None:
        for index in range(first, task.streams * task.rounds, task.streams):
            stamps: list[int] = []
            headers = {"x-request-id": str(index)}
            async with client.stream(
                "POST", task.url, json=task.body(index), headers=headers
            ) as response:
                async for line in response.aiter_lines():
                    if line.startswith('data: {"id"') and '"choices":[{' in line:
                        stamps.append(time.monotonic_ns())  # noqa: PERF401 - what a user writes
            result.stamps[index] = stamps

    async with httpx.AsyncClient(limits=limits, timeout=None, trust_env=False) as client:  # noqa: S113
        result.start()
        await asyncio.gather(*(stream(client, first) for first in range(task.streams)))
        result.finish(task)


if __name__ == "__main__":
    asyncio.run(run(Task.from_argv(), Result(f"httpx {httpx.__version__}")))
