"""Whether the host is a container itself, or a sandbox that only looks like a kernel.

Reports: skypilot#3096 (RunPod and Vast pods are containers: no Docker daemon), gVisor documentation
(Modal): no kernel receive stamps, no NVML heartbeat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kit.doctor.docker_engine import information
from kit.doctor.topic import DOCKER, FAIL, PASS, WARN, WHEELS, Needs, Probe, Seen, Topic, Verdict

# pkg/sentry/kernel/version.go and syscalls/linux: what gVisor answers whatever runs below it.
_GVISOR = ("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016", "gVisor")
_MARKS = {
    "dockerenv": "Docker",
    "containerenv": "Podman",
    "kubernetes": "Kubernetes",
}
_PROBES = (
    Probe("version", ("cat", "/proc/version")),
    Probe("dmesg", ("dmesg",)),
    Probe("dockerenv", ("test", "-e", "/.dockerenv")),
    Probe("containerenv", ("test", "-e", "/run/.containerenv")),
    Probe("kubernetes", ("test", "-e", "/var/run/secrets/kubernetes.io")),
    Probe("manager", ("cat", "/run/systemd/container")),
    Probe("mounts", ("cat", "/proc/mounts")),
    Probe("runpod", ("printenv", "RUNPOD_POD_ID")),
    Probe("vast", ("printenv", "CONTAINER_ID")),
)


def _check(seen: Seen, needs: Needs) -> Iterator[Verdict]:
    kernel = f"{seen.text('version')}\n{seen.text('dmesg')}"
    if any(mark in kernel for mark in _GVISOR):
        yield Verdict(
            "kernel",
            FAIL,
            "gVisor",
            "a sandbox in user space: no kernel receive stamps, its own scheduler and network",
            "not supported; rent a virtual or a bare machine",
        )
    else:
        yield Verdict("kernel", PASS, " ".join(seen.text("version").split()[:3]))
    kind = container(seen)
    if not kind or needs.runtime == WHEELS:
        yield Verdict("container", PASS, kind or "none")
    elif information(seen) is not None:
        cause = "a daemon answers in here, perhaps one outside that sees other files than we do"
        remedy = "use the host itself, or: --runtime wheels"
        yield Verdict("container", WARN, kind, cause, remedy)
    else:
        yield Verdict(
            "container",
            FAIL if needs.runtime == DOCKER else WARN,
            kind,
            "this host is a container: a Docker daemon does not run in it",
            "use the wheels runtime: --runtime wheels",
        )


def container(seen: Seen) -> str:
    """What kind of container this is, "" where it is none."""
    if seen.text("runpod"):
        return "RunPod pod"
    for name, kind in _MARKS.items():
        if seen.outputs[name].status == 0:
            vast = " (Vast)" if seen.text("vast") and kind == "Docker" else ""
            return f"{kind} container{vast}"
    if seen.text("manager"):  # as systemd's container interface has it: lxc, systemd-nspawn, …
        return f"{seen.text('manager')[:20]} container"
    root = re.search(r"^\S+ / (\S+) ", seen.text("mounts"), re.MULTILINE)
    if root is not None and "overlay" in root[1]:
        return "a container by its root"
    return ""


PLACE = Topic(_PROBES, _check)
