"""The words of an sbatch command and the script it is given.

Invariant: pure; each task of the array is one block, alone on its node, queued again by Slurm when
its node fails or is taken away. Options: sbatch(1).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from kit.planning.plan_cost import Tariff, cost_of
from kit.slurm.site import SlurmSite
from records.errors import HostUnfitError
from records.plan import Plan

_MARGIN_S = 15 * 60
_SIZES = ("--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp")


def sbatch_argv(
    site: SlurmSite, plan: Plan, tasks: int, name: str, output: Path
) -> tuple[str, ...]:
    """The command; the script comes by stdin. `output`: a directory for what no task took over."""
    words = [
        "sbatch",
        "--parsable",
        f"--job-name={name}",
        f"--array=1-{tasks}",
        "--nodes=1",
        "--ntasks=1",
        "--exclusive",  # whoever shares the node is in the measurement
        "--mem=0",  # all of it
        f"--time={limit_minutes(site, plan)}",
        "--requeue",
        f"--signal=B:TERM@{site.notice_s}",
        "--open-mode=append",
        f"--output={pattern(output)}/%A_%a.out",
    ]
    for option, value in (
        ("partition", site.partition),
        ("account", site.account),
        ("qos", site.qos),
    ):
        if value:
            words.append(f"--{option}={value}")
    count = gpus(plan)
    if count:
        words.append(f"--gres={site.gres}:{count}")
        features = site.features(plan.requirements.compute_capability)
        if features:
            words.append(f"--constraint={features}")
    return (*words, *site.options)


def pattern(directory: Path) -> str:
    """The directory as sbatch(1), FILENAME PATTERN, takes it for itself: `%%` for `%`.

    HostUnfitError for one with a backslash, which would end all replacing and be taken out.
    """
    if "\\" in str(directory):
        raise HostUnfitError(
            f"{directory}: Slurm takes no backslash in the name of a task's output as it is",
            "a place on the shared storage without one: KIT_HOME=… there",
        )
    return str(directory).replace("%", "%%")


def script(python: str, harness: Path, array: Path) -> bytes:
    """The batch script: the shell makes room for the harness, which so gets Slurm's signal."""
    words = (python, "-I", "-S", str(harness), "slurm", str(array))
    return f"#!/bin/sh\nexec {shlex.join(words)}\n".encode()


def gpus(plan: Plan) -> int:
    """How many GPUs a boot of the plan takes at most; 0 for a plan that needs none."""
    need = plan.requirements
    if not need.compute_capability and not need.gpu_memory_mib:
        return 0
    return max(_parallel(arm.args) for arm in plan.arms)


def limit_minutes(site: SlurmSite, plan: Plan) -> int:
    """For any one block: the plan's own estimate with room, in whole minutes."""
    each = cost_of(plan, Tariff(Decimal(0), 1000), [(n + 1,) for n in range(plan.blocks)])
    longest_s = max(host.seconds for host in each.hosts)
    return -(-(longest_s * site.time_factor + _MARGIN_S + site.notice_s) // 60)


def _parallel(args: Sequence[str]) -> int:
    """The product of the degrees of parallelism among an arm's arguments."""
    product = 1
    for index, arg in enumerate(args):
        name, is_joined, value = arg.partition("=")
        if name in _SIZES:
            product *= int(value if is_joined else args[index + 1])
    return product
