"""The servers this harness can drive, by the runtime a job names.

Invariant: an engine is one entry here and one module beside it; nothing else knows its options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from remote.container import apptainer
from remote.engine import log, metrics
from remote.engine.adapter import Adapter, EngineSpec
from remote.engine.vllm import VLLM


def _command(spec: EngineSpec) -> tuple[str, ...]:
    return (
        *spec.launcher,
        "--host", spec.host,
        "--port", str(spec.port),
        "--served-model-name", spec.served_name,
        *spec.args,
    )  # fmt: skip


def _environment(spec: EngineSpec, inherited: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": inherited.get("PATH", "/usr/bin:/bin"), **dict(spec.env)}


def _no_cache(_directory: str) -> dict[str, str]:
    return {}


def _declares_prefix_cache(spec: EngineSpec) -> bool:
    return "--enable-prefix-caching" in spec.args  # as for vLLM: on by default, yet undeclared


# The reference server answers as vLLM does; what it serves is synthetic and marked so in the run.
REFERENCE = Adapter(
    name="reference",
    command=_command,
    environment=_environment,
    cache_environment=_no_cache,
    declares_prefix_cache=_declares_prefix_cache,
    health_path="/health",
    metrics_path="/metrics",
    version_path="/version",
    read_log=log.parse,
    read_metrics=metrics.parse,
)

ADAPTERS: Mapping[str, Adapter] = {
    "apptainer": replace(VLLM, environment=apptainer.environment),
    "docker": VLLM,
    "installed": VLLM,
    "reference": REFERENCE,
    "wheels": VLLM,
}
