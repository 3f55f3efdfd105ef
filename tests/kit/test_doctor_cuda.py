"""Whether CUDA begins on a host, and whether its driver is new enough for the engine."""

from __future__ import annotations

import pytest
from doctor_transcripts import (
    GPU_PLAN,
    MISSING,
    NEEDS,
    ROOT,
    seen,
    smi,
    verdicts,
)

from kit.doctor.cuda_requirement import cuda_of_wheels
from kit.doctor.examine import judge
from kit.doctor.needs import needs_of
from kit.doctor.topic import FAIL, WARN, WHEELS, Needs
from kit.home import Home
from kit.hosts.host import Done
from kit.planning.plan_file import load_plan


@pytest.mark.parametrize(
    ("says", "words", "remedy"),
    [
        ("kit-cuda 802 0 system not yet initialized", "fabric manager", "nvidia-fabricmanager"),
        ("kit-cuda 804 0 forward compatibility", "forward compatibility", "newer driver"),
        ("kit-cuda 999 0 unknown error", "does not explain", "nvidia_uvm"),
        ("kit-cuda -1 0 libcuda.so.1: cannot open", "library is not", "newer driver"),
        ("Traceback (most recent call last):", "does not answer", "reboot"),
    ],
)
def test_cuda_that_does_not_begin_on_the_host_itself(says: str, words: str, remedy: str) -> None:
    """nvidia-smi is content where an engine would not boot; in a container that is tried there."""
    for runtime, status in ((WHEELS, FAIL), ("", WARN)):
        found = {v.check: v for v in verdicts({"cuda-init": says}, Needs(GPU_PLAN, runtime))}
        assert found["cuda-init"].status == status
        assert words in found["cuda-init"].cause
        assert remedy in found["cuda-init"].remedy
    assert "cuda-init" not in {v.check for v in judge(seen({"cuda-init": says}), NEEDS)}


@pytest.mark.parametrize(
    "done", [MISSING, Done(1, "", "kit-cuda: this Python has no ctypes")], ids=["python", "ctypes"]
)
def test_nothing_is_said_of_cuda_where_nothing_can_ask(done: Done) -> None:
    assert verdicts({"cuda-init": done}, Needs(GPU_PLAN, WHEELS)) == []


def test_wheels_want_a_driver_of_their_own_cuda() -> None:
    """Within one major version any driver of it will do (CUDA compatibility guide, 2.2)."""
    lock = (ROOT / "images" / "wheels-sm90-offline.lock").read_text()
    assert cuda_of_wheels(lock) == "cuda>=13.0"
    assert cuda_of_wheels((ROOT / "images" / "wheels-cpu.lock").read_text()) == ""
    old = smi(
        (
            "CUDA Version                                           : 13.0",
            "CUDA Version : 12.8",
        )
    )
    needs = Needs(GPU_PLAN, WHEELS, requires_cuda="cuda>=13.0")
    found = {v.check: v for v in verdicts({"smi": old}, needs)}
    assert found["cuda"].status == FAIL
    assert "the engine's wheels need cuda>=13.0" in found["cuda"].cause
    assert "installed" in found["cuda"].cause
    assert verdicts({}, needs) == []


def test_the_plan_for_wheels_brings_their_cuda_along() -> None:
    home = Home.find({})
    plan = load_plan(ROOT / "kit" / "plans" / "sm90-pilot.toml")
    assert needs_of(home, plan).requires_cuda == "cuda>=13.0"
    plan = load_plan(ROOT / "kit" / "plans" / "smoke-cpu.toml")
    assert needs_of(home, plan).requires_cuda == ""
