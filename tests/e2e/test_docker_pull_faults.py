"""Pulls that fail, by a real daemon from a real registry: what is tried again, what is told."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from docker_service import DockerService, push_python_image, python_layer, running_docker
from fault_proxy import Asked, Fault, Rule, fault_proxy
from registry_service import RegistryService, free_port, running_registry

from kit.docker.choice import choose
from kit.docker.pull import ensure_image
from kit.home import Home
from kit.hosts.local import LocalHost
from kit.main import main
from records.errors import DockerError, ImageMismatchError, KitError

pytestmark = pytest.mark.timeout(240)
REPOSITORY = "demo/engine"
FIVE = [1, 2, 4, 8, 16]


@dataclass(frozen=True)
class Bench:
    """A registry with one image, the lock that names it, and a daemon."""

    registry: RegistryService
    docker: DockerService
    lock: Path

    def pull(self, registry: str, patch: pytest.MonkeyPatch) -> tuple[KitError | None, list[float]]:
        """How the pull from there ends, and the waits on the way."""
        waits: list[float] = []
        patch.setattr("kit.docker.pull.time", SimpleNamespace(sleep=waits.append))
        patch.setenv("DOCKER_HOST", self.docker.host)
        choice = choose(self.lock.parent, "one", registry, self.lock)
        place = self.lock.parent
        try:
            ensure_image(Home(place, place, place, place), LocalHost(), choice, print)
        except KitError as error:
            return error, waits
        return None, waits

    def forget(self) -> None:
        self.docker.remove_images()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    place = tmp_path_factory.mktemp("pull")
    with running_registry(place / "registry") as registry, running_docker() as docker:
        push_python_image(registry, REPOSITORY, "v1", python_layer())
        lock = place / "images.lock.json"
        lock.write_text('{"format": 1, "images": {}}')
        added = f"{registry.name}/{REPOSITORY}:v1"
        assert main(["images", "lock", "one", "--add", added, "--lock", str(lock)]) == 0
        yield Bench(registry, docker, lock)


def on(part: str, fault: Fault) -> Rule:
    """This answer to whatever is asked for below that part of the path."""
    return lambda asked: fault if f"/{part}/" in asked.path else None


def lie_about(part: str) -> Rule:
    """One changed byte of the same length."""

    def rule(asked: Asked) -> Fault | None:
        if f"/{part}/sha256:" not in asked.path:
            return None
        real = asked.behind()
        kind = real.headers["Content-Type"]
        body = real.content.replace(b"linux", b"linus", 1)
        return Fault(body=body, headers=(("Content-Type", kind),))

    return rule


def test_a_registry_in_order(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.forget()
    assert bench.pull("", monkeypatch) == (None, [])


@pytest.mark.parametrize("part", ["manifests", "blobs"])
def test_a_lying_mirror_is_found_by_the_daemon_and_not_asked_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    bench.forget()
    with fault_proxy(bench.registry.url, lie_about(part)) as proxy:
        error, waits = bench.pull(proxy.name, monkeypatch)
        assert isinstance(error, ImageMismatchError)
        assert "verification failed for digest" in error.message
        assert f"do not use {proxy.name}" in error.remedy
        assert waits == []


@pytest.mark.parametrize(
    ("fault", "words", "remedy", "waits"),
    [
        (Fault(429), "429", "docker login, or another registry", FIVE),
        (
            Fault(
                429,
                json.dumps({"errors": [{"code": "TOOMANYREQUESTS", "message": "x"}]}).encode(),
                (("Content-Type", "application/json"),),
            ),
            "toomanyrequests",
            "--mirror HOST",
            FIVE,
        ),
        (Fault(503), "503", "start the same command again", FIVE),
        (Fault(403), "403", "docker login", []),
        (Fault(404), "404", "--mirror HOST", []),
    ],
    ids=["429", "429 in words", "503", "403", "404"],
)
def test_a_refusal_is_tried_again_where_that_may_help(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
    words: str,
    remedy: str,
    waits: list[float],
) -> None:
    bench.forget()
    with fault_proxy(bench.registry.url, on("manifests", fault)) as proxy:
        error, waited = bench.pull(proxy.name, monkeypatch)
    assert isinstance(error, DockerError)
    assert words in error.message
    assert remedy in error.remedy
    assert waited == waits


def test_a_registry_that_is_not_there_is_told_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.forget()
    for name in (f"127.0.0.1:{free_port()}", "no-such-registry.invalid"):
        error, waits = bench.pull(name, monkeypatch)
        assert isinstance(error, DockerError)
        assert "check the host's network" in error.remedy
        assert waits == []


@contextmanager
def small_disk(mebibytes: int) -> Iterator[DockerService]:
    """A daemon whose DockerRootDir is a disk of its own."""
    with tempfile.TemporaryDirectory(prefix="kit-s", dir="/tmp") as directory:
        data = Path(directory) / "data"
        data.mkdir()
        size = f"size={mebibytes}m"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(data)], check=True)
        service = DockerService(Path(directory))
        try:
            service.start()
            yield service
        finally:
            service.stop()
            for line in reversed(Path("/proc/mounts").read_text().splitlines()):
                if line.split()[1].startswith(f"{directory}/"):
                    subprocess.run(["umount", "-l", line.split()[1]], check=True)


@pytest.mark.parametrize("mebibytes", [15, 45], ids=["packed", "unpacked"])
def test_a_disk_that_fills_up_is_told_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, mebibytes: int
) -> None:
    with small_disk(mebibytes) as docker:
        error, waits = Bench(bench.registry, docker, bench.lock).pull("", monkeypatch)
    assert isinstance(error, DockerError)
    assert "no space left on device" in error.message
    assert "larger disk" in error.remedy
    assert waits == []
