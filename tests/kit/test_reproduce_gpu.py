"""A plan that needs a GPU, without Docker: examined as thoroughly before it is begun."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from gpu_host import host_programs
from ssh_kit import tiny_plan
from sshd import ROOT

from records.errors import HostUnfitError


@dataclass(frozen=True)
class Rented:
    """A host whose nvidia-smi shows an H200; with a file `busy` beside it, one that computes."""

    place: Path
    cuda: str = "0"

    @property
    def env(self) -> dict[str, str]:
        return {
            **os.environ,
            "LD_LIBRARY_PATH": str(self.place / "bin"),
            "STUB_CUINIT": self.cuda,
            "PATH": f"{self.place / 'bin'}:{os.environ['PATH']}",
            "KIT_HOME": str(self.place / "home"),
            "KIT_OUT": str(self.place / "out"),
        }

    def kit(self, *args: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "kit.main", *args, "--plan", str(self.place / "gpu.toml")]
        return subprocess.run(
            argv, cwd=ROOT, env=self.env, capture_output=True, text=True, check=False
        )


@pytest.fixture
def rented(tmp_path: Path) -> Rented:
    host_programs(tmp_path / "bin")
    plan = tiny_plan().replace("gpu_memory_mib = 0", "gpu_memory_mib = 22_000")
    (tmp_path / "gpu.toml").write_text(plan)
    return Rented(tmp_path)


def test_a_stranger_on_the_gpu_is_told_before_anything_is_begun(rented: Rented) -> None:
    """Every window would be void (vllm#55510)."""
    assert rented.kit("doctor", "--runtime", "wheels").returncode == 0
    (rented.place / "bin" / "busy").touch()
    done = rented.kit("reproduce")
    assert done.returncode == HostUnfitError.exit_code, done.stderr
    assert "gpu-processes: other processes compute on the GPU" in done.stderr
    assert not (rented.place / "home" / "runs").exists()


def test_cuda_that_does_not_begin_is_told_though_nvidia_smi_is_content(rented: Rented) -> None:
    """As on machines of several GPUs whose fabric manager does not run."""
    done = replace(rented, cuda="802").kit("reproduce")
    assert done.returncode == HostUnfitError.exit_code, done.stderr
    assert "cuda-init: the GPUs wait for the fabric manager (CUDA error 802" in done.stderr
    assert not (rented.place / "home" / "runs").exists()


def test_what_is_installed_already_needs_no_room_again(rented: Rented) -> None:
    """The plan asks for 1 GiB more than is free, and 2 GiB of what it asks for are there."""
    models = rented.place / "home" / "models" / "one"
    models.mkdir(parents=True)
    with (models / "weights").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 2 << 30)
    disk = os.statvfs(rented.place)
    wanted = f"disk_mib = {(disk.f_bavail * disk.f_frsize >> 20) + 1024}"
    plan = rented.place / "gpu.toml"
    plan.write_text(plan.read_text().replace("disk_mib = 50", wanted, 1))
    there = rented.kit("doctor", "--runtime", "wheels")
    (models / "weights").unlink()
    assert there.returncode == 0, there.stderr
