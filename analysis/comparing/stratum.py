"""What runs must share to be one: plan, harness, engine, driver, accelerator; the host is apart.

Invariant: runs of two strata are never pooled; a host is no stratum but a random effect within one
(records/schema.py names what must agree).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from analysis.claiming.reading import StudyRun
from analysis.facts import parts
from records import schema

CPU = "CPU"
_ABSENT = "absent"
# GPU -> compute capability, for records from before it was asked for. Source: NVIDIA, "CUDA GPU
# Compute Capability", developer.nvidia.com/cuda-gpus. By a word of the GPU's name.
_CAPABILITIES = {
    "T4": "7.5",
    **dict.fromkeys(("A100", "A30"), "8.0"),
    **dict.fromkeys(("A2", "A10", "A10G", "A16", "A40"), "8.6"),
    **dict.fromkeys(("L4", "L20", "L40", "L40S", "Ada"), "8.9"),
    **dict.fromkeys(("H100", "H200", "H800", "H20", "GH200"), "9.0"),
    **dict.fromkeys(("B200", "GB200"), "10.0"),
}
_GEFORCE = {"30": "8.6", "40": "8.9", "50": "12.0"}


class _Decided(Protocol):
    @property
    def decided(self) -> schema.EngineDecided | None: ...


class Recorded(Protocol):
    """What of a run decides its stratum."""

    @property
    def started(self) -> schema.RunStarted: ...
    @property
    def hosts(self) -> Sequence[schema.HostObserved]: ...
    @property
    def engines(self) -> Sequence[schema.EngineBound]: ...
    @property
    def boots(self) -> Sequence[_Decided]: ...


@dataclass(frozen=True, order=True, slots=True)
class Stratum:
    """What is the same in all runs that count as one. `binding`: runtime and digest of the engine.

    `accelerator`: the GPU's name, or the processor's where there is none. `capability`: as the run
    recorded it, else by the GPU's name; "unknown" where neither tells, CPU without a GPU.
    """

    plan: str
    plan_digest: str
    accelerator: str
    capability: str
    driver: str
    cuda: str
    engine: str
    binding: str
    harness: str
    format: int
    synthetic: bool

    def __str__(self) -> str:
        what = self.engine if self.capability == CPU else f"driver {self.driver}, {self.engine}"
        return f"{'SYNTHETIC, ' if self.synthetic else ''}{self.accelerator}, {what}"

    def differences(self, other: Stratum) -> Iterator[tuple[str, str, str]]:
        """What keeps a comparison of two strata from being one of like with like: name, both.

        Plans are held against each other arm by arm and window by window elsewhere; harness and
        binding digests may differ, since the engine's version is what the comparison speaks of.
        """
        for name in ("synthetic", "engine", "accelerator", "driver", "cuda"):
            one, two = getattr(self, name), getattr(other, name)
            if one != two:
                yield name, str(one), str(two)


def stratum_of(run: Recorded) -> Stratum:
    """The stratum of a run, by what it first recorded of its host, or of each of its hosts."""
    started, plan = run.started, run.started.plan
    firsts = list({host.host_id: host.facts for host in reversed(run.hosts)}.values())[::-1] or [{}]
    accelerators = {_accelerator(facts) for facts in firsts}
    name = " and ".join(sorted({name for name, _ in accelerators}))
    capabilities = {capability for _, capability in accelerators}
    capability = capabilities.pop() if len(capabilities) == 1 else "unknown"
    versions = sorted({b.decided.version for b in run.boots if b.decided is not None})
    first = run.engines[0] if run.engines else None
    return Stratum(
        plan.id,
        str(started.plan_digest),
        name,
        capability,
        _all(firsts, "driver"),
        _all(firsts, "cuda"),
        f"{plan.engine.name} {' and '.join(versions) or plan.engine.version}",
        f"{first.runtime} {first.digest}" if first else "unbound",
        str(started.harness_digest),
        started.format,
        started.synthetic,
    )


def by_stratum(runs: Iterable[StudyRun]) -> list[tuple[Stratum, list[StudyRun]]]:
    """Runs by what they share, in order of stratum, each group in order of run id."""
    found: dict[Stratum, list[StudyRun]] = {}
    for run in sorted(runs, key=lambda run: run.run_id):
        found.setdefault(stratum_of(run), []).append(run)
    return sorted(found.items(), key=lambda item: item[0])


def capability_of(gpu: str) -> str:
    """The compute capability of a GPU by its name; "unknown" where the table does not tell."""
    words = re.split(r"[^A-Za-z0-9]+", gpu)
    for word in words:
        if word in _CAPABILITIES:
            return _CAPABILITIES[word]
        if "GeForce" in words and word[:2] in _GEFORCE and word.isdecimal():
            return _GEFORCE[word[:2]]
    return "unknown"


def _all(facts: Iterable[Mapping[str, object]], name: str) -> str:
    return " and ".join(sorted({str(one.get(name, _ABSENT)) for one in facts}))


def _by_name(gpu: dict[str, object]) -> str:
    return capability_of(str(gpu.get("name")))


def _accelerator(facts: Mapping[str, object]) -> tuple[str, str]:
    gpus = parts(facts, "gpus")
    if gpus:
        names = sorted({str(gpu.get("name")) for gpu in gpus})
        found = {str(gpu.get("compute_capability") or _by_name(gpu)) for gpu in gpus}
        return " and ".join(names), found.pop() if len(found) == 1 else "unknown"
    cpu = facts.get("cpu")
    return str(cpu.get("model", _ABSENT)) if isinstance(cpu, dict) else "unnamed CPU", CPU
