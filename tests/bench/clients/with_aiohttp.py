"""A careful client on aiohttp and uvloop: stamps each event as its line comes out of the loop."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import uvloop
from clients.task import Result, Task


async def run(task: Task, result: Result) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)

    async def stream(session: aiohttp.ClientSession, first: int) -> None:
        for index in range(first, task.streams * task.rounds, task.streams):
            stamps: list[int] = []
            headers = {"x-request-id": str(index)}
            async with session.post(task.url, json=task.body(index), headers=headers) as response:
                async for line in response.content:
                    if line.startswith(b'data: {"id"') and b'"choices":[{' in line:
                        stamps.append(time.monotonic_ns())  # noqa: PERF401 - what a user writes
            result.stamps[index] = stamps

    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        result.start()
        await asyncio.gather(*(stream(session, first) for first in range(task.streams)))
        result.finish(task)


if __name__ == "__main__":
    version = f"aiohttp {aiohttp.__version__}, uvloop {uvloop.__version__}"
    uvloop.run(run(Task.from_argv(), Result(version)))
