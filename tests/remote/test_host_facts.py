"""Facts of this host, and of hosts laid out as files."""

from __future__ import annotations

import dataclasses
import getpass
import json
import socket
from pathlib import Path

from records import canonical
from remote.host.facts import cgroup_file, container, host_id, observe_host, probe
from remote.host.proc import ABSENT


def test_this_host_is_a_canonical_record(tmp_path: Path) -> None:
    facts = probe("salt", tmp_path)
    assert canonical.encode(dataclasses.asdict(facts))
    assert facts.cores_online >= len(facts.affinity) > 0
    assert 0 < facts.memory.available_bytes <= facts.memory.total_bytes
    assert facts.disk_free_bytes > 0
    assert facts.kernel


def test_neither_host_nor_user_is_named(tmp_path: Path) -> None:
    found, facts = observe_host("salt", tmp_path)
    text = json.dumps(facts)
    assert "host_id" not in facts
    assert len(found) == 12
    for name in (socket.gethostname(), getpass.getuser()):
        # a host called "vm" would be found by chance
        assert len(name) < 5 or f'"{name}"' not in text


def test_the_id_depends_on_salt_and_parts_and_their_borders() -> None:
    ids = {host_id("s", ("ab", "c")), host_id("s", ("a", "bc")), host_id("t", ("ab", "c"))}
    assert len(ids) == 3
    assert host_id("s", ("ab", "c")) == host_id("s", ("ab", "c"))


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_groups_are_found_where_they_are_mounted(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/user.slice/x\n")
    assert cgroup_file(tmp_path, "cpu", "cpu.cfs_quota_us", "cpu.max") is None
    top = write(tmp_path, "sys/fs/cgroup/cpu.max", "max 100000\n")
    assert cgroup_file(tmp_path, "cpu", "cpu.cfs_quota_us", "cpu.max") == top
    own = write(tmp_path, "sys/fs/cgroup/user.slice/x/cpu.max", "max 100000\n")
    assert cgroup_file(tmp_path, "cpu", "cpu.cfs_quota_us", "cpu.max") == own
    write(tmp_path, "proc/self/cgroup", "3:cpu,cpuacct:/\n")
    old = write(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
    assert cgroup_file(tmp_path, "cpu", "cpu.cfs_quota_us", "cpu.max") == old


def test_kinds_of_containers(tmp_path: Path) -> None:
    assert container(tmp_path) == "none"
    environ = write(tmp_path, "proc/1/environ", "A=1\0container=lxc\0")
    assert container(tmp_path) == "lxc"
    environ.write_text("container=strange\0")
    assert container(tmp_path) == "other"
    write(tmp_path, "run/.containerenv", "")
    assert container(tmp_path) == "podman"
    write(tmp_path, ".dockerenv", "")
    assert container(tmp_path) == "docker"
    write(tmp_path, "proc/version", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n")
    assert container(tmp_path) == "gvisor"


def test_a_host_laid_out_as_files(tmp_path: Path) -> None:
    root = tmp_path / "host"
    write(root, "proc/cpuinfo", "flags : avx2\n")
    write(root, "proc/meminfo", "MemTotal: 8 kB\nMemAvailable: 4 kB\n")
    write(root, "proc/loadavg", "0.50 0.1 0.1 1/2 3\n")
    write(root, "proc/self/cgroup", "0::/\n")
    write(root, "sys/devices/system/cpu/online", "0-7\n")
    write(root, "sys/fs/cgroup/cpu.max", "250000 100000\n")
    write(root, "sys/fs/cgroup/memory.max", "4096\n")
    facts = probe("salt", tmp_path, root)
    assert facts.cores_online == 8
    assert (facts.cpu_quota_milli, facts.memory_limit_bytes) == (2500, 4096)
    assert facts.load_1m_milli == 500
    assert facts.governor == facts.clocksource == facts.os == ABSENT
