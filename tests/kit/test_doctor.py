"""The examination on transcripts: real nvidia-smi captures, and outputs from the public reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from kit.doctor import smi_report
from kit.doctor.clock import offset_ns
from kit.doctor.cuda_requirement import Properties, unmet
from kit.doctor.disk import needed_bytes
from kit.doctor.examine import TOPICS, choose_runtime, fit, judge, look
from kit.doctor.machine import quota_milli, steal_ppm
from kit.doctor.topic import DOCKER, FAIL, PASS, WARN, WHEELS, Needs, Seen, Verdict
from kit.hosts.host import NOT_FOUND, Done
from kit.hosts.names import LocalHost
from kit.main import main
from kit.planning.plan_file import load_plan
from records.errors import FormatError, HostUnfitError
from records.plan import Requirements

ROOT = Path(__file__).parents[2]
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
DF = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/root {} {} {} 10% /\n"
GPU_PLAN = Requirements(14_000, 45_000, ("avx2",), Decimal("8.9"), 22_000)
CPU_PLAN = Requirements(2_000, 6_000, ("avx2",), Decimal(0), 0)
VLLM_CUDA = (
    "cuda>=13.0 brand=unknown,driver>=535,driver<536 brand=tesla,driver>=535,driver<536 "
    "brand=tesla,driver>=570,driver<571"
)
NEEDS = Needs(GPU_PLAN, DOCKER, 10 << 30, VLLM_CUDA)


def done(text: str) -> Done:
    return Done(0, text, "")


def df(available_gib: int, size_gib: int = 200) -> Done:
    sizes = (size_gib << 20, (size_gib - available_gib) << 20, available_gib << 20)
    return done(DF.format(*sizes))


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
        "init": done("systemd\n"),
        "runpod": NO,
        "vast": NO,
        "smi": done(H200),
        "capability": done("9.0\n"),
        "module": done(
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n"
            "GCC version:  gcc version 13.3.0\n"
        ),
        "compute": done(""),
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
    silent = {"version", "init", "lscpu", "runpod", "vast", "toolkit", "sudo", "dockerenv"}
    silent |= {"containerenv", "kubernetes", "dmesg", "id", "nvcc", "ninja", "g++", "df-shm"}
    silent |= {"home-directory", "home-writable", "image"}
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


def test_real_captures_are_read() -> None:
    report = smi_report.parse(H200)
    assert (report.driver, report.cuda) == ("580.159.04", "13.0")
    (gpu,) = report.gpus
    assert gpu.name == "NVIDIA H200"
    assert (gpu.memory_total_mib, gpu.memory_used_mib) == (143_771, 0)
    assert (gpu.mig, gpu.virtualization) == ("Disabled", "Pass-Through")
    assert gpu.ecc_volatile_uncorrectable == 0
    assert (gpu.remapping_pending, gpu.remapping_failed) == ("No", "No")
    assert gpu.pids == ()
    assert gpu.throttling == ()
    with pytest.raises(FormatError):
        smi_report.parse("NVIDIA-SMI has failed")


@pytest.mark.parametrize(
    ("requirement", "cuda", "driver", "brand", "met"),
    [
        ("", "12.0", "550.1", "tesla", True),
        ("cuda>=12.9", "13.0", "580.159.04", "nvidia", True),
        ("cuda>=13.0", "12.9", "575.1", "nvidia", False),
        ("cuda>=13", "13.0", "580.1", "nvidia", True),
        (VLLM_CUDA, "12.2", "535.183.01", "tesla", True),
        (VLLM_CUDA, "12.2", "535.183.01", "geforce", False),
        (VLLM_CUDA, "12.6", "560.35.03", "tesla", False),
        ("cuda=12.4,brand!=tesla", "12.4", "550.1", "geforce", True),
    ],
)
def test_requirements_are_decided_as_the_toolkit_decides_them(
    requirement: str, cuda: str, driver: str, brand: str, met: bool
) -> None:
    assert (unmet(requirement, Properties(cuda, driver, brand, "9.0")) == "") is met


def test_an_unreadable_requirement_is_an_error() -> None:
    with pytest.raises(FormatError):
        unmet("cuda~13", Properties("13.0", "580", "tesla", "9.0"))


def test_small_readings() -> None:
    assert quota_milli("max 100000") is None
    assert quota_milli("250000 100000") == 2500
    assert steal_ppm("cpu  1 0 0 0 0 0 0 1 0 0") == 500_000
    assert offset_ns("100 000000000", 99_000_000_000, 100_000_000_000) == (500_000_000, 500_000_000)
    assert needed_bytes(NEEDS) == (32 << 30) + (2 << 30)


def test_this_machine_is_examined_in_full() -> None:
    found = judge(look(LocalHost(), ROOT / "no" / "such" / "place"), Needs(CPU_PLAN, WHEELS))
    checks = {v.check for v in found}
    assert {"arch", "vcpus", "slice", "kernel", "container", "disk", "sudo", "clock"} <= checks
    assert "unreadable" not in checks


def test_doctor_as_a_user_types_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--plan", "demo", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runtime"] == WHEELS
    assert {v["status"] for v in told["verdicts"]} <= {PASS, WARN}


def test_a_host_that_lacks_something_has_an_exit_code_of_its_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plan = (ROOT / "kit" / "plans" / "demo.toml").read_text()
    file = tmp_path / "big.toml"
    file.write_text(plan.replace("memory_mib = 200", "memory_mib = 900_000_000", 1))
    assert main(["doctor", "--plan", str(file)]) == HostUnfitError.exit_code
    shown = capsys.readouterr()
    assert "900000000 MiB needed" in shown.out
    assert "try:" in shown.out


def test_memory_and_python_are_part_of_the_examination() -> None:
    plan = load_plan(ROOT / "kit" / "plans" / "smoke-cpu.toml")
    facts = LocalHost().probe(ROOT)
    assert {v.check for v in fit(facts, plan, frozenset({"a-program-nobody-has"}))} == {"software"}
    assert fit(facts, plan, frozenset({"a-program-nobody-has"}))[0].status == FAIL
