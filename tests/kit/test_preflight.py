from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from kit.hosts.facts import PROBES, Gpu, HostFacts, heard, parse
from kit.hosts.names import LocalHost, parse_host
from kit.planning.plan_file import load_plan
from kit.planning.preflight import problems, require_fit
from records.errors import HostUnfitError, UnknownHostError
from records.plan import Requirements

PLANS = Path(__file__).parents[2] / "kit" / "plans"

OUTPUTS = {
    "uname": "Linux x86_64\n",
    "cpuinfo": "processor\t: 0\nflags\t\t: fpu sse2 avx2 fma\n\nprocessor\t: 1\nflags\t\t: fpu\n",
    "meminfo": "MemTotal:       24622604 kB\nMemFree: 1 kB\nMemAvailable:   20480000 kB\n",
    "cgroup_max": "max\n",
    "cgroup_now": "1000\n",
    "disk": (
        "Filesystem     1024-blocks      Used Available Capacity Mounted on\n"
        "/dev/mapper/a b  263174212  20971520  52428800      29% /srv/x\n"
    ),
    "python3": "Python 3.13.1\n",
    "python3.11": "",
    "gcc": "gcc (Debian 12.2.0) 12.2.0\n",
    "g++": "",
    "uv": "uv 0.13.9\n",
    "gpu": "8.9, 23034\n",
}


def test_transcripts_become_facts() -> None:
    assert set(OUTPUTS) == set(PROBES)
    assert parse(OUTPUTS) == HostFacts(
        system="Linux",
        machine="x86_64",
        cpu_flags=frozenset({"fpu", "sse2", "avx2", "fma"}),
        memory_available_mib=20_000,
        disk_free_mib=51_200,
        pythons=("3.13.1",),
        tools=frozenset({"gcc", "uv"}),
        gpus=(Gpu(Decimal("8.9"), 23034),),
    )


def test_a_cgroup_limit_counts_where_it_is_tighter() -> None:
    limited = {**OUTPUTS, "cgroup_max": f"{4 << 30}\n", "cgroup_now": f"{1 << 30}\n"}
    assert parse(limited).memory_available_mib == 3072


@pytest.mark.parametrize(
    ("probe", "output"),
    [
        ("uname", "Linux"),
        ("cpuinfo", "model name: x"),
        ("meminfo", "MemTotal: 5 kB"),
        ("disk", "df: no such file"),
    ],
)
def test_output_that_does_not_parse_is_an_error(probe: str, output: str) -> None:
    with pytest.raises(HostUnfitError) as caught:
        parse({**OUTPUTS, probe: output})
    assert caught.value.remedy


@pytest.mark.parametrize("words", ["No devices were found", "9.0, [N/A]", "\x00garbage\n8.9, 1"])
def test_words_in_place_of_gpus_matter_to_plans_that_need_one(words: str) -> None:
    facts = parse({**OUTPUTS, "gpu": words})
    assert list(problems(facts, CPU, frozenset())) == []
    (found,) = problems(facts, GPU, frozenset())
    assert repr(words) in found.cause
    assert found.remedy


def test_a_failed_nvidia_smi_is_heard_and_a_missing_one_is_none() -> None:
    failed = heard("gpu", 9, "", "NVIDIA-SMI has failed: no driver\n")
    assert failed == "NVIDIA-SMI has failed: no driver"
    assert heard("gpu", 6, "", "")
    assert heard("gpu", 127, "", "nvidia-smi: not found") == ""
    assert heard("uv", 1, "half an answer", "") == ""
    assert heard("uv", 0, "uv 1", "a warning") == "uv 1"


def test_an_empty_path_still_finds_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert LocalHost().probe(tmp_path).system == "Linux"


def test_this_machine_can_be_probed(tmp_path: Path) -> None:
    facts = LocalHost().probe(tmp_path / "not" / "yet" / "there")
    assert facts.system == "Linux"
    assert facts.memory_available_mib > 0
    assert facts.disk_free_mib > 0


CPU = Requirements(5000, 6000, ("avx2",), Decimal(0), 0)
GPU = Requirements(5000, 6000, ("avx2",), Decimal("8.9"), 22_000)


def fit(**changes: str) -> HostFacts:
    return parse({**OUTPUTS, **changes})


def test_a_fit_host_has_no_problem() -> None:
    assert list(problems(fit(), CPU, frozenset({"gcc"}))) == []
    assert list(problems(fit(), GPU, frozenset())) == []


@pytest.mark.parametrize(
    ("facts", "requirements", "cause"),
    [
        (fit(uname="Darwin x86_64"), CPU, "runs on Linux, this host is Darwin"),
        (fit(uname="Linux aarch64"), CPU, "x86-64, this host is aarch64"),
        (fit(cpuinfo="flags : fpu sse2\n"), CPU, "the processor lacks avx2"),
        (fit(meminfo="MemAvailable:   1024000 kB\n"), CPU, "1000 MiB of memory available, 5000"),
        (fit(disk="x\n/dev/sda1 1 2 1024000 9% /\n"), CPU, "1000 MiB of disk free, 6000"),
        (fit(uv=""), CPU, "no Python 3.11 and no uv"),
        (fit(gpu=""), GPU, "needs a GPU, and nvidia-smi shows none"),
        (fit(gpu="8.6, 24000\n"), GPU, "compute capability 8.6, 8.9 needed"),
        (fit(gpu="8.9, 16000\n"), GPU, "16000 MiB of GPU memory, 22000 MiB needed"),
    ],
)
def test_each_lack_is_named(facts: HostFacts, requirements: Requirements, cause: str) -> None:
    found = list(problems(facts, requirements, frozenset()))
    assert len(found) == 1
    assert cause in found[0].cause
    assert found[0].remedy


def test_what_is_installed_already_needs_no_disk_again() -> None:
    facts = fit(disk="x\n/dev/sda1 1 2 1024000 9% /\n")
    assert list(problems(facts, CPU, frozenset(), installed_mib=5500)) == []


def test_all_causes_come_in_one_error() -> None:
    plan = load_plan(PLANS / "smoke-cpu.toml")
    poor = fit(cpuinfo="flags : fpu\n", meminfo="MemAvailable: 1024 kB\n")
    with pytest.raises(HostUnfitError) as caught:
        require_fit(poor, plan, frozenset({"g++"}))
    for cause in ("avx2", "1 MiB of memory", "needs g++"):
        assert cause in caught.value.message
    assert "apt-get install g++" in caught.value.remedy


@pytest.mark.parametrize("name", ["", "local"])
def test_no_host_and_local_mean_this_machine(name: str) -> None:
    assert parse_host(name).name == "local"


@pytest.mark.parametrize("name", ["user@host", "user@host:2222", "u@192.0.2.1", "u@[::1]:22"])
def test_an_ssh_host_is_recognised_before_anything_is_connected(name: str) -> None:
    assert parse_host(name).name == name


@pytest.mark.parametrize("name", ["ftp://x", "a b", "docker:x", "@host", "user@", "x;rm -r /"])
def test_any_other_kind_names_the_accepted_forms(name: str) -> None:
    with pytest.raises(UnknownHostError, match="no kind of host") as caught:
        parse_host(name)
    assert "user@host[:port]" in caught.value.remedy
