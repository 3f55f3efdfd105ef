"""A node without the GPU that the plan needs is refused before anything is measured."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from records.errors import FormatError, HostUnfitError
from remote.slurm.fitness import parse, require_fit
from tests.sealed_run import small_plan

NEED = replace(small_plan().requirements, compute_capability=Decimal("8.9"), gpu_memory_mib=22_000)


def smi(directory: Path, answer: str) -> None:
    file = directory / "nvidia-smi"
    file.write_text(f"#!/bin/sh\necho '{answer}'\n")
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("answer", "fits"),
    [("8.9, 23034", True), ("8.0, 81920", False), ("9.0, 81559", True), ("8.9, 11264", False)],
)
def test_what_the_node_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, fits: bool
) -> None:
    smi(tmp_path, answer)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    if fits:
        require_fit(NEED)
        return
    with pytest.raises(HostUnfitError, match="this node has"):
        require_fit(NEED)


def test_no_gpu_and_no_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    require_fit(small_plan().requirements)
    with pytest.raises(HostUnfitError, match="shows none"):
        require_fit(NEED)


def test_another_answer() -> None:
    assert parse("8.9, 23034\n9.0, 81559\n") == [(Decimal("8.9"), 23034), (Decimal("9.0"), 81559)]
    with pytest.raises(FormatError):
        parse("No devices were found\n")
