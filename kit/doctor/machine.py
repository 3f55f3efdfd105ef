"""Kernel, processor architecture, virtual processors, and how much of the machine is really ours.

Reports: InferenceX#1582 (arm64 host, amd64 image), cluster#4879 (2 to 6 cores doubled decode),
lambda_vm#754 (a slice of a shared host adds noise).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kit.doctor.topic import FAIL, PASS, WARN, Needs, Probe, Seen, Topic, Verdict
from records.errors import FormatError

# A GPU engine keeps about this many busy: API server, engine core, detokenizer, client.
_VCPUS_GPU, _VCPUS_LEAST = 6, 2
_STEAL_WARN_PPM = 5_000

_PROBES = (
    Probe("uname", ("uname", "-sm")),
    Probe("nproc", ("nproc",)),
    Probe("cpu.max", ("cat", "/sys/fs/cgroup/cpu.max")),
    Probe("lscpu", ("lscpu",)),
    Probe("stat", ("cat", "/proc/stat")),
)


def _check(seen: Seen, needs: Needs) -> Iterator[Verdict]:
    yield _architecture(seen.text("uname"))
    yield _vcpus(seen, needs)
    yield _lscpu(seen)
    yield _slice(seen)


def _architecture(text: str) -> Verdict:
    words = text.split()
    if len(words) != 2:
        raise FormatError(f"uname -sm: want two words, got {text[:80]!r}")
    found = " ".join(words)
    if words[0] != "Linux":
        return Verdict("arch", FAIL, found, "the engine runs on Linux only", "rent a Linux host")
    if words[1] not in ("x86_64", "amd64"):
        return Verdict(
            "arch",
            FAIL,
            found,
            "image and wheels are for x86-64; emulated, every figure would be about the emulator",
            "rent an x86-64 host",
        )
    return Verdict("arch", PASS, found)


def _vcpus(seen: Seen, needs: Needs) -> Verdict:
    quota = quota_milli(seen.text("cpu.max"))
    text = seen.text("nproc")
    if not text.isdecimal():
        raise FormatError(f"nproc: want a number, got {text[:80]!r}")
    milli = min(int(text) * 1000, quota or int(text) * 1000)
    found = f"{milli / 1000:g}" + (f" (quota; {text} seen)" if quota and quota < milli + 1 else "")
    if milli < _VCPUS_LEAST * 1000:
        cause = "client and engine would run on one processor: the client would measure itself"
        return Verdict("vcpus", FAIL, found, cause, f"at least {_VCPUS_LEAST}")
    if needs.gpu and milli < _VCPUS_GPU * 1000:
        cause = "decode throughput may be bound by the processor, which no GPU metric shows"
        return Verdict("vcpus", WARN, found, cause, f"choose {_VCPUS_GPU} or more with the GPU")
    return Verdict("vcpus", PASS, found)


def quota_milli(text: str) -> int | None:
    """cgroup v2 cpu.max in thousandths of a processor; None without a limit."""
    match = re.fullmatch(r"(max|\d+) (\d+)", text.strip())
    if not text.strip() or (match and match[1] == "max"):
        return None
    if match is None or int(match[2]) == 0:
        raise FormatError(f"cpu.max: cannot read {text[:80]!r}")
    return int(match[1]) * 1000 // int(match[2])


def _lscpu(seen: Seen) -> Verdict:
    if not seen.there("lscpu"):
        cause = "torch.compile asks it for the processor's features, and fails without"
        return Verdict("lscpu", WARN, "missing", cause, "apt-get install util-linux")
    match = re.search(r"^Model name:\s*(.+)$", seen.text("lscpu"), re.MULTILINE)
    return Verdict("lscpu", PASS, match[1].strip() if match else "there")


def _slice(seen: Seen) -> Verdict:
    reasons = []
    hypervisor = re.search(r"^Hypervisor vendor:\s*(.+)$", seen.text("lscpu"), re.MULTILINE)
    steal = steal_ppm(seen.text("stat"))
    if steal > _STEAL_WARN_PPM:
        reasons.append(f"{steal / 10_000:.1f} % of processor time stolen since boot")
    if quota_milli(seen.text("cpu.max")):
        reasons.append("processor time is rationed by a cgroup quota")
    found = f"{hypervisor[1].strip()} guest" if hypervisor else "no hypervisor seen"
    if reasons:
        cause = "; ".join(reasons)
        remedy = "make no claim on variance between boots from this host, or rent a whole one"
        return Verdict("slice", WARN, found, cause, remedy)
    return Verdict("slice", PASS, found)


def steal_ppm(text: str) -> int:
    """Stolen share of all processor time since boot (proc(5), /proc/stat, 8th column)."""
    match = re.match(r"cpu +((?:\d+ ?)+)", text)
    if match is None:
        raise FormatError("/proc/stat: no line of all processors")
    ticks = [int(number) for number in match[1].split()]
    total = sum(ticks[:8])
    return ticks[7] * 1_000_000 // total if len(ticks) > 7 and total else 0


MACHINE = Topic(_PROBES, _check)
