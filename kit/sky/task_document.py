"""A plan's block as a task of SkyPilot: the plain value that `sky.Task.from_yaml_config` takes.

Invariant: pure; the image is named by digest, the machine by what the plan needs, and one kind of
GPU alone is asked for: several would be several strata. Keys: SkyPilot 0.14, "SkyPilot YAML".
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from kit.docker.choice import DockerChoice
from kit.sky.site import SkySite
from kit.slurm.submission import gpus
from records.errors import InterruptedRunError, PlanError
from records.plan import Plan

# Compute capability and memory in MiB as nvidia-smi reports it: NVIDIA's data sheets.
_GPUS = {
    "L4": (Decimal("8.9"), 23_034),
    "L40S": (Decimal("8.9"), 46_068),
    "A100": (Decimal("8.0"), 40_960),
    "A100-80GB": (Decimal("8.0"), 81_920),
    "H100": (Decimal("9.0"), 81_559),
    "H200": (Decimal("9.0"), 143_771),
}
# Assumed: compressed layers, unpacked once and once more while they are.
_UNPACKED = 4
_SYSTEM_GIB = 30


@dataclass(frozen=True, slots=True)
class Carried:
    """Files of this machine that the task needs: paths here by paths there.

    `setup`: the command that makes the models ready there, none where there are none.
    """

    files: dict[str, str]
    job: str
    harness: str
    setup: tuple[str, ...] = ()


def document(
    plan: Plan, name: str, site: SkySite, cloud: str, carried: Carried, choice: DockerChoice | None
) -> dict[str, Any]:
    """The task of one block. PlanError where no GPU of SkyPilot's fits the plan."""
    bucket = f"{site.root}/bucket"
    python = choice.image.python if choice else "python3"
    words = (python, "-I", "-S", carried.harness, "bucket", carried.job, bucket)
    mounts: dict[str, Any] = dict(carried.files)
    mounts[bucket] = {"name": site.bucket, "store": site.store, "mode": "MOUNT"}
    task = {
        "name": name,
        "resources": _resources(plan, site, cloud, choice),
        "num_nodes": 1,
        "file_mounts": mounts,
        "run": f"exec {shlex.join(words)}\n",
    }
    return {**task, "setup": f"{shlex.join(carried.setup)}\n"} if carried.setup else task


def _resources(
    plan: Plan, site: SkySite, cloud: str, choice: DockerChoice | None
) -> dict[str, Any]:
    need = plan.requirements
    layers_gib = _gib(_UNPACKED * choice.platform.layers_bytes) if choice else 0
    disk_gib = _gib(need.disk_mib << 20) + layers_gib + _SYSTEM_GIB
    resources: dict[str, Any] = {
        "memory": f"{max(1, _gib(need.memory_mib << 20))}+",
        "disk_size": disk_gib,
        "use_spot": site.spot,
        # 52: told in time, the harness marked its boot and ended; another machine goes on.
        "job_recovery": {
            "strategy": "FAILOVER",
            "max_restarts_on_errors": 0,
            "recover_on_exit_codes": [InterruptedRunError.exit_code],
        },
    }
    if cloud:
        resources["infra"] = cloud
    count = gpus(plan)
    if count:
        resources["accelerators"] = site.accelerators or f"{accelerator(plan)}:{count}"
    if choice:
        resources["image_id"] = f"docker:{choice.reference}"
    return resources


def accelerator(plan: Plan) -> str:
    """The smallest GPU of the plan's own compute capability that holds it."""
    need = plan.requirements
    fitting = [
        (memory_mib, name)
        for name, (capability, memory_mib) in _GPUS.items()
        if capability == need.compute_capability and memory_mib >= need.gpu_memory_mib
    ]
    if not fitting:
        raise PlanError(
            f"no GPU known here has compute capability {need.compute_capability} and "
            f"{need.gpu_memory_mib} MiB",
            'name one in sky.toml: accelerators = "L4:1"',
        )
    return min(fitting)[1]


def _gib(size_bytes: int) -> int:
    return -(-size_bytes // (1 << 30))
