"""Have a daemon pull an image by digest: with progress, again where it broke off.

Invariant: nothing is pulled by tag; layers that are there already are kept by the daemon, so trying
again resumes; a refusal that no repetition changes is told at once.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import docker
from docker.errors import APIError, DockerException

from kit.docker.choice import DockerChoice
from kit.docker.progress import PullProgress, last_line, printed
from kit.docker.pull_words import is_final, is_other_bytes, remedy
from kit.home import Home
from kit.hosts.host import NOT_FOUND, Host
from kit.registry import backoff, credentials
from kit.run.follow_log import LogTail
from records.errors import DockerError, ImageMismatchError

Say = Callable[[str], None]
DEFAULT_SOCKET = "/var/run/docker.sock"
_POLL_S = 0.5


def socket_path(environ: Mapping[str, str]) -> str:
    """The socket of this machine's daemon, from DOCKER_HOST where that names one."""
    address = environ.get("DOCKER_HOST", "")
    if address and not address.startswith("unix://"):
        raise DockerError(
            f"DOCKER_HOST={address}: only a daemon on the host itself can be answered for",
            "unset DOCKER_HOST, or DOCKER_HOST=unix:///var/run/docker.sock",
        )
    return address.removeprefix("unix://") or DEFAULT_SOCKET


def inspect_image(host: Host, reference: str) -> dict[str, Any] | None:
    """What the host's daemon knows of an image; None where it has none of this reference."""
    done = host.run(("docker", "image", "inspect", reference))
    if done.status == NOT_FOUND:
        raise DockerError(f"{host.name}: no docker there", "kit doctor HOST")
    if done.status == 0:
        return inspected(host, done.stdout)
    if "no such image" in done.stderr.lower():
        return None
    raise DockerError(f"{host.name}: docker: {done.stderr.strip()[:300]}", "kit doctor HOST")


def inspected(host: Host, text: str) -> dict[str, Any]:
    """The one object that `docker … inspect` prints. DockerError where it prints another thing."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not (isinstance(found, list) and found and isinstance(found[0], dict)):
        raise DockerError(f"{host.name}: docker inspect prints {text[:80]!r}", "kit doctor HOST")
    return found[0]


def ensure_image(home: Home, host: Host, choice: DockerChoice, say: Say) -> bool:
    """The image on the host, pulled if it is not there, and compared; whether it was pulled.

    ImageMismatchError.
    """
    reference = str(choice.reference)
    image = inspect_image(host, reference)
    is_new = image is None
    if image is None:
        say(f"pulling {reference}")
        if host.name == "local":
            _pull_here(choice, say)
        else:
            _pull_there(home, host, choice, say)
        image = inspect_image(host, reference)
    if image is None:
        raise DockerError(f"{host.name}: {reference} was pulled and is not there", "kit doctor")
    wrong = list(choice.digests.differences(image))
    if wrong:
        raise ImageMismatchError(f"{host.name}: {reference}: {'; '.join(wrong)}", "docker rmi it")
    say(f"image {choice.digests.image_id} is the locked one")
    return is_new


def _pull_there(home: Home, host: Host, choice: DockerChoice, say: Say) -> None:
    """By a process of its own there: a dropped line neither stops it nor starts a second."""
    there, digest = host.home(home), choice.reference.digest.hex[:16]
    note, log = there.path / "pulls" / f"{digest}.pid", there.logs / f"pull-{digest}.log"

    def once() -> str:
        progress = PullProgress(choice.platform.layers_bytes, choice.platform.layer_count)
        tail = LogTail(host, log)
        argv = ("docker", "pull", str(choice.reference))
        running = host.start_detached(argv, there.path, log, note)
        while True:
            status = running.exit_status()
            for line in filter(None, map(progress.see, map(printed, tail.lines()))):
                say(line)
            if status is not None:
                return "" if status == 0 else last_line(tail.text)
            time.sleep(_POLL_S)

    _until_pulled(choice, once, say)


def _pull_here(choice: DockerChoice, say: Say) -> None:
    def once() -> str:
        progress = PullProgress(choice.platform.layers_bytes, choice.platform.layer_count)
        for message in _messages(choice):
            if "error" in message:
                return str(message["error"])
            line = progress.see(message)
            if line:
                say(line)
        return ""

    _until_pulled(choice, once, say)


def _until_pulled(choice: DockerChoice, once: Callable[[], str], say: Say) -> None:
    """Attempts, each of which tells what stood in its way.

    DockerError after the last; ImageMismatchError: other bytes under the digest.
    """
    for attempt in range(1, backoff.ATTEMPTS + 1):
        problem = once()
        if not problem:
            return
        if is_final(problem) or attempt == backoff.ATTEMPTS:
            break
        seconds = backoff.FIRST_S * (1 << (attempt - 1))
        say(f"  {problem}; going on in {seconds:g} s")
        time.sleep(seconds)
    message = f"pulling {choice.reference}: {problem}"
    if is_other_bytes(problem):
        name = choice.reference.registry
        raise ImageMismatchError(
            message, f"do not use {name}: it serves other bytes than were asked for"
        )
    raise DockerError(message, remedy(problem))


def _messages(choice: DockerChoice) -> Iterator[dict[str, Any]]:
    """What the daemon says while it pulls; its refusal as a message like those it streams."""
    found = credentials.find(choice.reference.registry, os.environ)
    auth = {"username": found.user, "password": found.password} if found else None
    name = f"{choice.reference.registry}/{choice.reference.repository}"
    try:
        client = docker.APIClient(base_url=f"unix://{socket_path(os.environ)}", version="auto")
        try:
            yield from client.pull(
                name,
                tag=str(choice.reference.digest),
                stream=True,
                decode=True,
                auth_config=auth,
                platform=choice.platform_name,
            )
        finally:
            client.close()
    except APIError as error:
        yield {"error": str(error.explanation or error)}
    except DockerException as error:
        raise DockerError(f"the Docker daemon does not answer: {error}", "kit doctor") from error
