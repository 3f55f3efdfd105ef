"""Whether a host can carry out a plan: pure rules over what was probed.

Invariant: every cause is told at once, each with its remedy, before anything is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kit.hosts.facts import HostFacts
from records.errors import HostUnfitError
from records.plan import Plan, Requirements

ENGINE_PYTHON = "3.11"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that stands in the way."""

    cause: str
    remedy: str


def problems(
    facts: HostFacts,
    requirements: Requirements,
    needs: frozenset[str],
    installed_mib: int = 0,
    plan_id: str = "PLAN",
) -> Iterator[Problem]:
    """What the host lacks. `needs`: programs the engine calls; `installed_mib`: there already."""
    if facts.system != "Linux":
        yield Problem(
            f"the engine runs on Linux, this host is {facts.system}", "name a Linux host: HOST=…"
        )
    if facts.machine not in ("x86_64", "amd64"):
        yield Problem(
            f"the engine's wheels are for x86-64, this host is {facts.machine}",
            "name an x86-64 host: HOST=…",
        )
    missing = [flag for flag in requirements.cpu_flags if flag not in facts.cpu_flags]
    if missing:
        yield Problem(
            f"the processor lacks {', '.join(missing)}", "choose a host whose processor has it"
        )
    if facts.memory_available_mib < requirements.memory_mib:
        yield Problem(
            f"{facts.memory_available_mib} MiB of memory available, "
            f"{requirements.memory_mib} MiB needed",
            "end other programs, or choose a host with more memory",
        )
    disk_mib = max(0, requirements.disk_mib - installed_mib)
    if facts.disk_free_mib < disk_mib:
        yield Problem(
            f"{facts.disk_free_mib} MiB of disk free, {disk_mib} MiB needed",
            "free space, or put the kit's working directory on another disk: KIT_HOME=…",
        )
    if not _has_engine_python(facts):
        yield Problem(
            f"no Python {ENGINE_PYTHON} and no uv to bring one",
            f"apt-get install python{ENGINE_PYTHON}-venv, or: pip install uv",
        )
    for tool in sorted(needs - facts.tools):
        yield Problem(f"the engine needs {tool} at run time", "apt-get install g++")
    yield from _gpu_problems(facts, requirements, plan_id)


def require_fit(
    facts: HostFacts, plan: Plan, needs: frozenset[str], installed_mib: int = 0
) -> None:
    """HostUnfitError with every problem, or nothing."""
    found = list(problems(facts, plan.requirements, needs, installed_mib, plan.id))
    if found:
        causes = "".join(f"\n  - {p.cause}" for p in found)
        remedies = "; ".join(dict.fromkeys(p.remedy for p in found))
        raise HostUnfitError(f"this host cannot carry out plan {plan.id}:{causes}", remedies)


def _has_engine_python(facts: HostFacts) -> bool:
    return "uv" in facts.tools or any(
        version.startswith(f"{ENGINE_PYTHON}.") for version in facts.pythons
    )


def _gpu_problems(facts: HostFacts, requirements: Requirements, plan_id: str) -> Iterator[Problem]:
    if requirements.compute_capability == 0 and requirements.gpu_memory_mib == 0:
        return
    if facts.gpu_words:
        yield Problem(
            f"the plan needs a GPU, and nvidia-smi says: {facts.gpu_words!r}",
            "make nvidia-smi list the GPUs (kit doctor tells more), or choose another host",
        )
        return
    if not facts.gpus:
        yield Problem(
            "the plan needs a GPU, and nvidia-smi shows none",
            f"name a host with one: make reproduce PLAN={plan_id} HOST=user@host; without a line "
            f"to it: kit bundle build --plan {plan_id} and kit job --plan {plan_id}",
        )
        return
    best = max(facts.gpus, key=lambda gpu: (gpu.compute_capability, gpu.memory_mib))
    if best.compute_capability < requirements.compute_capability:
        yield Problem(
            f"compute capability {best.compute_capability}, "
            f"{requirements.compute_capability} needed",
            "choose a newer GPU (8.9: L4, L40S, RTX 40; 9.0: H100, H200)",
        )
    if best.memory_mib < requirements.gpu_memory_mib:
        yield Problem(
            f"{best.memory_mib} MiB of GPU memory, {requirements.gpu_memory_mib} MiB needed",
            "choose a GPU with more memory",
        )
