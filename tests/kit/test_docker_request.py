"""The container-create request, byte for byte against a golden file, and what it never holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.docker.progress import PullProgress, last_line, printed
from kit.docker.pull import socket_path
from kit.docker.request import ContainerSpec, create_request
from records.digest import Digest, ImageRef
from records.errors import DockerError
from records.image_digests import ImageDigests

GOLDEN = Path(__file__).parents[1] / "fixtures" / "docker" / "create-request.json"
INDEX = Digest("c2914767605584b6d8f45686b82de173ecc99e781897aa3d0a66dacd72c51ae1")
MANIFEST, CONFIG = Digest("a" * 64), Digest("b" * 64)
SPEC = ContainerSpec(
    run_id="20261130T120000Z-l4-confounds-0a1b2c",
    image=ImageRef("docker.io", "vllm/vllm-openai", INDEX),
    python="python3",
    user="1000:1000",
    gpus=True,
    readable={
        "/kit/harness.pyz": "/home/u/.kit/harness/0123456789abcdef.pyz",
        "/kit/job.json": "/home/u/.kit/containers/r/job.json",
        "/kit/models/qwen3-4b": "/home/u/.kit/models/qwen3-4b",
    },
    writable={
        "/kit/exchange": "/home/u/.kit/containers/r/exchange",
        "/kit/scratch": "/home/u/.kit/scratch/r",
        "/kit/runs/r": "/home/u/.kit/runs/r",
    },
)


def test_the_request_is_the_golden_one() -> None:
    assert json.dumps(create_request(SPEC), indent=2, sort_keys=True) + "\n" == GOLDEN.read_text()


def test_the_request_gives_nothing_away() -> None:
    request = create_request(SPEC)
    host = request["HostConfig"]
    assert "@sha256:" in request["Image"]
    assert host["CapDrop"] == ["ALL"]
    assert "CapAdd" not in host
    assert host["ReadonlyRootfs"] is True
    assert host["Privileged"] is False
    assert host["NetworkMode"] == "none"
    assert "PortBindings" not in host
    assert "no-new-privileges" in host["SecurityOpt"]
    assert not [m for m in host["Mounts"] if "docker.sock" in m["Source"]]
    writable = [m["Target"] for m in host["Mounts"] if not m["ReadOnly"]]
    assert writable == ["/kit/exchange", "/kit/runs/r", "/kit/scratch"]
    assert "DeviceRequests" in host


IMAGE = {
    "Id": str(CONFIG),
    "RepoDigests": [f"vllm/vllm-openai@{INDEX}"],
    "Os": "linux",
    "Architecture": "amd64",
}
DIGESTS = ImageDigests(INDEX, MANIFEST, CONFIG)


def test_the_locked_image_is_known_in_either_store() -> None:
    assert list(DIGESTS.differences(IMAGE)) == []
    containerd = {**IMAGE, "Id": str(INDEX)}
    assert list(DIGESTS.differences(containerd, {"Image": str(INDEX)})) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"Id": f"sha256:{'0' * 64}"}, f"image id: got sha256:{'0' * 64}, want {CONFIG}"),
        ({"RepoDigests": []}, f"repository digest: got none, want {INDEX}"),
        ({"RepoDigests": [f"x/y@sha256:{'1' * 64}"]}, f"want {INDEX}"),
        ({"Architecture": "arm64"}, "platform: got linux/arm64, want linux/amd64"),
    ],
)
def test_any_other_image_is_refused_with_got_and_want(
    changes: dict[str, object], words: str
) -> None:
    assert words in "; ".join(DIGESTS.differences({**IMAGE, **changes}))


def test_a_container_of_another_image_is_refused() -> None:
    other = f"sha256:{'2' * 64}"
    assert list(DIGESTS.differences(IMAGE, {"Image": other})) == [
        f"image of the container: got {other}, want {CONFIG}"
    ]


def test_progress_is_told_by_layer_and_by_tenths() -> None:
    progress = PullProgress(100 << 20, 2)

    def see(status: str, current: int = 0, layer: str = "a") -> str:
        detail = {"current": current << 20, "total": 60 << 20}
        return progress.see({"status": status, "id": layer, "progressDetail": detail})

    assert see("Pulling fs layer") == ""
    assert see("Downloading", 5) == ""
    assert see("Downloading", 25) == "  pulled 25 of 100 MiB"
    assert see("Downloading", 27) == ""
    assert see("Downloading", 40, "b") == "  pulled 67 of 100 MiB"
    assert see("Pull complete") == "  layer 1 of 2: pull complete"
    assert see("Pull complete") == ""
    assert progress.see({"status": "Status: Downloaded newer image"}) == ""


def test_only_a_daemon_on_the_host_itself_is_used() -> None:
    assert socket_path({}) == "/var/run/docker.sock"
    assert socket_path({"DOCKER_HOST": "unix:///run/user/1000/docker.sock"}).startswith("/run/user")
    with pytest.raises(DockerError):
        socket_path({"DOCKER_HOST": "tcp://10.0.0.1:2375"})


# docker.io 20.10.24, `docker pull REF | cat`.
PRINTED = """\
127.0.0.1:5000/demo/engine@sha256:0bd5: Pulling from demo/engine
5f70bf18a086: Pulling fs layer
5f70bf18a086: Verifying Checksum
5f70bf18a086: Download complete
5f70bf18a086: Pull complete
Digest: sha256:0bd5
Status: Downloaded newer image for 127.0.0.1:5000/demo/engine@sha256:0bd5
"""


def test_a_pull_on_a_host_is_told_by_layer_too() -> None:
    progress = PullProgress(0, 1)
    said = [progress.see(printed(line)) for line in PRINTED.splitlines()]
    assert [line for line in said if line] == ["  layer 1 of 1: pull complete"]
    refusal = (
        "Error response from daemon: toomanyrequests: You have reached your pull rate limit.\n"
    )
    assert last_line(PRINTED + refusal).startswith("toomanyrequests")
    assert last_line("") == "it says nothing"
