"""What the harness needs to know of a server: how to start it, where it answers, how to read it.

Invariant: nothing else in remote/ knows which engine it drives; another OpenAI-compatible server is
another value of `Adapter`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from remote.engine.log import EngineDecisions
from remote.engine.metrics import Counters


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """One server to start. `launcher` is the argv up to the server's own options."""

    launcher: tuple[str, ...]
    model_path: str
    served_name: str
    host: str
    port: int
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Adapter:
    """An engine's specifics, as plain functions and paths."""

    name: str
    command: Callable[[EngineSpec], tuple[str, ...]]
    environment: Callable[[EngineSpec, Mapping[str, str]], dict[str, str]]
    cache_environment: Callable[[str], dict[str, str]]
    declares_prefix_cache: Callable[[EngineSpec], bool]
    health_path: str
    metrics_path: str
    version_path: str
    read_log: Callable[[bytes | str], EngineDecisions]
    read_metrics: Callable[[bytes | str], Counters]
