"""A Docker daemon that believes in GPUs, a host whose nvidia-smi shows one, and a called kit there.

The machine of the tests has no GPU. A daemon knows GPUs by finding nvidia-container-runtime-hook on
its PATH as it starts (moby, daemon/nvidia_linux.go); the hook here does what a test has it do, and
an image's libcuda answers what a test has it answer.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from called_kit import CalledKit, tiny_plan
from docker_service import DockerService, push_python_image, python_layer, running_docker
from registry_service import RegistryService
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


def gpu_kit(place: Path, requests: int = 2) -> CalledKit:
    """A kit on a host whose nvidia-smi shows a GPU, with a plan that needs one.

    With a file `busy` beside that nvidia-smi, in `place`/bin, it shows a process that computes.
    """
    programs = place / "bin"
    host_programs(programs)
    plan = tiny_plan(requests=requests)
    assert "gpu_memory_mib = 0" in plan
    plan = plan.replace("gpu_memory_mib = 0", "gpu_memory_mib = 22_000")
    return CalledKit(place, plan, {"PATH": f"{programs}:{os.environ['PATH']}"})


def gpu_kit_with_image(bench: Bench, place: Path, name: str, requests: int = 2) -> CalledKit:
    """The same with a daemon and a locked image; `--runtime docker` chooses them."""
    kit = gpu_kit(place, requests)
    lock = place / "images.lock.json"
    kit.extra |= {"DOCKER_HOST": bench.docker.host, "KIT_IMAGE_LOCK": str(lock)}
    lock.write_text('{"format": 1, "images": {}}')
    added = f"{bench.registry.name}/{REPOSITORY}:v{name}"
    locked = kit.call("images", "lock", "one", "--add", added, "--lock", str(lock))
    assert locked.returncode == 0, locked.stderr
    return kit


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
