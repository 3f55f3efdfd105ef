"""The argv and the environment that an engine gets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from records.errors import PlanError
from remote.engine.adapter import EngineSpec
from remote.engine.vllm import VLLM, module_launcher, withheld

SPEC = EngineSpec(
    launcher=module_launcher("/e/bin/python"),
    model_path="/models/m",
    served_name="m",
    host="127.0.0.1",
    port=8011,
    args=("--max-model-len", "1024"),
    env=(("VLLM_CPU_KVCACHE_SPACE", "2"),),
)


def test_argv() -> None:
    assert VLLM.command(SPEC) == (
        "/e/bin/python", "-m", "vllm.entrypoints.openai.api_server",
        "--host", "127.0.0.1", "--port", "8011", "--model", "/models/m",
        "--served-model-name", "m", "--max-model-len", "1024",
    )  # fmt: skip


@pytest.mark.parametrize(
    "args", [("--host", "0.0.0.0"), ("--port=1",), ("--served_model_name=x",), ("--api-key", "k"),
             ("--hf-token=x",)]
)  # fmt: skip
def test_what_the_harness_owns_or_must_not_leak_is_refused(args: tuple[str, ...]) -> None:
    with pytest.raises(PlanError):
        VLLM.command(replace(SPEC, args=args))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_only_loopback(host: str) -> None:
    with pytest.raises(PlanError, match="beyond this host"):
        VLLM.command(replace(SPEC, host=host))


def test_only_the_plan_decides() -> None:
    inherited = {
        "PATH": "/bin",
        "HF_TOKEN": "secret",
        "VLLM_ATTENTION_BACKEND": "X",
        "EDITOR": "vi",
        "HF_HUB_OFFLINE": "0",
    }
    env = VLLM.environment(SPEC, inherited)
    assert env["PATH"] == "/bin"
    assert env["HF_HUB_OFFLINE"] == "1"
    assert env["VLLM_CPU_KVCACHE_SPACE"] == "2"
    assert not {"HF_TOKEN", "VLLM_ATTENTION_BACKEND", "EDITOR"} & set(env)
    assert withheld(SPEC, inherited) == ("HF_TOKEN", "VLLM_ATTENTION_BACKEND")


def test_the_plan_may_override_what_is_fixed() -> None:
    spec = replace(SPEC, env=(("NO_COLOR", ""),))
    assert VLLM.environment(spec, {})["NO_COLOR"] == ""


def test_caches_stay_below_one_directory() -> None:
    assert all(v.startswith("/c/") for v in VLLM.cache_environment("/c").values())
