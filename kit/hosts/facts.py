"""What a host is, read from the output of a few standard commands.

Invariant: each probe is a command and a pure parser; output that does not parse raises
HostUnfitError with a remedy, a command that is not there leaves its output empty, which stands for
"none" where that is possible. What nvidia-smi says matters to plans that need a GPU alone, so words
of its own instead of GPUs are kept as a fact, not raised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from records.errors import HostUnfitError


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: compute capability and memory."""

    compute_capability: Decimal
    memory_mib: int


@dataclass(frozen=True, slots=True)
class HostFacts:
    """A host before anything is installed. `pythons`: versions found; `tools`: programs found.

    `gpu_words`: what nvidia-smi said where that was not a list of GPUs.
    """

    system: str
    machine: str
    cpu_flags: frozenset[str]
    memory_available_mib: int
    disk_free_mib: int
    pythons: tuple[str, ...]
    tools: frozenset[str]
    gpus: tuple[Gpu, ...]
    gpu_words: str = ""


# `{}` is the directory whose disk is meant. Run in the C locale; a missing program is no error.
PROBES: dict[str, tuple[str, ...]] = {
    "uname": ("uname", "-sm"),
    "cpuinfo": ("cat", "/proc/cpuinfo"),
    "meminfo": ("cat", "/proc/meminfo"),
    "cgroup_max": ("cat", "/sys/fs/cgroup/memory.max"),
    "cgroup_now": ("cat", "/sys/fs/cgroup/memory.current"),
    "disk": ("df", "-Pk", "{}"),
    "python3": ("python3", "--version"),
    "python3.11": ("python3.11", "--version"),
    "gcc": ("gcc", "--version"),
    "g++": ("g++", "--version"),
    "uv": ("uv", "--version"),
    "gpu": (
        "nvidia-smi",
        "--query-gpu=compute_cap,memory.total",
        "--format=csv,noheader,nounits",
    ),
}
# nvidia-smi without its persistence daemon takes some seconds a GPU; a broken driver lets it hang.
PROBE_TIMEOUT_S = 30
_TOOLS = ("gcc", "g++", "uv")
_NOT_FOUND = 127  # as a shell has it
_SHOWN_CHARACTERS = 200
_REMEDY = "put the system's own programs on PATH, or choose another host"


def heard(name: str, status: int, stdout: str, stderr: str) -> str:
    """What `parse` is given of a probe that has ended: its output, nothing where it failed.

    A failed nvidia-smi says why, on either stream; those words are the fact.
    """
    if status == 0:
        return stdout
    if name == "gpu" and status != _NOT_FOUND:
        return f"{stdout}\n{stderr}".strip() or f"nvidia-smi: exit status {status}"
    return ""


def parse(outputs: Mapping[str, str]) -> HostFacts:
    """The facts in the probes' outputs, keyed as PROBES. HostUnfitError names the probe."""
    system, machine = _uname(outputs["uname"])
    gpus, gpu_words = _gpus(outputs["gpu"])
    return HostFacts(
        system=system,
        machine=machine,
        cpu_flags=_cpu_flags(outputs["cpuinfo"]),
        memory_available_mib=_memory(outputs),
        disk_free_mib=_disk(outputs["disk"]),
        pythons=tuple(
            match[1]
            for name in ("python3", "python3.11")
            if (match := re.search(r"Python (\d+\.\d+\.\d+)", outputs[name]))
        ),
        tools=frozenset(name for name in _TOOLS if outputs[name].strip()),
        gpus=gpus,
        gpu_words=gpu_words,
    )


def _uname(text: str) -> tuple[str, str]:
    words = text.split()
    if len(words) != 2:
        raise HostUnfitError(f"uname -sm: want two words, got {text[:80]!r}", _REMEDY)
    return words[0], words[1]


def _cpu_flags(text: str) -> frozenset[str]:
    match = re.search(r"^(?:flags|Features)\s*: (.*)$", text, re.MULTILINE)
    if match is None:
        raise HostUnfitError("/proc/cpuinfo: no line with the processor's flags", _REMEDY)
    return frozenset(match[1].split())


def _memory(outputs: Mapping[str, str]) -> int:
    """MemAvailable, or what a cgroup leaves of it, in MiB."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", outputs["meminfo"], re.MULTILINE)
    if match is None:
        raise HostUnfitError("/proc/meminfo: no MemAvailable", _REMEDY)
    available = int(match[1]) // 1024
    limit, used = outputs["cgroup_max"].strip(), outputs["cgroup_now"].strip()
    if limit.isdecimal() and used.isdecimal():
        available = min(available, max(0, int(limit) - int(used)) >> 20)
    return available


def _disk(text: str) -> int:
    """The "Available" column of `df -Pk` (POSIX), in MiB."""
    lines = text.strip().splitlines()
    match = re.search(r"\s(\d+)\s+(\d+)\s+(-?\d+)\s+\d+%\s", lines[-1]) if lines else None
    if match is None:
        raise HostUnfitError(
            f"df -Pk: no line of sizes in {text[:120]!r}",
            "put the kit's working directory on a disk of which df tells the size: KIT_HOME=…",
        )
    return max(0, int(match[3])) // 1024


def _gpus(text: str) -> tuple[tuple[Gpu, ...], str]:
    """The GPUs, and "" or the words that stood there instead."""
    gpus = []
    for line in text.strip().splitlines():
        match = re.fullmatch(r"\s*(\d+\.\d+)\s*,\s*(\d+)\s*", line)
        if match is None:
            return (), text.strip()[:_SHOWN_CHARACTERS]
        gpus.append(Gpu(Decimal(match[1]), int(match[2])))
    return tuple(gpus), ""
