"""The GPUs: generation, free memory, who else is on them, slices, health.

Reports: vllm#55510 (an engine core left behind), vllm-backport#62 (ECC looks like a hang),
ninfer#72 (a power cap binds).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from kit.doctor.driver import CAPABILITY, SMI, capabilities
from kit.doctor.smi_report import GpuReport, parse
from kit.doctor.topic import FAIL, PASS, WARN, Needs, Probe, Seen, Topic, Verdict
from records.errors import FormatError

_COMPUTE = Probe(
    "compute",
    ("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"),
    timeout_s=60,
)
# The driver keeps some for itself on an idle card; an engine left behind keeps gigabytes.
_IDLE_MIB = 1_024


def _check(seen: Seen, needs: Needs) -> Iterator[Verdict]:
    if not needs.gpu or not seen.text("smi"):  # the driver's verdict says why
        return
    gpu = parse(seen.text("smi")).gpus[0]
    found = capabilities(seen.text("capability"))
    yield _capability(gpu, found, needs)
    yield _memory(gpu, needs)
    yield _foreign(seen, gpu)
    yield _mig(gpu)
    yield _health(gpu)
    yield _xid(seen.text("dmesg"))
    yield _power(gpu)


def _capability(gpu: GpuReport, found: tuple[str, ...], needs: Needs) -> Verdict:
    if not found:
        raise FormatError("nvidia-smi: no compute capability")
    want = needs.requirements.compute_capability
    text = f"{gpu.name}, {found[0]}"
    if Decimal(found[0]) < want:
        cause = f"the plan needs compute capability {want} (FP8)"
        remedy = "8.9: L4, L40S, RTX 40; 9.0: H100, H200; 10.0 and above: B200, RTX 50"
        return Verdict("gpu", FAIL, text, cause, remedy)
    if len(found) > 1:
        cause = f"{len(found)} GPUs are visible; the plan measures one"
        return Verdict("gpu", WARN, text, cause, "set CUDA_VISIBLE_DEVICES for the run")
    return Verdict("gpu", PASS, text)


def _memory(gpu: GpuReport, needs: Needs) -> Verdict:
    want = needs.requirements.gpu_memory_mib
    if gpu.memory_total_mib is None or gpu.memory_used_mib is None:
        cause = "nvidia-smi does not tell the memory in use"
        return Verdict("vram", WARN, "unreported", cause, "rent a host where it does")
    free = gpu.memory_total_mib - gpu.memory_used_mib
    found = f"{free} MiB free of {gpu.memory_total_mib}"
    if gpu.memory_total_mib < want:
        return Verdict("vram", FAIL, found, f"the plan needs {want} MiB", "rent a larger GPU")
    if free < want:
        cause = f"the plan needs {want} MiB; {gpu.memory_used_mib} MiB are taken already"
        return Verdict("vram", FAIL, found, cause, "end what holds it: nvidia-smi, kill")
    return Verdict("vram", PASS, found)


def _foreign(seen: Seen, gpu: GpuReport) -> Verdict:
    pids = compute_pids(seen.text("compute"))
    if pids:
        cause = "other processes compute on the GPU: every window would be void"
        shown = ", ".join(f"pid {pid}" for pid in pids)
        return Verdict("gpu-processes", FAIL, shown, cause, "end them, or rent the GPU alone")
    if (gpu.memory_used_mib or 0) > _IDLE_MIB:
        cause = "memory is in use by a process that this host does not show (another container)"
        found = f"{gpu.memory_used_mib} MiB by nobody visible"
        return Verdict("gpu-processes", WARN, found, cause, "rent the GPU alone")
    return Verdict("gpu-processes", PASS, "none")


def compute_pids(text: str) -> tuple[int, ...]:
    """Pids of compute processes, from `pid, used` lines."""
    pids = []
    for line in text.splitlines():
        first = line.partition(",")[0].strip()
        if first and not first.isdecimal():
            raise FormatError(f"nvidia-smi: not a pid: {line[:80]!r}")
        if first:
            pids.append(int(first))
    return tuple(pids)


def _mig(gpu: GpuReport) -> Verdict:
    if gpu.mig == "Enabled":
        cause = "the GPU is cut into instances: memory bandwidth and clocks are shared"
        return Verdict("mig", FAIL, "enabled", cause, "nvidia-smi -mig 0 (root), or another host")
    if gpu.virtualization in ("VGPU", "vGPU"):
        cause = "a virtual GPU shares its card with others"
        return Verdict("mig", WARN, "vGPU", cause, "make no claim on variance from this host")
    return Verdict("mig", PASS, f"off, {gpu.virtualization or 'no virtualization'}")


def _health(gpu: GpuReport) -> Verdict:
    wrong = []
    if gpu.ecc_volatile_uncorrectable:
        wrong.append(f"{gpu.ecc_volatile_uncorrectable} uncorrectable ECC errors since boot")
    if gpu.remapping_pending == "Yes":
        wrong.append("row remapping pending")
    if gpu.remapping_failed == "Yes":
        wrong.append("row remapping failed")
    if wrong:
        found = "; ".join(wrong)
        cause = "failing memory shows as hangs and wrong tokens"
        return Verdict("ecc", FAIL, found, cause, "reset the GPU or reboot; else another host")
    if gpu.throttling:
        cause = "the clocks are held down while nothing runs"
        return Verdict("ecc", WARN, ", ".join(gpu.throttling), cause, "rent another host")
    return Verdict("ecc", PASS, f"no errors, {gpu.remapped_uncorrectable or 0} rows remapped")


def _xid(kernel_log: str) -> Verdict:
    """NVIDIA, "Xid Errors": what the driver reports to the kernel's log. Unreadable: none seen."""
    numbers = re.findall(r"NVRM: Xid \([^)]*\): (\d+)", kernel_log)
    if not numbers:
        return Verdict("xid", PASS, "none seen")
    found = f"{len(numbers)} since boot, the last: {numbers[-1]}"
    cause = "the driver reported faults of the GPU or of a program: the next may be in a window"
    remedy = "look the number up under Xid Errors in NVIDIA's documentation; else another host"
    return Verdict("xid", WARN, found, cause, remedy)


def _power(gpu: GpuReport) -> Verdict:
    limit, default = gpu.power_limit_w, gpu.power_default_w
    if not limit or not default or watts(limit) >= watts(default):
        return Verdict("power", PASS, f"limit {limit or 'unreported'}")
    found = f"limit {limit}, {default} by default"
    cause = "the power limit was lowered: clocks fall under load, and figures are of this limit"
    remedy = f"sudo nvidia-smi -pl {watts(default).normalize():f}, or rent another host"
    return Verdict("power", WARN, found, cause, remedy)


def watts(text: str) -> Decimal:
    """`700.00 W` as a number. FormatError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) W", text)
    if match is None:
        raise FormatError(f"nvidia-smi: not a power in watts: {text!r}")
    return Decimal(match[1])


GPU = Topic((SMI, CAPABILITY, _COMPUTE), _check)
