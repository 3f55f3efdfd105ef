"""Refusals of daemon, toolkit and CUDA, as they were reported, and what they are taken for."""

from __future__ import annotations

import pytest

from kit.doctor.gpu_words import cannot_look, cuda_answer, of_cuda, of_smi, refusal

HOOK = (
    "failed to create task for container: failed to create shim task: OCI runtime create failed: "
    "runc create failed: unable to start container process: error during container init: "
    "error running prestart hook #0: exit status 1, stdout: , stderr: "
)
NO_PROGRAM = (
    "failed to create shim task: OCI runtime create failed: runc create failed: unable to start "
    'container process: exec: "nvidia-smi": executable file not found in $PATH: unknown'
)
NO_RUNTIME = (
    "failed to create task for container: failed to start shim: fork/exec "
    '/usr/bin/nvidia-container-runtime: exec: "nvidia-container-runtime": executable file not '
    "found in $PATH: unknown"
)
BPF = (
    f"{HOOK}nvidia-container-cli: mount error: failed to add device rules: unable to find any "
    "existing device filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: "
    "operation not permitted"
)


@pytest.mark.parametrize(
    ("said", "cause", "remedy"),
    [
        (
            'could not select device driver "" with capabilities: [[gpu]]',
            "no driver for GPUs",
            "nvidia-container-toolkit",
        ),
        (
            "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all",
            "CDI",
            "nvidia-ctk cdi generate",
        ),
        (
            (
                f"{HOOK}nvidia-container-cli: initialization error: nvml error: driver/library "
                "version mismatch"
            ),
            "exchanged",
            "reboot",
        ),
        (
            f"{HOOK}nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.9",
            "newer driver",
            "newer driver",
        ),
        (
            (
                f"{HOOK}nvidia-container-cli: initialization error: driver error: failed to "
                "process request"
            ),
            "does not find the host's driver",
            "nvidia-smi",
        ),
        (BPF, "cgroup", "no-cgroups"),
        (NO_RUNTIME, "the toolkit fails", "journalctl"),
        ("mount /var/lib/docker/overlay2: no space left on device", "full", "docker system df"),
        ("something that nobody knows yet", "no container with a GPU", "journalctl"),
    ],
    ids=range(9),
)
def test_each_refusal_has_a_cause_and_a_remedy(said: str, cause: str, remedy: str) -> None:
    found = refusal(said)
    assert cause in found[0]
    assert remedy in found[1]


def test_an_image_without_the_program_is_no_fault_of_the_gpus() -> None:
    assert cannot_look(NO_PROGRAM, "nvidia-smi")
    assert cannot_look('exec: "/opt/bin/python3": stat: no such file or directory', "python3")
    assert not cannot_look(NO_RUNTIME, "nvidia-smi")
    assert not cannot_look(f"{HOOK}nvidia-smi: no such file or directory", "nvidia-smi")


@pytest.mark.parametrize("status", [-1, 100, 802, 803, 804, 999, 46])
def test_every_answer_of_cuda_but_success_is_a_fault(status: int) -> None:
    cause, remedy = of_cuda(status, 0)
    assert cause
    assert remedy
    assert of_cuda(0, 1) == ("", "")
    assert of_cuda(0, 0) == of_cuda(100, 0), "no device is no success"


def test_answers_are_found_among_other_words() -> None:
    assert cuda_answer("a warning\nkit-cuda 804 0 forward compatibility\n") == (
        804,
        0,
        "forward compatibility",
    )
    assert cuda_answer("kit-cuda -1 0 libcuda.so.1: cannot open")[0] == -1
    assert cuda_answer("Traceback (most recent call last)") is None


def test_an_nvidia_smi_that_fails_inside() -> None:
    assert "cgroupfs" in of_smi("Failed to initialize NVML: Unknown Error")[1]
    assert "cdi generate" in of_smi("Failed to initialize NVML: Driver/library version mismatch")[1]
    assert "host first" in of_smi("No devices were found")[1]
