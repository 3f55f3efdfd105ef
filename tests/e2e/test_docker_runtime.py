"""The docker runtime for real: registry, daemon and engine on loopback, and what befalls them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
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
from sshd import running

from kit.docker.request import LABEL
from records import schema
from records.digest import Digest
from records.errors import BootsFailedError, ImageMismatchError, InterruptedRunError
from records.run_directory import RunDirectory, runs_in

ROOT = Path(__file__).parents[2]
DEMO = (ROOT / "kit" / "plans" / "demo.toml").read_text()
REPOSITORY = "demo/engine"
PATIENCE_S = 180


def plan_text(requests: int = 2) -> str:
    """The demo plan cut down to one block and one window a boot."""
    text = DEMO.replace("blocks = 2", "blocks = 1").replace('id = "demo"', 'id = "tiny"', 1)
    text = text[: text.index('[[windows]]\nid = "c8"')]
    return text.replace("requests = 2 }", f"requests = {requests} }}")


@dataclass(frozen=True)
class Bench:
    """Registry, daemon and a locked image, and a kit with places of its own."""

    registry: RegistryService
    docker: DockerService
    image: PushedImage
    other: PushedImage
    lock: Path
    place: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        places = {"KIT_HOME": "home", "KIT_OUT": "out", "KIT_DATA": "data"}
        here = {name: str(self.place / below) for name, below in places.items()}
        return {
            **self.docker.env,
            **here,
            "KIT_RUNTIME": "docker",
            "KIT_IMAGE_LOCK": str(self.lock),
        }

    def argv(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "kit.main", *args]

    def call(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*args), cwd=ROOT, env=self.env, capture_output=True, text=True, check=False
        )

    def reproduce(self) -> subprocess.CompletedProcess[str]:
        return self.call("reproduce", "--plan", str(self.plan), "--host", "local", "--json")

    def start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self.argv("reproduce", "--plan", str(self.plan), "--json"),
            cwd=ROOT,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    @property
    def plan(self) -> Path:
        return self.place / "tiny.toml"

    @property
    def records(self) -> Path:
        return self.place / "out" / "demo" / "records"

    def fetched(self) -> RunDirectory:
        (run,) = runs_in(self.records)
        return run

    def keeper_pid(self) -> int:
        (file,) = (self.place / "home" / "jobs").glob("*.pid")
        return int(file.read_text())

    def wait_for_event(self, event_type: str) -> None:
        needle = f'"type":"{event_type}"'.encode()
        runs = self.place / "home" / "runs"

        def there() -> bool:
            return any(needle in p.read_bytes() for p in runs.glob("*/events.jsonl"))

        wait(there)

    def container(self) -> str:
        (container,) = self.docker.containers()
        return container

    def pids(self, argv_part: str) -> list[int]:
        """Processes in the container, as the host numbers them, with this argument."""
        shown = self.docker.docker("top", self.container(), "-ww", "-eo", "pid,args").stdout
        return [int(line.split()[0]) for line in shown.splitlines()[1:] if argv_part in line]


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail("waited in vain")
        time.sleep(0.05)


def events(run: RunDirectory, kind: type) -> list[object]:
    return [e.event for e in run.read() if isinstance(e.event, kind)]


def outcomes(run: RunDirectory) -> list[str]:
    return [e.event.outcome for e in run.read() if isinstance(e.event, schema.BootEnded)]


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Started once: what a test does to its daemon it also undoes."""
    place = tmp_path_factory.mktemp("docker")
    with running_registry(place / "registry") as registry, running_docker() as docker:
        layer = python_layer()
        image = push_python_image(registry, REPOSITORY, "v1", layer)
        other = push_python_image(registry, REPOSITORY, "v2", layer, "ANOTHER=image")
        lock = place / "images.lock.json"
        lock.write_text('{"format": 1, "images": {}}')
        bench = Bench(registry, docker, image, other, lock, place)
        added = f"{registry.name}/{REPOSITORY}:v1"
        locked = bench.call("images", "lock", "demo-engine", "--add", added, "--lock", str(lock))
        assert locked.returncode == 0, locked.stderr
        yield bench


@pytest.fixture
def bench(services: Bench, tmp_path: Path) -> Iterator[Bench]:
    (tmp_path / "tiny.toml").write_text(plan_text())
    bench = replace(services, place=tmp_path, started=[])
    yield bench
    for process in bench.started:
        if process.poll() is None:
            process.kill()
        process.communicate()
    for container in services.docker.containers():
        services.docker.docker("rm", "-f", container)


@pytest.fixture
def slow(bench: Bench) -> Bench:
    """Windows of several seconds, so that a fault finds one open."""
    bench.plan.write_text(plan_text(requests=8))
    return bench


def test_a_plan_is_pulled_by_digest_run_sealed_fetched_and_audited(bench: Bench) -> None:
    for image in bench.docker.docker("images", "-q").stdout.split():
        bench.docker.docker("rmi", "-f", image)
    done = bench.reproduce()
    assert done.returncode == 0, done.stderr
    reference = f"{bench.registry.name}/{REPOSITORY}@{bench.image.index}"
    assert f"pulling {reference}" in done.stderr
    assert "layer 1 of 1: pull complete" in done.stderr
    run = bench.fetched()
    assert run.is_sealed
    assert outcomes(run) == ["completed", "completed"]
    before, after = (e.event for e in run.read() if isinstance(e.event, schema.EngineBound))
    assert (before.phase, after.phase) == ("before", "after")
    assert before.facts == after.facts
    assert before.runtime == "docker"
    assert before.digest == bench.image.index
    assert before.lock_digest == Digest.of(bench.lock.read_bytes())
    facts = before.facts
    assert facts["image_id"] == facts["container_image"] == str(bench.image.config)
    assert facts["manifest_digest"] == str(bench.image.manifest)
    assert (facts["network"], facts["read_only_root"]) == ("none", True)
    assert bench.docker.containers() == []
    found = json.loads(bench.call("audit", "--data", str(bench.records), "--json").stdout)
    of_run = [f for f in found["findings"] if run.path.name in f["where"]["file"]]
    assert {f["code"] for f in of_run} == {"PLAN04"}, "synthetic, and nothing else"


def test_the_same_on_a_host_over_ssh(bench: Bench, tmp_path: Path, user_home: Path) -> None:
    """sshd, dockerd and registry on loopback: pulled there by digest, run, fetched, audited."""
    for image in bench.docker.docker("images", "-q").stdout.split():
        bench.docker.docker("rmi", "-f", image)
    kit = SshKit(tmp_path / "laptop", user_home)
    kit.extra |= {"KIT_RUNTIME": "docker", "KIT_IMAGE_LOCK": str(bench.lock)}
    there = {"DOCKER_HOST": bench.docker.host}
    key = user_home / ".ssh" / "id_ed25519.pub"
    with running(tmp_path / "host", key, **there) as sshd:
        done = kit.call(*kit.reproduce(name_of(sshd)), "--json")
        assert done.returncode == 0, done.stderr
        assert "layer 1 of 1: pull complete" in done.stderr
        verified = kit.call("images", "verify", name_of(sshd), "--lock", str(bench.lock))
        assert verified.returncode == 0, verified.stderr
    (run,) = kit.fetched()
    assert run.is_sealed
    assert outcomes(run) == ["completed", "completed"]
    bound = [e.event for e in run.read() if isinstance(e.event, schema.EngineBound)]
    assert [event.digest for event in bound] == [bench.image.index] * 2
    found = json.loads(kit.call("audit", "--data", str(kit.records), "--json").stdout)
    of_run = {f["code"] for f in found["findings"] if run.path.name in f["where"]["file"]}
    assert of_run == {"PLAN04"}


def test_the_running_container_is_the_golden_kind_and_the_host_can_be_verified(slow: Bench) -> None:
    process = slow.start()
    slow.wait_for_event("window.started")
    shown = json.loads(slow.docker.docker("inspect", slow.container()).stdout)[0]
    assert shown["Config"]["Labels"][LABEL].endswith(tuple("0123456789abcdef"))
    assert shown["Image"] == str(slow.image.config)
    host = shown["HostConfig"]
    assert host["ReadonlyRootfs"]
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert not host["Privileged"]
    assert not [m for m in shown["Mounts"] if m["Source"].endswith(".sock")]
    verified = slow.call("images", "verify", "local", "--lock", str(slow.lock), "--json")
    assert verified.returncode == 0, verified.stderr
    rows = json.loads(verified.stdout)
    assert [row["what"] for row in rows] == ["image", "container"]
    _, shown_text = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, shown_text


def test_an_engine_killed_in_a_window_fails_its_boot_and_the_plan_goes_on(slow: Bench) -> None:
    process = slow.start()
    slow.wait_for_event("window.started")
    wait(lambda: bool(slow.pids("--served-model-name")))
    for pid in slow.pids("--served-model-name"):
        kill(pid)
    _, shown = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == BootsFailedError.exit_code, shown
    run = slow.fetched()
    assert run.is_sealed
    assert sorted(outcomes(run)) == ["completed", "failed"]


def test_a_daemon_restarted_in_a_window_costs_one_boot_attempt_and_nothing_else(
    slow: Bench,
) -> None:
    process = slow.start()
    slow.wait_for_event("window.started")
    slow.docker.restart()
    _, shown = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, shown
    run = slow.fetched()
    assert run.is_sealed
    assert list(run.verify_files()) == []
    ended = outcomes(run)
    # A loaded machine may get through its boots before the daemon makes the harness end.
    assert ended.count("completed") == 2
    assert ended.count("interrupted") == len(ended) - 2 <= 1
    bound = [e.event.phase for e in run.read() if isinstance(e.event, schema.EngineBound)]
    assert (bound[0], bound[-1]) == ("before", "after")
    assert len(events(run, schema.RunResumed)) == 1


def test_a_killed_harness_is_a_record_and_the_same_command_resumes(slow: Bench) -> None:
    process = slow.start()
    slow.wait_for_event("window.started")
    for pid in slow.pids("/kit/job.json"):
        kill(pid)
    _, shown = process.communicate(timeout=PATIENCE_S)
    assert process.returncode != 0, shown
    done = slow.reproduce()
    assert done.returncode == 0, done.stderr
    assert "resuming unfinished run" in done.stderr
    assert outcomes(slow.fetched()) == ["interrupted", "completed", "completed"]


def test_a_killed_keeper_leaves_the_container_for_the_next_one(slow: Bench) -> None:
    process = slow.start()
    slow.wait_for_event("window.started")
    container = slow.container()
    kill(slow.keeper_pid())
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == InterruptedRunError.exit_code
    assert slow.container() == container
    done = slow.reproduce()
    assert done.returncode == 0, done.stderr
    run = slow.fetched()
    assert outcomes(run) == ["completed", "completed"], "the container went on by itself"
    assert slow.docker.containers() == []


def test_ctrl_c_marks_the_boot_in_the_container(slow: Bench) -> None:
    process = slow.start()
    slow.wait_for_event("window.started")
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == InterruptedRunError.exit_code, shown
    assert slow.docker.containers() == []
    done = slow.reproduce()
    assert done.returncode == 0, done.stderr
    assert outcomes(slow.fetched()) == ["interrupted", "completed", "completed"]


def test_a_lock_that_names_another_image_is_refused_before_anything_starts(bench: Bench) -> None:
    """The index of one image with the image id of another: a swapped image on the host."""
    lock = json.loads(bench.lock.read_text())
    amd64 = lock["images"]["demo-engine"]["platforms"]["linux/amd64"]
    amd64["image_id"] = str(bench.other.config)
    swapped = bench.place / "swapped.lock.json"
    swapped.write_text(json.dumps(lock))
    done = subprocess.run(
        bench.argv("reproduce", "--plan", str(bench.plan)),
        cwd=ROOT,
        env={**bench.env, "KIT_IMAGE_LOCK": str(swapped)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ImageMismatchError.exit_code, done.stderr
    assert f"got {bench.image.config}, want {bench.other.config}" in done.stderr
    assert bench.docker.containers() == []
    assert list((bench.place / "home").glob("runs/*/events.jsonl")) == [], "nothing was begun"
    verified = bench.call("images", "verify", "local", "--lock", str(swapped))
    assert verified.returncode == ImageMismatchError.exit_code
