"""A window of the client against a reference server, held against its own report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from records.load import Load
from records.measurement import Request
from remote.client.window import Target, WindowResult, measure
from remote.reference.launch import Launched, launch

FAST = {"ttft": "2ms", "gap": "1ms"}


class Bodies:
    """Bodies that tell the reference server what to do with request i."""

    def __init__(self, options: Callable[[int], dict[str, Any]] = lambda _: FAST, tokens: int = 8):
        self._options, self._tokens = options, tokens

    def body(self, index: int) -> bytes:
        return json.dumps(
            {
                "model": "synthetic",
                "prompt": f"request {index}",
                "max_tokens": self._tokens,
                "stream": True,
                "return_token_ids": True,
                "stream_options": {"include_usage": True, "continuous_usage_stats": True},
                "reference": self._options(index),
            }
        ).encode()


@contextmanager
def reference_server() -> Iterator[Launched]:
    """On both loopback addresses; it does as each request asks."""
    options = ["--port", "0", "--host", "127.0.0.1", "--host", "::1", "--margin", "0us"]
    with launch(options) as launched:
        yield launched


def window(
    port: int,
    load: Load,
    directory: Path,
    bodies: Any = None,
    *,
    target: Target | None = None,
    **more: Any,
) -> tuple[list[Request], WindowResult]:
    """Measure one: its requests, which must add up to its report."""
    requests: list[Request] = []
    result = measure(
        target or Target("/v1/completions", port=port),
        bodies or Bodies(),
        load,
        **{"seed": 1, "sink": requests.extend, "cpus": None, "spill_dir": directory} | more,
    )
    report = result.report
    assert [r.index for r in requests] == sorted(r.index for r in requests)
    assert report.planned == len(requests)
    outcomes = [r.outcome for r in requests]
    assert (report.completed, report.failed, report.cancelled) == tuple(
        outcomes.count(kind) for kind in ("completed", "failed", "cancelled")
    )
    assert report.chunks == sum(len(r.chunk_ns) for r in requests)
    return requests, result
