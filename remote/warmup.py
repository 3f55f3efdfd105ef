"""Warm-up: the measured shapes, again and again, until the engine compiles nothing more.

Invariant: what is sent here is never in the records of a window.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from records.load import Window
from records.measurement import Request
from records.schema import BootWarmed
from remote.client.window import measure
from remote.context import Context
from remote.engine.log import jit_lines
from remote.engine.tail import LogTail
from remote.prompts.source import request_source
from remote.window import Booted


def warm(context: Context, booted: Booted) -> BootWarmed:
    """Rounds of every window's shape at its concurrency; `quiet` if the last logged no JIT."""
    began_ns = time.monotonic_ns()
    tail = LogTail(booted.engine.log_path)
    tail.read()
    rounds: list[int] = []
    most = context.plan.warmup.output_tokens
    for number in range(1, context.plan.warmup.max_rounds + 1):
        context.say(f"boot {booted.id}: warm-up round {number}")
        for window in context.plan.windows:
            if window.by_peer:  # the server has met its shape in the kit's own window
                continue
            load = replace(
                window.load,
                kind="closed",
                rate_millihertz=0,
                requests=max(context.plan.warmup.requests, window.load.concurrency),
                duration_ms=0,
            )
            measure(
                booted.target(window.endpoint),
                request_source(_shortened(window, most), booted.served_name, context.prompts),
                load,
                seed=window.prompts.seed,
                sink=_discard,
                cpus=context.job.client_cpus or None,
                spill_dir=context.scratch,
            )
        new = tail.read()
        rounds.append(len(jit_lines(new.text, new.first_number)))
        if rounds[-1] == 0:
            break
    return BootWarmed(
        boot=booted.id,
        jit_lines=tuple(rounds),
        quiet=rounds[-1] == 0,
        elapsed_ns=time.monotonic_ns() - began_ns,
    )


def _shortened(window: Window, most: int) -> Window:
    """The window with at most so many tokens a request; 0: as it is."""
    sampling = window.sampling
    if not most:
        return window
    return replace(
        window,
        sampling=replace(
            sampling,
            max_tokens=min(sampling.max_tokens, most),
            min_tokens=min(sampling.min_tokens, most),
        ),
    )


def _discard(_requests: Sequence[Request]) -> None:
    """Warm-up requests are not measurements."""
