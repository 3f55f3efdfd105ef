"""The Docker daemon: whether there is one, whether we may, whether it hands out GPUs.

Reports: analogsea#78 (socket permission), nvidia-docker#1034 (no device driver for `gpu`),
nvidia-docker#1730 and dstack#2860 (NVML lost after daemon-reload under the systemd cgroup driver).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kit.doctor.topic import DOCKER, FAIL, PASS, WARN, WHEELS, Needs, Probe, Seen, Topic, Verdict
from records.errors import FormatError

INFO, IMAGE = "docker", "image"
GPU_CONTAINERS = "gpu-containers"
_PROBES = (
    Probe(INFO, ("docker", "info", "--format", "{{json .}}")),
    Probe("toolkit", ("nvidia-container-cli", "--version")),
    Probe(IMAGE, ("docker", "image", "inspect", "--format", "{{.Id}}", "{image}")),
)
_GROUP = "sudo usermod -aG docker $USER, then log out and in again"


def _check(seen: Seen, needs: Needs) -> Iterator[Verdict]:
    if needs.runtime == WHEELS:
        return
    daemon = _daemon(seen, needs)
    yield daemon
    info = information(seen)
    if daemon.status != PASS or info is None:
        return
    if needs.gpu:
        yield _device_driver(seen, info)
    if needs.gpu and info.get("CgroupDriver") == "systemd":
        yield Verdict(
            "cgroup-driver",
            WARN,
            "systemd",
            "systemctl daemon-reload takes the GPU away from running containers",
            'in /etc/docker/daemon.json: "exec-opts": ["native.cgroupdriver=cgroupfs"]',
        )


def information(seen: Seen) -> dict[str, Any] | None:
    """What `docker info` told of the daemon; None where no daemon answered."""
    text = seen.outputs[INFO].stdout.strip()
    if not text:
        return None
    try:
        info = json.loads(text)
    except ValueError as error:
        raise FormatError(f"docker info: not JSON: {text[:80]!r}") from error
    if not isinstance(info, dict):
        raise FormatError(f"docker info: not an object: {text[:80]!r}")
    # Newer clients print what they know of themselves and the daemon's refusal beside it.
    return None if info.get("ServerErrors") or not info.get("ServerVersion") else info


def image_root(info: Mapping[str, Any]) -> str:
    """Where the daemon keeps images: DockerRootDir, or the store of the containerd that it uses.

    Docker 29 begins with containerd's store (docs.docker.com, "containerd image store"); a
    containerd of the daemon's own keeps it below DockerRootDir, the system's in /var/lib.
    """
    root = str(info.get("DockerRootDir", ""))
    status = info.get("DriverStatus") or ()
    if ["driver-type", "io.containerd.snapshotter.v1"] not in [list(pair) for pair in status]:
        return root
    address = str((info.get("Containerd") or {}).get("Address", ""))
    return root if "/docker/" in address else "/var/lib/containerd"


def _daemon(seen: Seen, needs: Needs) -> Verdict:
    status = FAIL if needs.runtime == DOCKER else WARN
    if not seen.there(INFO):
        cause = "no Docker here; the docker runtime cannot be used"
        remedy = "apt-get install docker.io, or: --runtime wheels"
        return Verdict("docker", status, "not installed", cause, remedy)
    info = information(seen)
    if info is not None:
        version, driver = info["ServerVersion"], info.get("Driver", "?")
        return Verdict("docker", PASS, f"{version}, {driver}")
    done = seen.outputs[INFO]
    said = " ".join((done.stderr or done.stdout).split())
    if "permission denied" in said.lower():
        cause = "this user may not talk to the daemon"
        return Verdict("docker", status, "permission denied", cause, _GROUP)
    cause = "the daemon does not answer"
    remedy = "sudo systemctl start docker, or: --runtime wheels"
    return Verdict("docker", status, said[:120] or "no answer", cause, remedy)


def _device_driver(seen: Seen, info: dict[str, Any]) -> Verdict:
    runtimes = info.get("Runtimes") or {}
    specs = [s for s in info.get("DiscoveredDevices") or () if "nvidia" in str(s)]
    if "nvidia" in runtimes or specs or seen.there("toolkit"):
        how = "nvidia runtime" if "nvidia" in runtimes else "CDI" if specs else "toolkit"
        return Verdict(GPU_CONTAINERS, PASS, f"{how}, by what the daemon lists")
    return Verdict(
        GPU_CONTAINERS,
        FAIL,
        f"runtimes: {', '.join(sorted(runtimes)) or 'none'}",
        'containers would get no GPU: could not select device driver "" [[gpu]]',
        "install nvidia-container-toolkit; sudo nvidia-ctk runtime configure; restart docker",
    )


DOCKER_ENGINE = Topic(_PROBES, _check)
