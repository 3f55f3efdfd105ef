"""A Docker daemon that believes in GPUs, a host whose nvidia-smi shows one, and a kit on it.

The machine of the tests has no GPU. A daemon knows GPUs by finding nvidia-container-runtime-hook on
its PATH as it starts (moby, daemon/nvidia_linux.go); the hook here does what a test has it do, and
an image's libcuda answers what a test has it answer.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from docker_service import DockerService, push_python_image, python_layer, running_docker
from registry_service import RegistryService
from ssh_kit import tiny_plan
from sshd import ROOT

_HOOK = "nvidia-container-runtime-hook"
REPOSITORY = "gpu/engine"
_LIBCUDA = """
#include <stdlib.h>
int cuInit(unsigned flags) { return atoi(getenv("STUB_CUINIT")); }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuGetErrorString(int status, const char **text) { *text = "words of CUDA"; return 0; }
"""


def _libcuda(place: Path) -> Path:
    """A libcuda that answers cuInit with the variable STUB_CUINIT."""
    library = place / "libcuda.so.1"
    subprocess.run(
        ["g++", "-x", "c", "-shared", "-fPIC", "-o", str(library), "-"],
        input=_LIBCUDA.encode(),
        check=True,
    )
    return library


def _layer_with_libcuda(place: Path, layer: bytes) -> bytes:
    """The layer, and that library where programs look."""
    library = _libcuda(place)
    buffer = io.BytesIO(layer)
    with tarfile.open(fileobj=buffer, mode="a") as tar:
        tar.add(library, "lib/x86_64-linux-gnu/libcuda.so.1")
    return buffer.getvalue()


@dataclass(frozen=True)
class Bench:
    """A daemon, and a registry with images by name in a lock each."""

    docker: DockerService
    registry: RegistryService
    place: Path

    def lock(self, name: str) -> Path:
        return self.place / f"{name}.lock.json"

    def pull(self, name: str) -> str:
        """Have the image of this lock on the host; what it is called there."""
        image = json.loads(self.lock(name).read_text())["images"]["one"]
        reference = f"{image['registry']}/{image['repository']}@{image['index_digest']}"
        self.docker.docker("pull", reference)
        return reference

    def hook_does(self, script: str) -> None:
        (self.place / "hook-does").write_text(script)


def push_images(registry: RegistryService, place: Path) -> None:
    layer = python_layer()
    with_cuda = _layer_with_libcuda(place, layer)
    images = {"none": (layer, "A=1")}
    images |= {str(n): (with_cuda, f"STUB_CUINIT={n}") for n in (0, 802, 803, 804, 999)}
    images["crash"] = (with_cuda, "A=1")  # no variable: the library follows a null pointer
    for name, (data, variable) in images.items():
        pushed = push_python_image(registry, REPOSITORY, f"v{name}", data, variable)
        image = {
            "registry": registry.name, "repository": REPOSITORY, "released_as": f"v{name}",
            "index_digest": str(pushed.index), "resolved": False, "platforms": {},
            "python": "python3",
        }  # fmt: skip
        (place / f"{name}.lock.json").write_text(
            json.dumps({"format": 1, "images": {"one": image}})
        )


@contextmanager
def equipped_daemon(place: Path, registry: RegistryService) -> Iterator[Bench]:
    """A daemon that finds a container toolkit as it starts; its hook does nothing at first."""
    programs = place / "bin"
    programs.mkdir()
    (programs / _HOOK).write_text(f"#!/bin/sh\ncat >/dev/null\n. {place}/hook-does\n")
    (programs / _HOOK).chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        with running_docker() as docker:
            bench = Bench(docker, registry, place)
            bench.hook_does("exit 0")
            yield bench


@dataclass(frozen=True)
class GpuKit:
    """A kit on a host whose nvidia-smi shows a GPU, with a plan that needs it and a locked image.

    With a file `busy` beside nvidia-smi that shows a process which computes.
    """

    docker: DockerService
    place: Path

    @classmethod
    def with_image(cls, bench: Bench, place: Path, name: str, requests: int = 2) -> GpuKit:
        plan = tiny_plan(requests=requests)
        assert "gpu_memory_mib = 0" in plan
        host_programs(place / "bin")
        kit = cls(bench.docker, place)
        kit.plan.write_text(plan.replace("gpu_memory_mib = 0", "gpu_memory_mib = 22_000"))
        kit.lock.write_text('{"format": 1, "images": {}}')
        added = f"{bench.registry.name}/{REPOSITORY}:v{name}"
        locked = kit.call("images", "lock", "one", "--add", added, "--lock", str(kit.lock))
        assert locked.returncode == 0, locked.stderr
        return kit

    @property
    def plan(self) -> Path:
        return self.place / "gpu.toml"

    @property
    def lock(self) -> Path:
        return self.place / "images.lock.json"

    @property
    def env(self) -> dict[str, str]:
        return {
            **self.docker.env,
            "PATH": f"{self.place / 'bin'}:{os.environ['PATH']}",
            "KIT_HOME": str(self.place / "home"),
            "KIT_OUT": str(self.place / "out"),
            "KIT_IMAGE_LOCK": str(self.lock),
        }

    def call(self, *args: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "kit.main", *args]
        return subprocess.run(
            argv, cwd=ROOT, env=self.env, capture_output=True, text=True, check=False
        )

    def reproduce(self) -> subprocess.CompletedProcess[str]:
        return self.call("reproduce", "--plan", str(self.plan), "--runtime", "docker")

    def start(self) -> subprocess.Popen[str]:
        words = ("reproduce", "--plan", str(self.plan), "--runtime", "docker")
        return subprocess.Popen(
            [sys.executable, "-m", "kit.main", *words],
            cwd=ROOT,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def has_recorded(self, event_type: str) -> bool:
        needle = f'"type":"{event_type}"'.encode()
        files = (self.place / "home" / "runs").glob("*/events.jsonl")
        return any(needle in file.read_bytes() for file in files)


def host_programs(place: Path) -> None:
    """What a host with a sound driver has: a capture of nvidia-smi, the toolkit's tool, libcuda."""
    place.mkdir()
    _libcuda(place)
    answers = {
        "nvidia-smi": f"""case "$*" in
-q) cat {ROOT}/tests/fixtures/nvidia-smi/h200-580.159-q.txt ;;
*compute_cap,memory.total*) echo 9.0, 143771 ;;
*compute_cap*) echo 9.0 ;;
*compute-apps*) [ ! -e {place}/busy ] || echo 4242, 131000 ;;
esac
""",
        "nvidia-container-cli": "echo cli-version: 1.17.0\n",
    }
    for name, script in answers.items():
        (place / name).write_text(f"#!/bin/sh\n{script}")
        (place / name).chmod(0o755)
