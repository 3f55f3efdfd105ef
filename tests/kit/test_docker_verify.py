"""`kit images verify HOST` with a daemon that answers oddly: nothing odd passes as fine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from kit.docker.choice import DockerChoice
from kit.docker.verify import verify_on_host
from kit.hosts.host import Done
from kit.hosts.local import LocalHost
from kit.image_lock import LockedImage
from kit.registry.resolve import Platform
from records.digest import Digest
from records.errors import DockerError, ImageMismatchError

INDEX, MANIFEST, IMAGE = (Digest.of(word) for word in (b"index", b"manifest", b"image"))
LOCKED = LockedImage("r.example", "a/b", "", INDEX, False, {})
CHOICE = DockerChoice(LOCKED, Platform(MANIFEST, IMAGE, 1, 1, ""), "r.example", "lock", INDEX)
NONE, GONE = Done(0, "", ""), Done(1, "", "no such container")
GOOD = {
    "Id": str(IMAGE),
    "RepoDigests": [f"r.example/a/b@{INDEX}"],
    "Os": "linux",
    "Architecture": "amd64",
}
LABELLED = {"Labels": {"spec-fp8-reproduction-kit.run": "run-1"}}


@dataclass
class Daemon(LocalHost):
    """A host whose docker answers from a table, by the first two words."""

    image: Done
    ps: Done = NONE
    container: Done = GONE
    name: str = "gpu"

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: int = 60) -> Done:
        answer: Done = getattr(self, argv[1])
        return answer


def printed(value: Any) -> Done:
    return Done(0, json.dumps([value]), "")


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "[1]", "[" * 100_000, "WARNING: all is well\n[{}]", "{}"]
)
def test_what_is_no_image_is_told(text: str) -> None:
    with pytest.raises(DockerError, match="docker inspect prints"):
        list(verify_on_host(Daemon(Done(0, text, "")), CHOICE))


def test_containers_that_cannot_be_listed_are_not_none() -> None:
    daemon = Daemon(printed(GOOD), Done(1, "", "permission denied"))
    with pytest.raises(DockerError, match="docker ps: permission denied"):
        list(verify_on_host(daemon, CHOICE))


@pytest.mark.parametrize("container", [{}, {"Config": None}, {"Config": LABELLED, "Image": "x"}])
def test_a_container_of_something_else(container: dict[str, Any]) -> None:
    daemon = Daemon(printed(GOOD), Done(0, "c1\n", ""), printed(container))
    with pytest.raises(ImageMismatchError, match="image of the container"):
        list(verify_on_host(daemon, CHOICE))


def test_the_image_and_its_container() -> None:
    container = printed({"Config": LABELLED, "Image": str(IMAGE)})
    found = verify_on_host(Daemon(printed(GOOD), Done(0, "c1\n", ""), container), CHOICE)
    assert [one.what for one in found] == ["image", "container"]
