"""The docker runtime for real: registry, daemon and engine on loopback, and what befalls them."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from called_kit import PATIENCE_S, CalledKit, count, outcomes, tiny_plan
from docker_service import (
    DockerService,
    PushedImage,
    kill,
    push_python_image,
    python_layer,
    running_docker,
)
from registry_service import RegistryService, running_registry
from ssh_kit import SshKit, name_of
from sshd import running, wait_for

from kit.docker.request import LABEL
from records import schema
from records.digest import Digest
from records.errors import BootsFailedError, ImageMismatchError, InterruptedRunError

REPOSITORY = "demo/engine"


@dataclass(frozen=True)
class Services:
    """Registry and daemon; two images of one repository, and a lock that names the first."""

    registry: RegistryService
    docker: DockerService
    image: PushedImage
    other: PushedImage
    lock: Path


class DockerKit(CalledKit):
    """A kit on a host with these services."""

    def __init__(self, place: Path, services: Services) -> None:
        docker = {"DOCKER_HOST": services.docker.host, "KIT_RUNTIME": "docker"}
        super().__init__(place, extra={**docker, "KIT_IMAGE_LOCK": str(services.lock)})
        self.docker = services.docker

    def container(self) -> str:
        (container,) = self.docker.containers()
        return container

    def pids(self, argv_part: str) -> list[int]:
        """Processes in the container, as the host numbers them, with this argument."""
        shown = self.docker.docker("top", self.container(), "-ww", "-eo", "pid,args").stdout
        return [int(line.split()[0]) for line in shown.splitlines()[1:] if argv_part in line]


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Started once: what a test does to its daemon it also undoes."""
    place = tmp_path_factory.mktemp("docker")
    with running_registry(place / "registry") as registry, running_docker() as docker:
        layer = python_layer()
        image = push_python_image(registry, REPOSITORY, "v1", layer)
        other = push_python_image(registry, REPOSITORY, "v2", layer, "ANOTHER=image")
        lock = place / "images.lock.json"
        lock.write_text('{"format": 1, "images": {}}')
        services = Services(registry, docker, image, other, lock)
        added = f"{registry.name}/{REPOSITORY}:v1"
        words = ("images", "lock", "demo-engine", "--add", added, "--lock", str(lock))
        locked = DockerKit(place, services).call(*words)
        assert locked.returncode == 0, locked.stderr
        yield services


@pytest.fixture
def kit(services: Services, tmp_path: Path) -> Iterator[DockerKit]:
    kit = DockerKit(tmp_path, services)
    yield kit
    kit.end()
    services.docker.remove_containers()


@pytest.fixture
def slow(kit: DockerKit) -> DockerKit:
    """Windows of several seconds, so that a fault finds one open."""
    kit.plan.write_text(tiny_plan(requests=6))
    return kit


def test_a_plan_is_pulled_by_digest_run_sealed_fetched_and_audited(
    kit: DockerKit, services: Services
) -> None:
    kit.docker.remove_images()
    done = kit.reproduced("--host", "local", "--json")
    assert done.returncode == 0, done.stderr
    reference = f"{services.registry.name}/{REPOSITORY}@{services.image.index}"
    assert f"pulling {reference}" in done.stderr
    assert "layer 1 of 1: pull complete" in done.stderr
    run = kit.fetched_run()
    assert run.is_sealed
    assert outcomes(run) == ["completed", "completed"]
    before, after = (e.event for e in run.read() if isinstance(e.event, schema.EngineBound))
    assert (before.phase, after.phase) == ("before", "after")
    assert before.facts == after.facts
    assert before.runtime == "docker"
    assert before.digest == services.image.index
    assert before.lock_digest == Digest.of(services.lock.read_bytes())
    facts = before.facts
    assert facts["image_id"] == facts["container_image"] == str(services.image.config)
    assert facts["manifest_digest"] == str(services.image.manifest)
    assert (facts["network"], facts["read_only_root"]) == ("none", True)
    assert kit.docker.containers() == []
    found = json.loads(kit.call("audit", "--data", str(kit.records), "--json").stdout)
    of_run = [f for f in found["findings"] if run.path.name in f["where"]["file"]]
    assert {f["code"] for f in of_run} == {"PLAN04"}, "synthetic, and nothing else"


def test_the_same_on_a_host_over_ssh(services: Services, tmp_path: Path, user_home: Path) -> None:
    """sshd, dockerd and registry on loopback: pulled there by digest, run, fetched, audited."""
    services.docker.remove_images()
    kit = SshKit(tmp_path / "laptop", user_home)
    kit.extra |= {"KIT_RUNTIME": "docker", "KIT_IMAGE_LOCK": str(services.lock)}
    there = {"DOCKER_HOST": services.docker.host}
    key = user_home / ".ssh" / "id_ed25519.pub"
    with running(tmp_path / "host", key, **there) as sshd:
        done = kit.call(*kit.reproduce(name_of(sshd)), "--json")
        assert done.returncode == 0, done.stderr
        assert "layer 1 of 1: pull complete" in done.stderr
        verified = kit.call("images", "verify", name_of(sshd), "--lock", str(services.lock))
        assert verified.returncode == 0, verified.stderr
    (run,) = kit.fetched()
    assert run.is_sealed
    assert outcomes(run) == ["completed", "completed"]
    bound = [e.event for e in run.read() if isinstance(e.event, schema.EngineBound)]
    assert [event.digest for event in bound] == [services.image.index] * 2
    found = json.loads(kit.call("audit", "--data", str(kit.records), "--json").stdout)
    of_run = {f["code"] for f in found["findings"] if run.path.name in f["where"]["file"]}
    assert of_run == {"PLAN04"}


def test_the_running_container_is_the_golden_kind_and_the_host_can_be_verified(
    slow: DockerKit, services: Services
) -> None:
    process = slow.reproducing("--json")
    slow.wait_for_event("window.started")
    shown = json.loads(slow.docker.docker("inspect", slow.container()).stdout)[0]
    assert shown["Config"]["Labels"][LABEL].endswith(tuple("0123456789abcdef"))
    assert shown["Image"] == str(services.image.config)
    host = shown["HostConfig"]
    assert host["ReadonlyRootfs"]
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert not host["Privileged"]
    assert not [m for m in shown["Mounts"] if m["Source"].endswith(".sock")]
    verified = slow.call("images", "verify", "local", "--lock", str(services.lock), "--json")
    assert verified.returncode == 0, verified.stderr
    rows = json.loads(verified.stdout)
    assert [row["what"] for row in rows] == ["image", "container"]
    _, shown_text = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, shown_text


def test_an_engine_killed_in_a_window_fails_its_boot_and_the_plan_goes_on(slow: DockerKit) -> None:
    process = slow.reproducing("--json")
    slow.wait_for_event("window.started")
    wait_for(lambda: bool(slow.pids("--served-model-name")))
    for pid in slow.pids("--served-model-name"):
        kill(pid)
    _, shown = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == BootsFailedError.exit_code, shown
    run = slow.fetched_run()
    assert run.is_sealed
    assert sorted(outcomes(run)) == ["completed", "failed"]


def test_a_daemon_restarted_in_a_window_costs_one_boot_attempt_and_nothing_else(
    slow: DockerKit,
) -> None:
    process = slow.reproducing("--json")
    slow.wait_for_event("window.started")
    slow.docker.restart()
    _, shown = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, shown
    run = slow.fetched_run()
    assert run.is_sealed
    assert list(run.verify_files()) == []
    ended = outcomes(run)
    # A loaded machine may get through its boots before the daemon makes the harness end.
    assert ended.count("completed") == 2
    assert ended.count("interrupted") == len(ended) - 2 <= 1
    bound = [e.event.phase for e in run.read() if isinstance(e.event, schema.EngineBound)]
    assert (bound[0], bound[-1]) == ("before", "after")
    assert count(run, schema.RunResumed) == 1


def test_a_killed_harness_is_a_record_and_the_same_command_resumes(slow: DockerKit) -> None:
    process = slow.reproducing("--json")
    slow.wait_for_event("window.started")
    for pid in slow.pids("/kit/job.json"):
        kill(pid)
    _, shown = process.communicate(timeout=PATIENCE_S)
    assert process.returncode != 0, shown
    done = slow.reproduced("--host", "local", "--json")
    assert done.returncode == 0, done.stderr
    assert "resuming unfinished run" in done.stderr
    assert outcomes(slow.fetched_run()) == ["interrupted", "completed", "completed"]


def test_a_killed_keeper_leaves_the_container_for_the_next_one(slow: DockerKit) -> None:
    process = slow.reproducing("--json")
    slow.wait_for_event("window.started")
    container = slow.container()
    kill(slow.job_pid())
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == InterruptedRunError.exit_code
    assert slow.container() == container
    done = slow.reproduced("--host", "local", "--json")
    assert done.returncode == 0, done.stderr
    run = slow.fetched_run()
    assert outcomes(run) == ["completed", "completed"], "the container went on by itself"
    assert slow.docker.containers() == []


def test_ctrl_c_marks_the_boot_in_the_container(slow: DockerKit) -> None:
    process = slow.reproducing("--json")
    slow.wait_for_event("window.started")
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == InterruptedRunError.exit_code, shown
    assert slow.docker.containers() == []
    done = slow.reproduced("--host", "local", "--json")
    assert done.returncode == 0, done.stderr
    assert outcomes(slow.fetched_run()) == ["interrupted", "completed", "completed"]


def test_a_lock_that_names_another_image_is_refused_before_anything_starts(
    kit: DockerKit, services: Services
) -> None:
    """The index of one image with the image id of another: a swapped image on the host."""
    lock = json.loads(services.lock.read_text())
    amd64 = lock["images"]["demo-engine"]["platforms"]["linux/amd64"]
    amd64["image_id"] = str(services.other.config)
    swapped = kit.place / "swapped.lock.json"
    swapped.write_text(json.dumps(lock))
    kit.extra["KIT_IMAGE_LOCK"] = str(swapped)
    done = kit.reproduced()
    assert done.returncode == ImageMismatchError.exit_code, done.stderr
    assert f"got {services.image.config}, want {services.other.config}" in done.stderr
    assert kit.docker.containers() == []
    assert kit.runs() == [], "nothing was begun"
    verified = kit.call("images", "verify", "local", "--lock", str(swapped))
    assert verified.returncode == ImageMismatchError.exit_code
