"""Hold a host's image, and the containers that run it, against the lock.

Invariant: nothing is pulled, started or removed; what differs is named with got and want.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kit.docker.choice import DockerChoice
from kit.docker.pull import inspect_image, inspected
from kit.docker.request import LABEL, container_name
from kit.hosts.host import Host
from records.errors import DockerError, ImageMismatchError


@dataclass(frozen=True, slots=True)
class OnHost:
    """One thing that was found to be the locked image: "image", or "container" and its run."""

    what: str
    name: str
    image_id: str


def verify_on_host(host: Host, choice: DockerChoice) -> Iterator[OnHost]:
    """The image, then each container of this kit. ImageMismatchError; DockerError: not there."""
    reference = str(choice.reference)
    image = inspect_image(host, reference)
    if image is None:
        raise DockerError(f"{host.name} does not have {reference}", "kit reproduce pulls it")
    _require(host, reference, choice, image, None)
    yield OnHost("image", reference, str(image.get("Id")))
    listed = host.run(("docker", "ps", "-q", "--no-trunc", "--filter", f"label={LABEL}"))
    if listed.status != 0:  # no answer is not "no container"
        raise DockerError(
            f"{host.name}: docker ps: {listed.stderr.strip()[:300]}", "kit doctor HOST"
        )
    for number in listed.stdout.split():
        done = host.run(("docker", "container", "inspect", number))
        if done.status != 0:  # it ended between the two questions
            continue
        container = inspected(host, done.stdout)
        labels = (container.get("Config") or {}).get("Labels") or {}
        run = str(labels.get(LABEL))
        _require(host, f"container of run {run}", choice, image, container)
        yield OnHost("container", run, str(container.get("Image")))


def is_running(host: Host, run_id: str) -> bool:
    """Whether this run's container is at work, whatever became of what kept it."""
    name = container_name(run_id)
    done = host.run(("docker", "container", "inspect", "--format", "{{.State.Running}}", name))
    return done.status == 0 and done.stdout.strip() == "true"


def _require(
    host: Host,
    what: str,
    choice: DockerChoice,
    image: dict[str, object],
    container: dict[str, object] | None,
) -> None:
    wrong = list(choice.digests.differences(image, container))
    if wrong:
        raise ImageMismatchError(f"{host.name}: {what}: {'; '.join(wrong)}", "docker rmi it")
