"""The examination on transcripts: real nvidia-smi captures, and outputs from the public reports."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from doctor_transcripts import (
    CPU_PLAN,
    GPU_PLAN,
    MISSING,
    NEEDS,
    NOW,
    VLLM_CUDA,
    df,
    docker,
    done,
    healthy,
    seen,
    smi,
    verdicts,
)

from kit.doctor.examine import TOPICS, choose_runtime, judge
from kit.doctor.topic import DOCKER, FAIL, PASS, WARN, WHEELS, Needs
from kit.hosts.host import TIMED_OUT, Done


def test_a_sound_host_passes_everything() -> None:
    assert verdicts() == []
    found = judge(seen(), NEEDS)
    assert choose_runtime(found, Needs(GPU_PLAN)) == DOCKER
    assert len({v.check for v in found}) == len(found), "one line a check"


def test_every_probe_is_asked_for_in_the_transcripts() -> None:
    assert {p.name for topic in TOPICS for p in topic.probes} == healthy().keys()


GONE = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95"
LOST = "Failed to initialize NVML: Unknown Error"
DENIED = "permission denied while trying to connect to the Docker daemon socket at unix:///var/run"
DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon"
# What it prints of a daemon that it may not ask, cut to what is read.
NOBODY = {"ServerVersion": "", "Driver": "", "DockerRootDir": "", "Runtimes": None}
SILENT = Done(TIMED_OUT, "", "it: no end after 30 s, nor when it was killed")
ECC = ("DRAM Uncorrectable                         : 0", "DRAM Uncorrectable : 3")

CASES: list[tuple[str, Mapping[str, Done | str], str, str, str]] = [
    # report, what the host answers, check, status, words of cause or remedy
    ("InferenceX#1582", {"uname": "Linux aarch64"}, "arch", FAIL, "x86-64"),
    ("macOS", {"uname": "Darwin x86_64"}, "arch", FAIL, "Linux"),
    ("cluster#4879", {"nproc": "2"}, "vcpus", WARN, "bound by the processor"),
    ("one vCPU", {"nproc": "1"}, "vcpus", FAIL, "measure itself"),
    ("cgroup quota", {"cpu.max": "150000 100000"}, "vcpus", FAIL, "measure itself"),
    ("lambda_vm#754", {"stat": "cpu  10 0 10 100 0 0 0 40 0 0\n"}, "slice", WARN, "variance"),
    ("lscpu", {"lscpu": MISSING}, "lscpu", WARN, "util-linux"),
    (
        "gVisor, by /proc/version",
        {"version": "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"},
        "kernel",
        FAIL,
        "not supported",
    ),
    ("gVisor, by dmesg", {"dmesg": "[    0.000000] Starting gVisor..."}, "kernel", FAIL, "sandbox"),
    (
        "skypilot#3096",
        {"dockerenv": done(""), "runpod": "abc123", "docker": MISSING},
        "container",
        FAIL,
        "--runtime wheels",
    ),
    (
        "skypilot#3096, a pod without marks",
        {"mounts": "overlay / overlay rw,lowerdir=/a:/b 0 0\n", "docker": MISSING},
        "container",
        FAIL,
        "--runtime wheels",
    ),
    (
        "skypilot#3096, LXC",
        {"manager": "lxc\n", "docker": MISSING},
        "container",
        FAIL,
        "--runtime wheels",
    ),
    (
        "skypilot#554",
        {"locks": "9: POSIX  ADVISORY  WRITE 1390 fd:01:262147 0 EOF\n"},
        "updates",
        WARN,
        "never delete",
    ),
    ("nvidia-smi hangs", {"smi": SILENT}, "driver", FAIL, "the driver hangs"),
    ("df hangs on a dead mount", {"df-home": SILENT}, "df-home", FAIL, "nobody knows"),
    ("lscpu hangs", {"lscpu": SILENT}, "answers", WARN, "hang there, too"),
    ("homelab#4110", {"smi": Done(18, GONE, "")}, "driver", FAIL, "reboot"),
    (
        "homelab#4110, by the module",
        {"module": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.126.20  Mon Jan\n"},
        "driver",
        FAIL,
        "reboot",
    ),
    ("nvidia-docker#1730", {"smi": Done(255, "", LOST)}, "driver", FAIL, "restart the container"),
    (
        "no kernel module",
        {
            "smi": Done(
                9,
                "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
                "",
            )
        },
        "driver",
        FAIL,
        "not loaded",
    ),
    ("no driver", {"smi": MISSING, "capability": MISSING}, "driver", FAIL, "needs a GPU"),
    (
        "vllm#18813",
        {
            "smi": smi(
                (
                    "CUDA Version                                           : 13.0",
                    "CUDA Version : 12.4",
                )
            )
        },
        "cuda",
        FAIL,
        "cuda>=13.0",
    ),
    (
        "vllm#4940",
        {
            "smi": smi(
                (
                    "CUDA Version                                           : 13.0",
                    "CUDA Version : 12.4",
                ),
                (
                    "Product Name                                       : NVIDIA H200",
                    "Product Name : NVIDIA GeForce RTX 4090",
                ),
                (
                    "Product Brand                                      : NVIDIA",
                    "Product Brand : GeForce",
                ),
            )
        },
        "cuda",
        FAIL,
        "error 804",
    ),
    ("A100", {"capability": "8.0\n"}, "gpu", FAIL, "8.9"),
    ("two GPUs", {"capability": "9.0\n9.0\n"}, "gpu", WARN, "CUDA_VISIBLE_DEVICES"),
    (
        "memory taken",
        {
            "smi": smi(
                ("Used                                           : 0 MiB", "Used : 130000 MiB")
            )
        },
        "vram",
        FAIL,
        "taken already",
    ),
    ("vllm#55510", {"compute": "4242, 131000\n"}, "gpu-processes", FAIL, "void"),
    (
        "another container",
        {"smi": smi(("Used                                           : 0 MiB", "Used : 9000 MiB"))},
        "gpu-processes",
        WARN,
        "another container",
    ),
    (
        "MIG",
        {
            "smi": smi(
                ("Current                                        : Disabled", "Current : Enabled")
            )
        },
        "mig",
        FAIL,
        "instances",
    ),
    (
        "vGPU",
        {
            "smi": smi(
                (
                    "Virtualization Mode                            : Pass-Through",
                    "Virtualization Mode : VGPU",
                )
            )
        },
        "mig",
        WARN,
        "variance",
    ),
    ("vllm-backport#62", {"smi": smi(ECC)}, "ecc", FAIL, "another host"),
    (
        "row remapping",
        {"smi": smi(("Pending                                        : No", "Pending : Yes"))},
        "ecc",
        FAIL,
        "reset the GPU",
    ),
    (
        "vllm-backport#62, by the kernel's log",
        {"dmesg": "[ 812.1] NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus."},
        "xid",
        WARN,
        "another host",
    ),
    (
        "ninfer#72",
        {
            "smi": smi(
                (
                    "Current Power Limit                            : 700.00 W",
                    "Current Power Limit : 450.00 W",
                )
            )
        },
        "power",
        WARN,
        "nvidia-smi -pl 700",
    ),
    (
        "clocks held down at rest",
        {
            "smi": smi(
                (
                    "HW Thermal Slowdown                        : Not Active",
                    "HW Thermal Slowdown : Active",
                )
            )
        },
        "ecc",
        WARN,
        "another host",
    ),
    ("docker missing", {"docker": MISSING}, "docker", FAIL, "apt-get install docker.io"),
    ("analogsea#78", {"docker": Done(1, "", DENIED)}, "docker", FAIL, "usermod -aG docker"),
    (
        "analogsea#78, newer client",
        {"docker": Done(1, json.dumps({"ServerErrors": [DENIED]}), "")},
        "docker",
        FAIL,
        "log out",
    ),
    (
        "analogsea#78, Docker 28's client",
        {"docker": Done(1, json.dumps({**NOBODY, "ServerErrors": None}), f"{DENIED}/docker.sock")},
        "docker",
        FAIL,
        "usermod -aG docker",
    ),
    ("daemon down", {"docker": Done(1, "", DAEMON)}, "docker", FAIL, "systemctl start docker"),
    (
        "nvidia-docker#1034",
        {"docker": docker(Runtimes={"runc": {}}), "toolkit": MISSING},
        "gpu-containers",
        FAIL,
        "nvidia-container-toolkit",
    ),
    (
        "nvidia-docker#1730, before it happens",
        {"docker": docker(CgroupDriver="systemd")},
        "cgroup-driver",
        WARN,
        "cgroupfs",
    ),
    ("NemoClaw#9105", {"df-docker": df(10)}, "disk-docker", FAIL, "larger disk"),
    (
        "NemoClaw#9105, one disk for both",
        {"df-docker": df(35), "df-home": df(35)},
        "disk-docker",
        FAIL,
        "the same disk",
    ),
    ("full home", {"df-home": df(1)}, "disk", FAIL, "KIT_HOME"),
    ("read-only home", {"home-writable": Done(1, "", "")}, "home", FAIL, "KIT_HOME"),
    ("a file as home", {"home-directory": Done(1, "", "")}, "home", FAIL, "file in its place"),
    (
        "dstack#1381",
        {"sudo": Done(1, "", "sudo: a password is required\n")},
        "sudo",
        WARN,
        "needs no root",
    ),
    ("clock", {"clock": f"{NOW // 10**9 - 90} 000000000"}, "clock", WARN, "set-ntp"),
]


@pytest.mark.parametrize(
    ("changes", "check", "status", "words"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_what_goes_wrong_out_there(
    changes: Mapping[str, Done | str], check: str, status: str, words: str
) -> None:
    found = {v.check: v for v in verdicts(changes)}
    assert check in found, found
    assert found[check].status == status
    assert words in f"{found[check].cause} {found[check].remedy}"
    assert found[check].remedy


@pytest.mark.parametrize("name", sorted(healthy()))
def test_an_answer_that_cannot_be_read_is_a_verdict_and_never_a_pass(name: str) -> None:
    """Nonsense in place of any answer: nothing crashes, nothing is guessed, the others go on."""
    found = judge(seen({name: "%% nonsense %%"}), NEEDS)
    assert {v.check for v in found} >= {"kernel", "sudo"} or name in ("version", "sudo")
    silent = {
        "version",
        "mounts",
        "manager",
        "locks",
        "lscpu",
        "runpod",
        "vast",
        "toolkit",
        "sudo",
        "dockerenv",
    }
    silent |= {"containerenv", "kubernetes", "dmesg", "id", "nvcc", "ninja", "g++", "df-shm"}
    silent |= {"home-directory", "home-writable", "image", "cuda-init"}
    if name not in silent:
        assert [v for v in found if v.check == "unreadable"], name


def test_a_pod_is_offered_the_wheels_runtime() -> None:
    pod: dict[str, Done | str] = {"dockerenv": done(""), "runpod": "x", "docker": MISSING}
    needs = Needs(GPU_PLAN, "", 10 << 30, VLLM_CUDA)
    found = judge(seen(pod), needs)
    assert choose_runtime(found, needs) == WHEELS
    assert not [v for v in found if v.status == FAIL]


def test_a_pod_with_a_small_shm_or_without_compilers_is_warned() -> None:
    needs = Needs(GPU_PLAN, WHEELS)
    small = df(0, size_gib=0)
    found = {v.check: v for v in verdicts({"df-shm": small, "ninja": MISSING}, needs)}
    assert found["shm"].status == WARN
    assert "--shm-size" in found["shm"].remedy
    assert "ninja" in found["jit"].found


def test_a_cpu_plan_asks_nothing_of_gpus() -> None:
    bare: dict[str, Done | str] = {"smi": MISSING, "capability": MISSING, "compute": MISSING}
    assert verdicts({**bare, "nproc": "2", "docker": MISSING}, Needs(CPU_PLAN, WHEELS)) == []


def test_an_unresolved_lock_is_said_so() -> None:
    found = {v.check: v for v in verdicts(needs=Needs(GPU_PLAN, DOCKER))}
    assert {v.remedy for v in found.values()} == {"kit images lock"}
    assert set(found) == {"cuda", "disk-docker"}


def test_an_image_that_is_there_needs_no_room() -> None:
    there: dict[str, Done | str] = {"image": "sha256:0a1b", "df-docker": df(3)}
    found = {v.check: v for v in judge(seen(there), NEEDS)}
    assert found["disk-docker"].status == PASS
    assert "the image is there" in found["disk-docker"].found
