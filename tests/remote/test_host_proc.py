"""What the kernel says, on two generations of control groups and two kinds of processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import FormatError
from remote.host import proc

X86 = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
flags\t\t: fpu sse2 avx2 avx512f amx_tile hypervisor

processor\t: 1
model name\t: another
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd sve2\nCPU implementer\t: 0x41\n"
STAT = "cpu  100 5 50 1000 20 3 2 20 7 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 1\n"


def test_processors() -> None:
    intel = proc.parse_cpuinfo(X86)
    assert intel.model.startswith("Intel(R) Xeon(R)")
    assert intel.avx2
    assert intel.avx512f
    assert intel.amx_tile
    assert intel.hypervisor
    arm = proc.parse_cpuinfo(ARM)
    assert (arm.model, arm.vendor, arm.avx2) == (proc.ABSENT, "0x41", False)


def test_cpu_times_and_steal() -> None:
    before = proc.parse_cpu_times(STAT)
    assert before == proc.CpuTimes(busy_ticks=160, idle_ticks=1020, steal_ticks=20)
    after = proc.CpuTimes(260, 1095, 45)
    assert after.since(before) == proc.CpuShare(200, 500_000, 125_000)
    assert before.since(before).steal_ppm == 0
    with pytest.raises(FormatError, match="fell"):
        before.since(after)


def test_iowait_may_fall() -> None:
    before = proc.CpuTimes(0, 100, 0)
    assert proc.CpuTimes(50, 90, 50).since(before) == proc.CpuShare(100, 500_000, 500_000)


@given(*[st.integers(0, 10**12)] * 6)
def test_shares_never_pass_the_whole(a: int, b: int, c: int, d: int, e: int, f: int) -> None:
    share = proc.CpuTimes(a + d, b + e, c + f).since(proc.CpuTimes(a, b, c))
    assert 0 <= share.busy_ppm + share.steal_ppm <= 1_000_000


def test_limits_of_both_generations() -> None:
    assert proc.parse_cpu_max("max 100000\n") is None
    assert proc.parse_cpu_max("150000 100000\n") == 1500
    assert proc.parse_cfs("-1\n", "100000\n") is None
    assert proc.parse_cfs("200000\n", "100000\n") == 2000
    assert proc.parse_memory_limit("max\n") is None
    assert proc.parse_memory_limit("9223372036854771712\n") is None
    assert proc.parse_memory_limit("1073741824\n") == 1 << 30
    assert proc.parse_throttled("nr_periods 1\nthrottled_usec 250\n") == 250
    assert proc.parse_throttled("nr_periods 1\nthrottled_time 250000\n") == 250
    assert proc.parse_throttled("usage_usec 5\n") is None


def test_groups_of_both_generations() -> None:
    mixed = "5:cpu,cpuacct:/a\n4:memory:/b\n0::/c\n"
    assert proc.parse_cgroup_path(mixed, "cpu") == (1, "/a")
    assert proc.parse_cgroup_path(mixed, "memory") == (1, "/b")
    assert proc.parse_cgroup_path(mixed, "io") == (2, "/c")
    assert proc.parse_cgroup_path("1:name=systemd:/x\n", "cpu") is None


def test_small_things() -> None:
    assert proc.parse_cpu_list("0-3,8\n") == (0, 1, 2, 3, 8)
    assert proc.parse_cpu_list("\n") == ()
    assert proc.parse_load("3.94 1.00 0.50 2/300 1234\n") == 3940
    assert proc.parse_os_release('ID=debian\nPRETTY_NAME="Debian GNU/Linux 12"\n') == (
        "Debian GNU/Linux 12"
    )
    memory = proc.parse_meminfo("MemTotal: 2048 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\n")
    assert memory == proc.Memory(2 << 20, 1 << 20)


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (proc.parse_cpuinfo, "processor : 0\n"),
        (proc.parse_meminfo, "MemTotal: 1 kB\n"),
        (proc.parse_cpu_list, "0-x"),
        (proc.parse_cpu_times, "cpu 1 2 3\n"),
        (proc.parse_load, "high"),
        (proc.parse_cpu_max, "100000"),
        (proc.parse_memory_limit, "-1"),
        (lambda text: proc.parse_cgroup_path(text, "cpu"), "nonsense"),
        (lambda text: proc.parse_cfs(text, "0"), "1"),
    ],
)
def test_other_text_is_refused(parser: Callable[[str], Any], text: str) -> None:
    with pytest.raises(FormatError):
        parser(text)
