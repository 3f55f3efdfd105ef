"""What stands between a plan and its run that can be seen without touching a host.

Invariant: files of this checkout alone are read; nothing here refuses a plan, it only tells.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

from kit.engine.models import read_model_lock
from kit.home import Home
from kit.image_lock import LOCK_NAME, read_image_lock
from records.errors import KitError
from records.image_digests import PLATFORM
from records.plan import Plan

# vLLM 0.29.0, vllm/config/speculative.py, SpeculativeMethod; its MTP types are told by their end.
SPECULATIVE_METHODS = frozenset(
    {
        "ngram",
        "ngram_gpu",
        "medusa",
        "mlp_speculator",
        "draft_model",
        "suffix",
        "custom_class",
        "eagle",
        "eagle3",
        "extract_hidden_states",
        "dflash",
        "dspark",
        "mtp",
    }
)
_MTP_END = "_mtp"


def obstacles(home: Home, plan: Plan) -> Iterator[str]:
    """Why the plan cannot run on this machine as things stand, one line each."""
    if plan.engine.name == "reference":
        return
    lock = read_model_lock(home.root / "images" / "models.lock.json")
    for model in plan.models:
        if model not in lock.models:
            yield f"model {model} is not locked"
    yield from _lock_obstacles(home, plan)
    yield from _method_obstacles(plan)
    if plan.requirements.gpu_memory_mib and shutil.which("nvidia-smi") is None:
        yield "needs a GPU: name a host with HOST=…, or carry it there with kit bundle and kit job"


def _lock_obstacles(home: Home, plan: Plan) -> Iterator[str]:
    name = plan.engine.lock
    if not (home.root / "images" / name).is_file():
        yield f"no lock images/{name}"
    elif name == LOCK_NAME:
        try:
            read_image_lock(home.root / "images" / name).image("").platform(PLATFORM)
        except KitError as error:
            yield error.message
    elif not name.endswith(".lock") or not name.startswith("wheels"):
        yield f"images/{name} is no lock that an engine can be installed from"


def _method_obstacles(plan: Plan) -> Iterator[str]:
    for arm in plan.arms:
        config = json.loads(arm.speculative_config) if arm.speculative_config else {}
        method = config.get("method")
        if method is None or method in SPECULATIVE_METHODS or str(method).endswith(_MTP_END):
            continue
        yield f"arm {arm.id}: {plan.engine.name} {plan.engine.version} has no method {method!r}"
