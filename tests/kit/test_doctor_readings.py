"""The small readings of the examination, and the examination of this machine."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest
from doctor_transcripts import (
    CPU_PLAN,
    H200,
    NEEDS,
    ROOT,
    VLLM_CUDA,
    df,
    seen,
    verdicts,
)

from kit.doctor import smi_report
from kit.doctor.clock import offset_ns
from kit.doctor.cuda_requirement import Properties, unmet
from kit.doctor.disk import needed_bytes
from kit.doctor.docker_engine import image_root
from kit.doctor.examine import fit, judge, look
from kit.doctor.machine import quota_milli, steal_ppm
from kit.doctor.topic import FAIL, PASS, WARN, WHEELS, Needs, Verdict
from kit.hosts.names import LocalHost
from kit.main import main
from kit.planning.plan_file import load_plan
from records.errors import FormatError, HostUnfitError


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


def test_images_lie_where_the_daemon_keeps_them() -> None:
    """Docker 29 keeps images in containerd's store, which may stand on another disk."""
    snapshotter = [["driver-type", "io.containerd.snapshotter.v1"]]
    assert image_root({"DockerRootDir": "/data/docker"}) == "/data/docker"
    stored = {"DockerRootDir": "/data/docker", "DriverStatus": snapshotter}
    assert image_root(stored) == "/var/lib/containerd"
    own = {**stored, "Containerd": {"Address": "/var/run/docker/containerd/containerd.sock"}}
    assert image_root(own) == "/data/docker"
    system = {**stored, "Containerd": {"Address": "/run/containerd/containerd.sock"}}
    assert image_root(system) == "/var/lib/containerd"


def test_two_disks_are_not_added_up() -> None:
    apart = {"df-docker": df(35, mounted_on="/var/lib/docker"), "df-home": df(35)}
    assert verdicts(apart) == []


def test_a_lock_is_seen_as_the_kernel_tells_it(tmp_path: Path) -> None:
    """Taken as dpkg takes it, with fcntl; whether it is held is asked without taking it."""
    file = tmp_path / "lock-frontend"

    def checks() -> dict[str, Verdict]:
        number = LocalHost().run(("stat", "-c", "%i", str(file)))
        locks = LocalHost().run(("cat", "/proc/locks"))
        return {v.check: v for v in judge(seen({"dpkg-lock": number, "locks": locks}), NEEDS)}

    with file.open("w") as held:
        assert checks()["updates"].status == PASS
        fcntl.lockf(held, fcntl.LOCK_EX)
        assert checks()["updates"].status == WARN
    assert checks()["updates"].status == PASS


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
