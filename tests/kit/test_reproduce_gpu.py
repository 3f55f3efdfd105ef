"""A plan that needs a GPU, without Docker: examined as thoroughly before it is begun."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from called_kit import CalledKit
from gpu_host import gpu_kit

from records.errors import HostUnfitError


@pytest.fixture
def rented(tmp_path: Path) -> CalledKit:
    """A host whose nvidia-smi shows an H200, and whose CUDA begins."""
    kit = gpu_kit(tmp_path)
    kit.extra |= {"LD_LIBRARY_PATH": str(tmp_path / "bin"), "STUB_CUINIT": "0"}
    return kit


def doctor(kit: CalledKit) -> subprocess.CompletedProcess[str]:
    return kit.call("doctor", "--runtime", "wheels", "--plan", str(kit.plan))


def test_a_stranger_on_the_gpu_is_told_before_anything_is_begun(rented: CalledKit) -> None:
    """Every window would be void (vllm#55510)."""
    assert doctor(rented).returncode == 0
    (rented.place / "bin" / "busy").touch()
    done = rented.reproduced()
    assert done.returncode == HostUnfitError.exit_code, done.stderr
    assert "gpu-processes: other processes compute on the GPU" in done.stderr
    assert not (rented.home / "runs").exists()


def test_cuda_that_does_not_begin_is_told_though_nvidia_smi_is_content(rented: CalledKit) -> None:
    """As on machines of several GPUs whose fabric manager does not run."""
    rented.extra["STUB_CUINIT"] = "802"
    done = rented.reproduced()
    assert done.returncode == HostUnfitError.exit_code, done.stderr
    assert "cuda-init: the GPUs wait for the fabric manager (CUDA error 802" in done.stderr
    assert not (rented.home / "runs").exists()


def test_what_is_installed_already_needs_no_room_again(rented: CalledKit) -> None:
    """The plan asks for 1 GiB more than is free, and 2 GiB of what it asks for are there."""
    models = rented.home / "models" / "one"
    models.mkdir(parents=True)
    with (models / "weights").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 2 << 30)
    disk = os.statvfs(rented.place)
    wanted = f"disk_mib = {(disk.f_bavail * disk.f_frsize >> 20) + 1024}"
    rented.plan.write_text(rented.plan.read_text().replace("disk_mib = 50", wanted, 1))
    there = doctor(rented)
    (models / "weights").unlink()
    assert there.returncode == 0, there.stderr
