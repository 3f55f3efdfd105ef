"""Whether layers, unpacked layers and models fit where they go.

Reports: NemoClaw#9105 and Vast's documentation (default disks of 8 to 10 GB fill during the pull).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kit.doctor.docker_engine import IMAGE
from kit.doctor.topic import DOCKER, FAIL, PASS, WARN, WHEELS, Needs, Probe, Seen, Topic, Verdict
from records.errors import FormatError

# Of CUDA images: gzip holds libraries at about 45 %; a layer stands packed and unpacked at once
# while it is pulled, so a pull takes at most 1 + 1 / 0.45 of the compressed size.
_UNPACK_PERCENT = 320
_SPARE_BYTES = 2 << 30
_PROBES = (
    Probe("df-docker", ("df", "-Pk", "{root}")),
    Probe("df-home", ("df", "-Pk", "{home}")),
    Probe("home-directory", ("test", "-d", "{home}")),
    Probe("home-writable", ("test", "-w", "{home}")),
    Probe("df-shm", ("df", "-Pk", "/dev/shm")),  # noqa: S108 - asked for its size
)
_SHM_LEAST_BYTES = 1 << 30


def needed_bytes(needs: Needs) -> int:
    """What the docker runtime needs on the disk under DockerRootDir."""
    return needs.layers_bytes * _UNPACK_PERCENT // 100 + _SPARE_BYTES


def _check(seen: Seen, needs: Needs) -> Iterator[Verdict]:
    if needs.runtime != WHEELS and seen.text("df-docker"):
        yield _docker(seen, needs)
    yield _home(seen, needs)
    for name, found in (("home-directory", "a file"), ("home-writable", "not writable")):
        if seen.outputs[name].status != 0:
            cause = "a read-only disk, another user's directory, or a file in its place"
            remedy = "put the kit elsewhere there: KIT_HOME=… in the host's environment"
            yield Verdict("home", FAIL, found, cause, remedy)
            return
    # The docker runtime sets its own /dev/shm; an engine in a pod takes the pod's (vllm#1125).
    if needs.gpu and needs.runtime != DOCKER and seen.text("df-shm"):
        size = sizes(seen.text("df-shm"))[0]
        if size < _SHM_LEAST_BYTES:
            cause = "the engine's processes share memory there: hangs or SIGBUS"
            remedy = "start the container with --ipc=host or --shm-size=8g"
            yield Verdict("shm", WARN, f"{size >> 20} MiB", cause, remedy)
        else:
            yield Verdict("shm", PASS, f"{size >> 20} MiB")


def _docker(seen: Seen, needs: Needs) -> Verdict:
    free = sizes(seen.text("df-docker"))[1]
    found = f"{free >> 30} GiB free where Docker keeps images"
    if seen.text(IMAGE):
        return Verdict("disk-docker", PASS, f"{found}, the image is there")
    if not needs.layers_bytes:
        cause = "the image lock does not say how large the image is"
        return Verdict("disk-docker", WARN, found, cause, "kit images lock")
    want = needed_bytes(needs)
    also = ""
    if seen.text("df-home") and mount(seen.text("df-home")) == mount(seen.text("df-docker")):
        want += _home_bytes(needs)
        also = "; models and caches go to the same disk"
    if free < want:
        cause = (
            f"pulling {needs.layers_bytes >> 30} GiB of layers takes up to "
            f"{needed_bytes(needs) >> 30} GiB packed and unpacked{also}"
        )
        remedy = "rent a larger disk, or move data-root in /etc/docker/daemon.json"
        return Verdict("disk-docker", FAIL, found, cause, remedy)
    return Verdict("disk-docker", PASS, f"{found}, {want >> 30} needed")


def _home(seen: Seen, needs: Needs) -> Verdict:
    free = sizes(seen.text("df-home"))[1]
    want = _home_bytes(needs)
    found = f"{free >> 20} MiB free for the kit, {want >> 20} needed"
    if free < want:
        remedy = "free space, or put the kit on another disk: KIT_HOME=…"
        return Verdict("disk", FAIL, found, "models, caches and records would not fit", remedy)
    return Verdict("disk", PASS, found)


def _home_bytes(needs: Needs) -> int:
    whole = needs.requirements.disk_mib << 20
    want = needs.models_bytes + _SPARE_BYTES if needs.runtime == DOCKER else whole
    # A small plan says itself how little it needs.
    return max(0, min(want, whole) - needs.present_bytes)


def mount(text: str) -> str:
    """Where the file system of `df -Pk` is mounted: its last column (POSIX)."""
    return text.strip().splitlines()[-1].split()[-1]


def sizes(text: str) -> tuple[int, int]:
    """Size and what is available, in bytes, from `df -Pk` (POSIX)."""
    lines = text.strip().splitlines()
    match = re.search(r"\s(\d+)\s+(\d+)\s+(-?\d+)\s+\d+%\s", lines[-1]) if lines else None
    if match is None:
        raise FormatError(f"df -Pk: no line of sizes in {text[:120]!r}")
    return int(match[1]) << 10, max(0, int(match[3])) << 10


DISK = Topic(_PROBES, _check)
