"""What this host is: processor, limits, memory, kernel, GPUs; read once at the start of a run.

Invariant: no host name, address or user name is in the result; the host is known by a salted hash.
What the host does not tell is "absent" or None, per field; what it tells wrongly raises.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from records.decode import to_object
from records.processors import Processors
from remote.host import gpu, proc, smi
from remote.host.proc import ABSENT

_HASH_DIGITS = 12
# gVisor answers with this kernel whatever runs below it (gvisor.dev, pkg/sentry/syscalls/linux).
_GVISOR = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"
_CONTAINERS = (
    (".dockerenv", "docker"),
    ("run/.containerenv", "podman"),
    ("var/run/secrets/kubernetes.io", "kubernetes"),
)


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One host. Quota in thousandths of a CPU; None where there is no limit.

    `processors`: what they are worth, where that was timed (remote/host/processors.py).
    """

    host_id: str
    boot_id: str
    cpu: proc.CpuModel
    machine: str
    cores_online: int
    affinity: tuple[int, ...]
    cpu_quota_milli: int | None
    memory: proc.Memory
    memory_limit_bytes: int | None
    shm_bytes: int
    disk_free_bytes: int
    governor: str
    clocksource: str
    kernel: str
    os: str
    container: str
    python: str
    load_1m_milli: int
    driver: str
    cuda: str
    gpus: tuple[smi.Gpu, ...]
    processors: Processors | None = field(default=None, metadata={"since": 2})


def probe(salt: str, disk: Path, root: Path = Path("/"), place: str = "") -> HostFacts:
    """Read the facts of this host, with `disk` a directory on the file system that matters.

    `place`: a salted name of where it was reached. It tells apart rented machines that share image,
    processor and address; where there are GPUs, their own ids do so better.

    FormatError or HostUnfitError if the kernel or the driver answers what cannot be read.
    """
    report = gpu.report()
    gpus = gpu.with_capabilities(report.gpus, gpu.compute_capabilities()) if report else ()
    cpu = proc.parse_cpuinfo(_read(root / "proc/cpuinfo"))
    ids = sorted(str(g.uuid) for g in gpus) or [place][: bool(place)]
    machine_id = _read_or_absent(root / "etc/machine-id")
    return HostFacts(
        host_id=host_id(salt, (machine_id, cpu.model, *ids)),
        boot_id=host_id(salt, (_read_or_absent(root / "proc/sys/kernel/random/boot_id"),)),
        cpu=cpu,
        machine=platform.machine(),
        cores_online=len(proc.parse_cpu_list(_read(root / "sys/devices/system/cpu/online"))),
        affinity=tuple(sorted(os.sched_getaffinity(0))),
        cpu_quota_milli=cpu_quota_milli(root),
        memory=proc.parse_meminfo(_read(root / "proc/meminfo")),
        memory_limit_bytes=memory_limit_bytes(root),
        shm_bytes=_free_bytes(root / "dev/shm"),
        disk_free_bytes=_free_bytes(disk),
        governor=_read_or_absent(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clocksource=_read_or_absent(
            root / "sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        kernel=platform.release(),
        os=_os_name(root),
        container=container(root),
        python=platform.python_version(),
        load_1m_milli=proc.parse_load(_read(root / "proc/loadavg")),
        driver=report.driver if report else ABSENT,
        cuda=report.cuda if report else ABSENT,
        gpus=gpus,
    )


def observe_host(salt: str, disk: Path) -> tuple[str, dict[str, Any]]:
    """The host's id, and its facts as a record holds them. Errors as `probe`."""
    found = to_object(probe(salt, disk))
    return str(found.pop("host_id")), found


def host_id(salt: str, parts: Iterable[str]) -> str:
    """12 hexadecimal digits of SHA-256 over the salt and the parts, each ended by a zero byte."""
    state = hashlib.sha256()
    for part in (salt, *parts):
        state.update(part.encode("utf-8") + b"\0")
    return state.hexdigest()[:_HASH_DIGITS]


def container(root: Path = Path("/")) -> str:
    """Which kind of container this is: docker, podman, kubernetes, gvisor, lxc, other or none."""
    if _read_or_absent(root / "proc/version").startswith(_GVISOR):
        return "gvisor"
    for marker, name in _CONTAINERS:
        if (root / marker).exists():
            return name
    # systemd and lxc set `container=` for the first process; only root may read it.
    try:
        first = (root / "proc/1/environ").read_bytes().split(b"\0")
    except OSError:
        return "none"
    kinds = [
        entry[10:].decode("ascii", "replace") for entry in first if entry[:10] == b"container="
    ]
    if not kinds:
        return "none"
    return kinds[0] if kinds[0] in ("docker", "podman", "lxc") else "other"


def cgroup_file(root: Path, controller: str, v1_name: str, v2_name: str) -> Path | None:
    """The file of this process's control group; None where none is mounted.

    Inside a container the group is often mounted as the root, so the root is tried last.
    """
    path = proc.parse_cgroup_path(_read(root / "proc/self/cgroup"), controller)
    if path is None:
        return None
    version, group = path
    base = root / "sys/fs/cgroup" / (controller if version == 1 else "")
    name = v1_name if version == 1 else v2_name
    candidates = (base / group.lstrip("/") / name, base / name)
    return next((file for file in candidates if file.is_file()), None)


def cpu_quota_milli(root: Path) -> int | None:
    """The quota of this process's control group; None where there is no limit."""
    file = cgroup_file(root, "cpu", "cpu.cfs_quota_us", "cpu.max")
    if file is None:
        return None
    if file.name == "cpu.max":
        return proc.parse_cpu_max(_read(file))
    return proc.parse_cfs(_read(file), _read(file.with_name("cpu.cfs_period_us")))


def memory_limit_bytes(root: Path) -> int | None:
    """The memory limit of this process's control group; None where there is none."""
    file = cgroup_file(root, "memory", "memory.limit_in_bytes", "memory.max")
    return None if file is None else proc.parse_memory_limit(_read(file))


def _os_name(root: Path) -> str:
    text = _read_or_absent(root / "etc/os-release")
    return ABSENT if text == ABSENT else proc.parse_os_release(text)


def _free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free if path.is_dir() else 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _read_or_absent(path: Path) -> str:
    """The stripped text of a file that a host may lack or keep from us."""
    try:
        return _read(path).strip() or ABSENT
    except OSError:
        return ABSENT
