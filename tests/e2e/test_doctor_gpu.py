"""The examination starts a container with the GPU request, on daemons with and without toolkit.

The machine of the tests has no GPU. A daemon knows GPUs by finding nvidia-container-runtime-hook on
its PATH as it starts (moby, daemon/nvidia_linux.go); the hook here does what a test has it do, and
the image's libcuda answers what a test has it answer.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from docker_service import DockerService, push_python_image, python_layer, running_docker
from registry_service import RegistryService, running_registry
from ssh_kit import SshKit, name_of, tiny_plan
from sshd import ROOT, running, wait_for

from kit.docker.request import LABEL as RUN_LABEL
from kit.doctor import gpu_container
from kit.doctor.docker_engine import GPU_CONTAINERS
from kit.doctor.topic import FAIL, PASS, WARN
from kit.main import main
from records.errors import HostUnfitError

pytestmark = pytest.mark.timeout(240)
HOOK = "nvidia-container-runtime-hook"
REPOSITORY = "gpu/engine"
LIBCUDA = """
#include <stdlib.h>
int cuInit(unsigned flags) { return atoi(getenv("STUB_CUINIT")); }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuGetErrorString(int status, const char **text) { *text = "words of CUDA"; return 0; }
"""


def layer_with_libcuda(place: Path, layer: bytes) -> bytes:
    """The layer, and a libcuda that answers cuInit with the variable STUB_CUINIT."""
    library = place / "libcuda.so.1"
    subprocess.run(
        ["g++", "-x", "c", "-shared", "-fPIC", "-o", str(library), "-"],
        input=LIBCUDA.encode(),
        check=True,
    )
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


def _images(registry: RegistryService, place: Path) -> None:
    layer = python_layer()
    with_cuda = layer_with_libcuda(place, layer)
    images = {"none": (layer, "A=1")}
    images |= {str(n): (with_cuda, f"STUB_CUINIT={n}") for n in (0, 802, 803, 804, 999)}
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


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryService]:
    with running_registry(tmp_path_factory.mktemp("registry")) as service:
        yield service


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, registry: RegistryService) -> Path:
    found = tmp_path_factory.mktemp("gpu")
    _images(registry, found)
    return found


@pytest.fixture(scope="module")
def plain(place: Path, registry: RegistryService) -> Iterator[Bench]:
    """A daemon as Debian installs it: no container toolkit."""
    with running_docker() as docker:
        yield Bench(docker, registry, place)


@pytest.fixture(scope="module")
def equipped(place: Path, registry: RegistryService) -> Iterator[Bench]:
    """A daemon that found a container toolkit as it started."""
    programs = place / "bin"
    programs.mkdir()
    (programs / HOOK).write_text(f"#!/bin/sh\ncat >/dev/null\n. {place}/hook-does\n")
    (programs / HOOK).chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        with running_docker() as docker:
            bench = Bench(docker, registry, place)
            bench.hook_does("exit 0")
            yield bench


def examined(
    bench: Bench, image: str, capsys: pytest.CaptureFixture[str], *more: str
) -> dict[str, dict[str, str]]:
    """What `kit doctor` says of a plan that needs a GPU, by check."""
    argv = ["doctor", "--plan", "l4-confounds", "--runtime", "docker", "--json", *more]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", bench.docker.host)
        # No GPU here: the driver's own verdict fails, whatever containers are told.
        status = main([*argv, "--image-lock", str(bench.lock(image))])
    assert status == HostUnfitError.exit_code
    assert bench.docker.containers() == []
    told = json.loads(capsys.readouterr().out)
    return {verdict["check"]: verdict for verdict in told["verdicts"]}


def test_without_any_image_it_says_that_nothing_was_tried(
    plain: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    for image in plain.docker.docker("images", "-q").stdout.split():
        plain.docker.docker("rmi", "-f", image)
    found = examined(plain, "0", capsys)
    not_tried = found[gpu_container.NOT_TRIED]
    assert (not_tried["status"], not_tried["found"]) == (WARN, "not tried")
    assert "no image is there yet" in not_tried["cause"]
    assert "kit doctor again" in not_tried["remedy"]
    assert found[GPU_CONTAINERS]["status"] == FAIL, "by what the daemon lists"
    assert plain.docker.docker("images", "-q").stdout == "", "nothing was pulled"


def test_a_daemon_without_the_toolkit_refuses_in_its_own_words(
    plain: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    plain.pull("0")
    failed = examined(plain, "0", capsys)[GPU_CONTAINERS]
    assert failed["status"] == FAIL
    assert failed["found"] == 'could not select device driver "" with capabilities: [[gpu]]'
    assert "install nvidia-container-toolkit" in failed["remedy"]
    assert "nvidia-ctk runtime configure" in failed["remedy"]


def test_another_image_will_do_where_the_plans_own_is_not_there_yet(
    plain: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    plain.pull("0")
    found = examined(plain, "804", capsys)
    assert "could not select device driver" in found[GPU_CONTAINERS]["found"]
    assert gpu_container.NOT_TRIED not in found
    held = plain.docker.docker("images", "--digests", "-q").stdout.split()
    assert len(set(held)) == 1, "the plan's image was not pulled"


def test_people_read_the_finding_with_its_remedy(
    plain: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.pull("0")
    monkeypatch.setenv("DOCKER_HOST", plain.docker.host)
    argv = ["doctor", "--plan", "l4-confounds", "--runtime", "docker"]
    assert main([*argv, "--image-lock", str(plain.lock("0"))]) == HostUnfitError.exit_code
    shown = capsys.readouterr()
    assert "fail: gpu-containers: a container gets no GPU" in shown.out
    assert "try: install nvidia-container-toolkit" in shown.out
    assert 'could not select device driver "" with capabilities: [[gpu]]' in shown.err


def test_the_same_on_a_host_over_ssh(plain: Bench, tmp_path: Path, user_home: Path) -> None:
    plain.pull("0")
    kit = SshKit(tmp_path / "laptop", user_home)
    key = user_home / ".ssh" / "id_ed25519.pub"
    with running(tmp_path / "host", key, DOCKER_HOST=plain.docker.host) as sshd:
        done = kit.call(
            "doctor", name_of(sshd), "--accept-new", "--plan", "l4-confounds", "--runtime",
            "docker", "--image-lock", str(plain.lock("0")),
        )  # fmt: skip
    assert done.returncode == HostUnfitError.exit_code
    assert "could not select device driver" in done.stdout
    assert plain.docker.containers() == []


def test_a_container_that_gets_the_gpu_passes(
    equipped: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    equipped.pull("0")
    passed = examined(equipped, "0", capsys)[GPU_CONTAINERS]
    assert (passed["status"], passed["found"]) == (PASS, "started one: 2 GPUs in the plan's image")


@pytest.mark.parametrize(
    ("image", "found", "remedy"),
    [
        ("none", "CUDA error -1", "NVIDIA_DRIVER_CAPABILITIES"),
        ("802", "CUDA error 802, words of CUDA", "nvidia-fabricmanager"),
        ("803", "CUDA error 803", "nvidia-ctk cdi generate"),
        ("804", "CUDA error 804", "newer driver"),
        ("999", "CUDA error 999", "nvidia_uvm"),
    ],
)
def test_what_cuda_says_in_the_container_is_a_finding(
    equipped: Bench, capsys: pytest.CaptureFixture[str], image: str, found: str, remedy: str
) -> None:
    equipped.pull(image)
    failed = examined(equipped, image, capsys)[GPU_CONTAINERS]
    assert failed["status"] == FAIL
    assert found in failed["found"]
    assert remedy in failed["remedy"]


@pytest.mark.parametrize(
    ("says", "cause", "remedy"),
    [
        (
            (
                "nvidia-container-cli: initialization error: nvml error: driver/library version "
                "mismatch"
            ),
            "exchanged under a running kernel",
            "reboot",
        ),
        (
            (
                "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, "
                "please update your driver to a newer version"
            ),
            "newer driver",
            "newer driver",
        ),
        (
            (
                "nvidia-container-cli: initialization error: load library failed: "
                "libnvidia-ml.so.1: cannot open shared object file: no such file or directory"
            ),
            "does not find the host's driver",
            "nvidia-smi",
        ),
        ("Auto-detected mode as 'legacy': something new", "the toolkit fails", "journalctl"),
    ],
)
def test_a_broken_toolkit_is_a_finding(
    equipped: Bench, capsys: pytest.CaptureFixture[str], says: str, cause: str, remedy: str
) -> None:
    equipped.pull("0")
    equipped.hook_does(f'echo "{says}" >&2; exit 1')
    try:
        failed = examined(equipped, "0", capsys)[GPU_CONTAINERS]
    finally:
        equipped.hook_does("exit 0")
    assert failed["status"] == FAIL
    assert says[:60] in failed["found"]
    assert cause in failed["cause"]
    assert remedy in failed["remedy"]


def test_an_image_that_cannot_look_decides_nothing(
    equipped: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    """The toolkit mounts nvidia-smi into a container; where it does not, nothing is known."""
    for image in equipped.docker.docker("images", "-q").stdout.split():
        equipped.docker.docker("rmi", "-f", image)
    equipped.pull("none")
    found = examined(equipped, "0", capsys)
    assert "has no program to look with" in found[gpu_container.NOT_TRIED]["cause"]


def test_beside_a_run_nothing_is_started(
    equipped: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = equipped.pull("0")
    run = ("run", "-d", "--network", "none", "--label", f"{RUN_LABEL}=r1", "--entrypoint")
    number = equipped.docker.docker(
        *run, "python3", reference, "-c", "import time; time.sleep(600)"
    ).stdout.strip()
    monkeypatch.setenv("DOCKER_HOST", equipped.docker.host)
    argv = ["doctor", "--plan", "l4-confounds", "--runtime", "docker", "--json"]
    try:
        main([*argv, "--image-lock", str(equipped.lock("0"))])
        assert equipped.docker.containers() == [number]
    finally:
        equipped.docker.docker("rm", "-f", number)
    assert "a run's container is at work" in capsys.readouterr().out


def test_a_run_is_not_begun_where_the_pulled_image_gets_no_gpu(
    equipped: Bench, tmp_path: Path
) -> None:
    """Before the pull nothing could be tried; nvidia-smi on the host finds nothing wrong."""
    for image in equipped.docker.docker("images", "-q").stdout.split():
        equipped.docker.docker("rmi", "-f", image)
    plan = tmp_path / "gpu.toml"
    plan.write_text(tiny_plan().replace("gpu_memory_mib = 0", "gpu_memory_mib = 22_000"))
    assert "22_000" in plan.read_text()
    lock = tmp_path / "images.lock.json"
    lock.write_text('{"format": 1, "images": {}}')
    env = {
        **equipped.docker.env,
        "PATH": f"{host_programs(tmp_path / 'bin')}:{os.environ['PATH']}",
        "KIT_HOME": str(tmp_path / "home"),
        "KIT_OUT": str(tmp_path / "out"),
        "KIT_IMAGE_LOCK": str(lock),
    }

    def kit(*args: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "kit.main", *args]
        return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    added = f"{equipped.registry.name}/{REPOSITORY}:v803"
    locked = kit("images", "lock", "one", "--add", added, "--lock", str(lock))
    assert locked.returncode == 0, locked.stderr
    done = kit("reproduce", "--plan", str(plan), "--runtime", "docker")
    assert done.returncode == HostUnfitError.exit_code, done.stderr
    assert "image sha256:" in done.stderr, "it was pulled"
    assert "CUDA error 803" in done.stderr
    assert "nvidia-ctk cdi generate" in done.stderr
    assert list((tmp_path / "home").glob("runs/*/events.jsonl")) == [], "nothing was begun"
    assert equipped.docker.containers() == []
    again = kit("reproduce", "--plan", str(plan), "--runtime", "docker")
    assert again.returncode == HostUnfitError.exit_code
    assert "cannot carry out plan tiny" in again.stderr, "the examination finds it now"
    assert "CUDA error 803" in again.stderr


def host_programs(place: Path) -> Path:
    """What a host with a sound driver answers: a capture of nvidia-smi, and the toolkit's tool."""
    place.mkdir()
    answers = {
        "nvidia-smi": f"""case "$*" in
-q) cat {ROOT}/tests/fixtures/nvidia-smi/h200-580.159-q.txt ;;
*compute_cap*) echo 9.0 ;;
*) : ;;
esac
""",
        "nvidia-container-cli": "echo cli-version: 1.17.0\n",
    }
    for name, script in answers.items():
        (place / name).write_text(f"#!/bin/sh\n{script}")
        (place / name).chmod(0o755)
    return place


def test_what_hangs_is_ended_and_removed(
    equipped: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_container, "_TRIAL_S", 2)
    monkeypatch.setattr(gpu_container, "PROGRAM", "import time; time.sleep(600)")
    equipped.pull("0")
    failed = examined(equipped, "0", capsys)[GPU_CONTAINERS]
    assert failed["found"] == "no end after 2 s in the plan's image"
    assert "hangs" in failed["cause"]


def test_a_toolkit_that_hangs_is_a_finding_that_names_what_it_leaves(
    equipped: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the hook ends the daemon cannot remove the container, whoever asks."""
    monkeypatch.setattr(gpu_container, "_TRIAL_S", 2)
    monkeypatch.setattr(gpu_container, "_REMOVE_S", 1)
    monkeypatch.setenv("DOCKER_HOST", equipped.docker.host)
    equipped.pull("0")
    equipped.hook_does("exec sleep 6")
    argv = ["doctor", "--plan", "l4-confounds", "--runtime", "docker", "--json"]
    try:
        main([*argv, "--image-lock", str(equipped.lock("0"))])
        (number,) = equipped.docker.containers()
    finally:
        equipped.hook_does("exit 0")
    told = json.loads(capsys.readouterr().out)["verdicts"]
    (failed,) = [verdict for verdict in told if verdict["check"] == GPU_CONTAINERS]
    assert "hangs" in failed["cause"]
    assert f"container {number[:12]} is still there" in failed["found"]
    assert f"docker rm -f {number[:12]}" in failed["remedy"]
    wait_for(lambda: equipped.docker.containers() == [])
