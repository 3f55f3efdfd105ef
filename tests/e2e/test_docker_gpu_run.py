"""A run in a container that asks for the GPU: not begun in vain, and gone on with."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpu_host import Bench, equipped_daemon, gpu_kit_with_image, push_images
from registry_service import running_registry

from records.errors import HostUnfitError, InterruptedRunError

pytestmark = pytest.mark.timeout(240)

DOCKER = ("--runtime", "docker")


@pytest.fixture(scope="module")
def equipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A daemon that found a container toolkit as it started."""
    place = tmp_path_factory.mktemp("gpu")
    with running_registry(place / "registry") as registry:
        push_images(registry, place)
        with equipped_daemon(place, registry) as bench:
            yield bench


def test_a_run_is_not_begun_where_the_pulled_image_gets_no_gpu(
    equipped: Bench, tmp_path: Path
) -> None:
    """Before the pull nothing could be tried; nvidia-smi on the host finds nothing wrong."""
    equipped.docker.remove_images()
    kit = gpu_kit_with_image(equipped, tmp_path, "803")
    done = kit.reproduced(*DOCKER)
    assert done.returncode == HostUnfitError.exit_code, done.stderr
    assert "image sha256:" in done.stderr, "it was pulled"
    assert "CUDA error 803" in done.stderr
    assert "nvidia-ctk cdi generate" in done.stderr
    assert kit.runs() == [], "nothing was begun"
    assert equipped.docker.containers() == []
    again = kit.reproduced(*DOCKER)
    assert again.returncode == HostUnfitError.exit_code
    assert "cannot carry out plan tiny" in again.stderr, "the examination finds it now"
    assert "CUDA error 803" in again.stderr


def test_what_a_runs_own_container_has_on_the_gpu_keeps_nobody_from_going_on_with_it(
    equipped: Bench, tmp_path: Path
) -> None:
    """Its keeper was killed; the engine computes on, as nvidia-smi on the host shows."""
    kit = gpu_kit_with_image(equipped, tmp_path, "0", requests=6)
    with kit.reproducing(*DOCKER) as process:
        kit.wait_for_event("window.started")
        (container,) = equipped.docker.containers()
        os.kill(kit.job_pid(), signal.SIGKILL)
        process.communicate(timeout=90)
    assert process.returncode == InterruptedRunError.exit_code
    (tmp_path / "bin" / "busy").touch()
    assert equipped.docker.containers() == [container]
    done = kit.reproduced(*DOCKER)
    assert done.returncode == 0, done.stderr
    assert equipped.docker.containers() == []
