"""The examination starts a container with the GPU request, on daemons with and without toolkit."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from docker_service import DockerService, running_docker
from gpu_host import Bench, equipped_daemon, push_images
from registry_service import RegistryService, running_registry
from ssh_kit import SshKit, name_of
from sshd import running, wait_for

from kit.docker.request import LABEL as RUN_LABEL
from kit.doctor import gpu_container
from kit.doctor.docker_engine import GPU_CONTAINERS
from kit.doctor.topic import FAIL, PASS, WARN
from kit.main import main
from records.errors import HostUnfitError

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryService]:
    with running_registry(tmp_path_factory.mktemp("registry")) as service:
        yield service


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, registry: RegistryService) -> Path:
    found = tmp_path_factory.mktemp("gpu")
    push_images(registry, found)
    return found


@pytest.fixture(scope="module")
def plain(place: Path, registry: RegistryService) -> Iterator[Bench]:
    """A daemon as Debian installs it: no container toolkit."""
    with running_docker() as docker:
        yield Bench(docker, registry, place)


@pytest.fixture(scope="module")
def equipped(place: Path, registry: RegistryService) -> Iterator[Bench]:
    """A daemon that found a container toolkit as it started."""
    with equipped_daemon(place, registry) as bench:
        yield bench


@pytest.fixture(autouse=True)
def tidy(request: pytest.FixtureRequest) -> Iterator[None]:
    """No container of a test that failed is in the way of the next, or of its own second try."""
    yield
    for name in {"plain", "equipped"} & set(request.fixturenames):
        docker = request.getfixturevalue(name).docker

        def gone(docker: DockerService = docker) -> bool:
            for number in docker.containers():
                with suppress(subprocess.CalledProcessError):  # while a hook of the daemon hangs
                    docker.docker("rm", "-f", number)
            return docker.containers() == []

        wait_for(gone)


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
    plain.docker.remove_images()
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
        ("crash", "ended by signal 11", "reboot"),
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


def test_what_is_started_is_as_a_runs_container(
    equipped: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen by the hook, which is handed the bundle's place as the container starts."""
    seen = equipped.place / "config.json"
    equipped.hook_does(f"cp config.json {seen} || exit 1")
    equipped.pull("0")
    monkeypatch.setenv("DOCKER_HOST", equipped.docker.host)
    argv = ["doctor", "--plan", "l4-confounds", "--runtime", "docker"]
    try:
        main([*argv, "--image-lock", str(equipped.lock("0"))])
    finally:
        equipped.hook_does("exit 0")
    config = json.loads(seen.read_text())
    assert config["root"]["readonly"] is True
    process = config["process"]
    assert (process["user"]["uid"], process["user"]["gid"]) == (os.getuid(), os.getgid())
    assert not process["capabilities"].get("effective")
    assert process["noNewPrivileges"] is True
    assert "NVIDIA_VISIBLE_DEVICES=all" in process["env"]


def test_what_a_killed_examination_left_is_removed_by_the_next(
    equipped: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = equipped.pull("0")
    create = ("create", "--network", "none", "--entrypoint", "python3")
    ours = ("--label", gpu_container.LABEL)
    left = equipped.docker.docker(*create, *ours, reference).stdout.strip()
    foreign = equipped.docker.docker(*create, reference).stdout.strip()
    monkeypatch.setenv("DOCKER_HOST", equipped.docker.host)
    argv = ["doctor", "--plan", "l4-confounds", "--runtime", "docker", "--image-lock"]
    main([*argv, str(equipped.lock("0"))])
    assert set(equipped.docker.containers()) == {left, foreign}, "it may be under way"
    monkeypatch.setattr(gpu_container, "_LEFT_AFTER", "0s")
    main([*argv, str(equipped.lock("0"))])
    assert equipped.docker.containers() == [foreign], "others' are nobody's business"
    equipped.docker.docker("rm", foreign)


def test_an_image_that_cannot_look_decides_nothing(
    equipped: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    """The toolkit mounts nvidia-smi into a container; where it does not, nothing is known."""
    equipped.docker.remove_images()
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


def test_what_hangs_is_ended_and_removed(
    equipped: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_container, "_TRIAL_S", 2)
    monkeypatch.setattr(gpu_container, "CUDA_PROGRAM", "import time; time.sleep(600)")
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
