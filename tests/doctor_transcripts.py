"""What a sound rented host answers to the probes, and how a test has it answer otherwise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from kit.doctor.examine import judge
from kit.doctor.topic import DOCKER, PASS, Needs, Seen, Verdict
from kit.hosts.host import NOT_FOUND, Done
from records.plan import Requirements

ROOT = Path(__file__).parents[1]
SMI = ROOT / "tests" / "fixtures" / "nvidia-smi"
H200 = (SMI / "h200-580.159-q.txt").read_text()
MISSING = Done(NOT_FOUND, "", "not found")
NO = Done(1, "", "")
NOW = 1_796_040_000_000_000_000
# docker info on a rented Ubuntu machine with the container toolkit, cut to what is read.
INFO: dict[str, object] = {
    "ServerVersion": "27.3.1",
    "Driver": "overlay2",
    "CgroupDriver": "cgroupfs",
    "DockerRootDir": "/var/lib/docker",
    "Runtimes": {"nvidia": {}, "runc": {}},
}
DF = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/root {} {} {} 10% {}\n"
GPU_PLAN = Requirements(14_000, 45_000, ("avx2",), Decimal("8.9"), 22_000)
CPU_PLAN = Requirements(2_000, 6_000, ("avx2",), Decimal(0), 0)
VLLM_CUDA = (
    "cuda>=13.0 brand=unknown,driver>=535,driver<536 brand=tesla,driver>=535,driver<536 "
    "brand=tesla,driver>=570,driver<571"
)
NEEDS = Needs(GPU_PLAN, DOCKER, 10 << 30, VLLM_CUDA)


def done(text: str) -> Done:
    return Done(0, text, "")


def df(available_gib: int, size_gib: int = 200, mounted_on: str = "/") -> Done:
    sizes = (size_gib << 20, (size_gib - available_gib) << 20, available_gib << 20)
    return done(DF.format(*sizes, mounted_on))


def healthy() -> dict[str, Done]:
    """A rented H200 with everything in order."""
    return {
        "uname": done("Linux x86_64\n"),
        "nproc": done("16\n"),
        "cpu.max": done("max 100000\n"),
        "lscpu": done("Model name:   INTEL(R) XEON(R) PLATINUM 8558\nHypervisor vendor:  KVM\n"),
        "stat": done("cpu  1000 0 1000 100000 0 0 0 0 0 0\ncpu0 1 2 3\n"),
        "version": done("Linux version 6.8.0-60-generic (buildd@lcy02) #63-Ubuntu SMP\n"),
        "dmesg": Done(1, "", "dmesg: read kernel buffer failed: Operation not permitted"),
        "dockerenv": NO,
        "containerenv": NO,
        "kubernetes": NO,
        "mounts": done("/dev/vda1 / ext4 rw,relatime 0 0\nproc /proc proc rw 0 0\n"),
        "manager": Done(1, "", "cat: /run/systemd/container: No such file or directory"),
        "locks": done("1: FLOCK  ADVISORY  WRITE 812 fd:01:4711 0 EOF\n"),
        "dpkg-lock": done("262147\n"),
        "runpod": NO,
        "vast": NO,
        "smi": done(H200),
        "capability": done("9.0\n"),
        "module": done(
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n"
            "GCC version:  gcc version 13.3.0\n"
        ),
        "compute": done(""),
        "cuda-init": done("kit-cuda 0 1 \n"),
        "docker": done(json.dumps(INFO)),
        "toolkit": done("cli-version: 1.17.0\n"),
        "image": Done(1, "", "Error: No such image"),
        "df-docker": df(100),
        "home-directory": done(""),
        "home-writable": done(""),
        "df-home": df(100),
        "df-shm": df(60),
        "nvcc": done("Cuda compilation tools, release 13.0, V13.0.48\n"),
        "ninja": done("1.11.1\n"),
        "g++": done("g++ 13\n"),
        "id": done("1000\n"),
        "sudo": done(""),
        "clock": done(f"{NOW // 10**9} {NOW % 10**9:09d}\n"),
    }


def seen(changes: Mapping[str, Done | str] | None = None) -> Seen:
    outputs = healthy()
    for name, value in (changes or {}).items():
        assert name in outputs
        outputs[name] = done(value) if isinstance(value, str) else value
    return Seen(outputs, (NOW - 5_000_000, NOW + 5_000_000))


def docker(**changes: object) -> Done:
    return done(json.dumps({**INFO, **changes}))


def verdicts(
    changes: Mapping[str, Done | str] | None = None, needs: Needs = NEEDS
) -> list[Verdict]:
    return [v for v in judge(seen(changes), needs) if v.status != PASS]


def smi(*edits: tuple[str, str]) -> str:
    text = H200
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text
