"""The options of every GPU plan are options of vLLM 0.29.0: read by the engine's own parser.

On the CPU build, which has the same parser: no GPU minute is then lost to a slip of the pen.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from kit.engine.models import materialise, read_model_lock
from kit.engine.setup import set_up
from kit.home import Home
from kit.hosts.names import LocalHost
from kit.planning.plan_file import load_plan
from kit.run.launch import build_harness
from records.plan import Arm

ROOT = Path(__file__).parents[2]
PLANS = ("sm90-pilot", "sm90-confounds", "sm90-shape8b")
pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


def argv(home: Home, arm: Arm) -> list[str]:
    """As the harness starts it (remote/boot.py), without host and port."""
    found = ["--model", str(home.models / arm.model), *arm.args]
    if arm.speculative_config:
        config = json.loads(arm.speculative_config)
        if "model" in config:
            config["model"] = str(home.models / config["model"])
        found += ["--speculative-config", json.dumps(config)]
    return found


@pytest.fixture(scope="module")
def understood():
    """What the engine understood, by plan and arm."""
    home = Home.find({})
    plans = {name: load_plan(ROOT / "kit" / "plans" / f"{name}.toml") for name in PLANS}
    harness, digest = build_harness(home)
    set_up(home, LocalHost(), load_plan(ROOT / "kit/plans/smoke-cpu.toml"), harness, digest, print)
    lock = read_model_lock(ROOT / "images" / "models.lock.json")
    for model in sorted({model for plan in plans.values() for model in plan.models}):
        materialise(model, lock, home.engine / "bin" / "python", home.models, print)
    asked = {f"{plan.id}/{arm.id}": argv(home, arm) for plan in plans.values() for arm in plan.arms}
    done = subprocess.run(
        [str(home.engine / "bin" / "python"), str(Path(__file__).with_name("plan_options.py"))],
        input=json.dumps(asked),
        env={"PATH": os.defpath, "HOME": str(home.path), "HF_HUB_OFFLINE": "1",
             "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_USE_V2_MODEL_RUNNER": "0"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout[done.stdout.index("{") :]), plans


def test_no_arm_is_refused(understood):
    told, _ = understood
    assert {arm: one["error"] for arm, one in told.items() if "error" in one} == {}


def test_each_factor_reaches_the_engine(understood):
    told, plans = understood
    for plan in plans.values():
        for arm in plan.arms:
            one, factors = told[f"{plan.id}/{arm.id}"], arm.factors
            assert (one["kv"] == "fp8_e4m3") == (factors.get("kv") == "fp8_e4m3"), arm.id
            assert (one["quantization"] == "fp8") == (factors.get("weights") == "fp8"), arm.id
            if "backend" in factors:
                version = {"FlashAttention 2 asked": 2}.get(factors["backend"])
                assert one["flash_attn_version"] == version, arm.id
                pinned = factors["backend"].startswith("FlashInfer")
                assert (one["backend"] == "FLASHINFER") == pinned, arm.id
                both = factors["backend"] == "FlashInfer, both"
                assert (one["draft_backend"] == "FLASHINFER") == both, arm.id
            if "graphs" in factors:
                assert one["eager"] == (factors["graphs"] == "none (eager)"), arm.id


def test_shapes_have_no_weights_and_accept_at_one_rate(understood):
    told, plans = understood
    for arm in plans["sm90-shape8b"].arms:
        one = told[f"sm90-shape8b/{arm.id}"]
        assert one["load_format"] == "dummy"
        if arm.speculative_config:
            rates = one["acceptance"]
            assert len(rates) == one["draft_tokens"]
            ratios = [b / a for a, b in zip([1.0, *rates], rates, strict=False)]
            assert ratios == pytest.approx([0.775] * len(rates), abs=2e-3)
            assert (one["draft_quantization"] == "fp8") == (arm.factors["weights"] == "fp8")
