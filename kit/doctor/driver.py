"""The NVIDIA driver: whether it answers, whether it is one, whether it runs the image's CUDA.

Reports: vllm#18813 (`unsatisfied condition: cuda>=…` after a 10 GB pull), homelab#4110 (upgraded in
its sleep), vllm#4940 (error 804 on consumer cards), Model-Optimizer#2042 (never judge by the tag).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kit.doctor.cuda_requirement import Properties, unmet
from kit.doctor.gpu_words import CUDA_PROGRAM, cuda_answer, of_cuda_on_host
from kit.doctor.smi_report import Report, parse
from kit.doctor.topic import DOCKER, FAIL, PASS, WARN, WHEELS, Needs, Probe, Seen, Topic, Verdict
from records.errors import FormatError

SMI = Probe("smi", ("nvidia-smi", "-q"), timeout_s=60)
CAPABILITY = Probe(
    "capability", ("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"), timeout_s=60
)
# No context is made on the GPU: nothing that computes there is disturbed.
_BEGIN = Probe("cuda-init", ("python3", "-I", "-S", "-c", CUDA_PROGRAM), timeout_s=60)
_PROBES = (SMI, CAPABILITY, _BEGIN, Probe("module", ("cat", "/proc/driver/nvidia/version")))
# CUDA forward compatibility exists for data-centre cards alone (CUDA compatibility guide, 2.3).
_CONSUMER = ("geforce", "titan")


def _check(seen: Seen, needs: Needs) -> Iterator[Verdict]:
    if not needs.gpu:
        return
    if not seen.there("smi"):
        cause = "the plan needs a GPU, and nvidia-smi is not there"
        yield Verdict("driver", FAIL, "no driver", cause, "rent a host with a GPU and its driver")
        return
    broken = _broken(seen)
    if broken is not None:
        yield broken
        return
    report = parse(seen.text("smi"))
    module = module_version(seen.text("module"))
    if module and module != report.driver:
        yield _mismatch(f"kernel module {module}, library {report.driver}")
        return
    yield Verdict("driver", PASS, f"{report.driver}, CUDA {report.cuda or 'unreported'}")
    yield from _cuda(report, needs, capabilities(seen.text("capability")))
    if needs.runtime != DOCKER:  # in a container it is tried: kit/doctor/gpu_container.py
        yield from _begins(seen, FAIL if needs.runtime == WHEELS else WARN)


def _begins(seen: Seen, status: str) -> Iterator[Verdict]:
    """nvidia-smi asks the driver; an engine asks CUDA, which has faults of its own."""
    if not seen.there("cuda-init") or "no ctypes" in seen.complaint("cuda-init"):
        return  # no Python to ask with
    answer = cuda_answer(seen.text("cuda-init"))
    if answer is None:
        done = seen.outputs["cuda-init"]
        said = " ".join((done.stderr or done.stdout).split())[:200] or "no answer"
        remedy = "reboot the host, or rent another"
        yield Verdict("cuda-init", status, said, "CUDA does not answer on this host", remedy)
        return
    number, devices, words = answer
    cause, remedy = of_cuda_on_host(number, devices)
    if not cause:
        yield Verdict("cuda-init", PASS, f"{devices} GPU{'s' if devices > 1 else ''}")
    else:
        yield Verdict("cuda-init", status, f"CUDA error {number}, {words}", cause, remedy)


def _broken(seen: Seen) -> Verdict | None:
    """What nvidia-smi's refusal means; None where it did not refuse."""
    said = seen.complaint("smi")
    if not said:
        return None
    if seen.is_silent("smi"):
        cause = "the driver hangs: nvidia-smi does not end"
        return Verdict("driver", FAIL, said, cause, "reboot the host, or rent another")
    if "version mismatch" in said:
        return _mismatch(said)
    if "Unknown Error" in said:
        return Verdict(
            "driver",
            FAIL,
            said,
            "the devices were taken away from this container (systemctl daemon-reload does that)",
            "restart the container; on the host, use the cgroupfs driver (nvidia-docker#1730)",
        )
    if "communicate with the NVIDIA driver" in said:
        cause = "the library is there, the kernel module is not loaded"
        return Verdict("driver", FAIL, said, cause, "install the driver, then reboot the host")
    return Verdict("driver", FAIL, said, "nvidia-smi fails", "reboot the host, or rent another")


def _mismatch(found: str) -> Verdict:
    cause = "the driver was upgraded under a running kernel (unattended-upgrades does that)"
    remedy = "reboot the host; then: apt-mark hold the nvidia packages while measuring"
    return Verdict("driver", FAIL, found, cause, remedy)


def _cuda(report: Report, needs: Needs, capability: tuple[str, ...]) -> Iterator[Verdict]:
    if needs.runtime == DOCKER and not needs.requires_cuda:
        cause = "the image lock does not say which CUDA the image needs"
        yield Verdict("cuda", WARN, report.cuda, cause, "kit images lock")
    if not needs.requires_cuda:
        return
    brand = re.sub(r"[^a-z]", "", report.gpus[0].brand.lower())
    arch = capability[0] if capability else "0"
    missing = unmet(needs.requires_cuda, Properties(report.cuda, report.driver, brand, arch))
    if not missing:
        yield Verdict("cuda", PASS, f"{report.cuda} satisfies the engine")
        return
    name = report.gpus[0].name
    consumer = any(word in f"{brand} {name.lower()}" for word in _CONSUMER)
    cause = f"the image needs {missing}; it would be pulled and then refuse to start"
    if needs.runtime == WHEELS:
        cause = f"the engine's wheels need {missing}; installed, they would find no GPU"
    elif consumer:
        cause += f"; {name} is a consumer card, so forward compatibility ends in error 804"
    yield Verdict(
        "cuda",
        FAIL,
        f"{report.cuda} by driver {report.driver}",
        cause,
        "install a newer driver, or rent a host that has one",
    )


def module_version(text: str) -> str:
    """The loaded kernel module's version, "" where there is none (open and closed module alike)."""
    if not text:
        return ""
    match = re.search(r"NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text)
    if match is None:
        raise FormatError(f"/proc/driver/nvidia/version: cannot read {text[:100]!r}")
    return match[1]


def capabilities(text: str) -> tuple[str, ...]:
    """Compute capability of each GPU."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if not re.fullmatch(r"\d+\.\d+", line)]
    if wrong:
        raise FormatError(f"nvidia-smi: not a compute capability: {wrong[0]!r}")
    return tuple(lines)


DRIVER = Topic(_PROBES, _check)
