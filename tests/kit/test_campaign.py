"""Blocks are dealt so that every one has a host, and processes are told apart."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.hosts.inventory import read_inventory
from kit.hosts.names import host_names, parse_host
from kit.run.campaign import Share, Worker, deal
from kit.ssh.host import SshHost
from records.errors import PlanError, UnknownHostError


@given(st.integers(1, 40), st.integers(1, 12))
def test_every_block_has_one_host_and_none_is_idle(blocks: int, hosts: int) -> None:
    names = [f"h{n}" for n in range(hosts)]
    if hosts > blocks:
        with pytest.raises(PlanError):
            deal(range(1, blocks + 1), names)
        return
    shares = deal(range(1, blocks + 1), names)
    assert sorted(b for s in shares for b in s.blocks) == list(range(1, blocks + 1))
    sizes = [len(s.blocks) for s in shares]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) > 0


def test_processes_are_shown_by_host_and_their_ends_kept_apart() -> None:
    said: list[str] = []

    def argv(share: Share) -> list[str]:
        told = json.dumps({"run_id": f"r-{share.host}", "completed": 2, "failed": 0})
        status = 0 if share.host == "a" else 20
        code = f"import sys; print({told!r}); sys.stderr.write('error: x\\n'); sys.exit({status})"
        return [sys.executable, "-c", code]

    shares = (Share("a", (1,)), Share("b", (2,)))
    workers = [Worker(share, argv(share), said.append) for share in shares]
    outcomes = [worker.outcome() for worker in workers]
    assert sorted(said) == ["[a] error: x", "[b] error: x"]
    assert [(o.status, o.run_id, o.has_ended) for o in outcomes] == [
        (0, "r-a", True),
        (20, "r-b", False),
    ]


def test_hosts_by_comma_and_by_file(tmp_path: Path) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text(
        '[[hosts]]\nname = "one"\nhost = "u@h:1"\nclient_cpus = "2,3"\ndirectory = "/kit"\n'
        '[[hosts]]\nname = "two"\nhost = "u@h:2"\n'
    )
    assert host_names("a@b,c@d") == ("a@b", "c@d")
    assert host_names("") == ("",)
    assert host_names(str(file)) == (f"{file}:one", f"{file}:two")
    host = parse_host(f"{file}:one")
    assert isinstance(host, SshHost)
    assert (host.destination.port, host.spec.client_cpus) == (1, (2, 3))
    assert host.spec.directory == "/kit"
    with pytest.raises(UnknownHostError, match="there are: one, two"):
        parse_host(f"{file}:three")


@pytest.mark.parametrize("text", ["a@b,a@b", "a@b,", ",a@b"])
def test_a_host_named_twice_or_not_at_all(text: str) -> None:
    with pytest.raises(UnknownHostError):
        host_names(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[hosts]]\nname = 1\nhost = 'x'\n",
        "[[hosts]]\nname = 'a'\nhost = 'x'\ntoken = 'y'\n",
        "[[hosts]]\nname = 'a'\nhost = 'x'\nsite = ['/s']\n",
        "[[hosts]]\nname = 'a'\nhost = 'x'\n[[hosts]]\nname = 'a'\nhost = 'y'\n",
        "not toml",
    ],
)
def test_an_inventory_that_is_wrong(tmp_path: Path, text: str) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text(text)
    with pytest.raises(UnknownHostError, match=r"hosts\.toml"):
        read_inventory(file)
