"""A fleet is named by two options and one word, and both mean the same."""

from __future__ import annotations

import pytest

from kit.fleet.address import Address, compose, parse, spoken
from records.errors import UnknownHostError


@pytest.mark.parametrize(
    ("fleet", "host", "name", "address", "words"),
    [
        ("slurm", "", "slurm/local", ("slurm", "", "local"), "--fleet slurm"),
        ("slurm:gpu", "local", "slurm:gpu/local", ("slurm", "gpu", "local"), "--fleet slurm:gpu"),
        (
            "slurm:gpu",
            "me@login:22",
            "slurm:gpu/me@login:22",
            ("slurm", "gpu", "me@login:22"),
            "--fleet slurm:gpu --host me@login:22",
        ),
        ("sky:gcp", "", "sky:gcp/local", ("sky", "gcp", "local"), "--fleet sky:gcp"),
    ],
)
def test_composed_parsed_and_spoken(
    fleet: str, host: str, name: str, address: tuple[str, str, str], words: str
) -> None:
    assert compose(fleet, host) == name
    assert parse(name) == Address(*address)
    assert spoken(name) == words


@pytest.mark.parametrize("name", ["local", "", "me@host:22", "hosts.toml:one", "/abs/hosts.toml:a"])
def test_a_host_is_no_fleet(name: str) -> None:
    assert parse(name) is None
    assert spoken(name) == ("" if name in ("", "local") else f"--host {name}")


@pytest.mark.parametrize("fleet", ["pbs", "slurm:", "slurm:a b", "slurm/x"])
def test_a_fleet_of_another_kind(fleet: str) -> None:
    with pytest.raises(UnknownHostError, match="no kind of fleet"):
        compose(fleet, "")
