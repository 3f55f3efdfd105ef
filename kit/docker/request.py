"""The body of the call that creates a run's container. Docker Engine API 1.41, ContainerCreate.

Invariant: pure; the image is named by digest, its root is read-only, no capability and no network
but its own loopback is left to it, and the daemon's socket is not among what is mounted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from records.digest import ImageRef

LABEL = "spec-fp8-reproduction-kit.run"
ROOT = "/kit"
HARNESS, JOB = f"{ROOT}/harness.pyz", f"{ROOT}/job.json"
EXCHANGE, SCRATCH = f"{ROOT}/exchange", f"{ROOT}/scratch"
# vLLM's processes share tensors there; Docker's default of 64 MB hangs or kills them (vllm#1125).
# A limit, not a reservation.
SHM_BYTES = 8 << 30


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """What differs from run to run. `readable`, `writable`: path in the container -> on the host.

    `user` is uid:gid of who owns the records: without capabilities not even root may write others'.
    """

    run_id: str
    image: ImageRef
    python: str
    user: str
    gpus: bool
    readable: Mapping[str, str]
    writable: Mapping[str, str]


def container_name(run_id: str) -> str:
    """The container's name: one a run."""
    return f"kit-{run_id}"


def create_request(spec: ContainerSpec) -> dict[str, Any]:
    """The request."""
    mounts = [_mount(*pair, read_only=True) for pair in sorted(spec.readable.items())]
    mounts += [_mount(*pair, read_only=False) for pair in sorted(spec.writable.items())]
    host: dict[str, Any] = {
        "CapDrop": ["ALL"],
        "Init": True,  # reaps what an engine leaves behind; the harness is not process 1
        "IpcMode": "private",
        "LogConfig": {"Type": "json-file", "Config": {}},
        "Mounts": mounts,
        "NetworkMode": "none",
        "Privileged": False,
        "ReadonlyRootfs": True,
        "RestartPolicy": {"Name": "no"},
        "SecurityOpt": ["no-new-privileges"],
        "ShmSize": SHM_BYTES,
        "Tmpfs": {"/tmp": "rw,exec,nosuid,nodev,mode=1777"},  # noqa: S108 - in the container
    }
    if spec.gpus:
        # As `docker run --gpus all`; `--runtime nvidia` may end in error 803 (gpustack#4678).
        host["DeviceRequests"] = [
            {
                "Driver": "",
                "Count": -1,
                "DeviceIDs": None,
                "Capabilities": [["gpu"]],
                "Options": {},
            }
        ]
    return {
        "Image": str(spec.image),
        "Entrypoint": [spec.python],
        "Cmd": ["-I", "-S", HARNESS, "run", JOB],
        "Env": ["LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"],
        "Hostname": "localhost",  # the host's own name is nobody's business
        "Labels": {LABEL: spec.run_id},
        "StopSignal": "SIGTERM",
        "StopTimeout": 30,
        "Tty": False,
        "User": spec.user,
        "WorkingDir": "/",
        "HostConfig": host,
    }


def _mount(target: str, source: str, *, read_only: bool) -> dict[str, Any]:
    return {
        "Type": "bind",
        "Source": source,
        "Target": target,
        "ReadOnly": read_only,
        "BindOptions": {"Propagation": "rprivate"},
    }
