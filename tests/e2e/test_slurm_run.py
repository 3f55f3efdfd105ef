"""A plan on a real Slurm of three nodes: an array job, a task and a run for each block."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_service import Slurm, running
from ssh_kit import SshKit, outcomes, tiny_plan

from records import schema
from records.run_directory import RunDirectory

pytestmark = pytest.mark.timeout(300)

FLEET = ("--fleet", "slurm:main")
SITE = 'poll_s = 1\nnotice_s = 30\nscratch = ["$KIT_NODE_SCRATCH", "/tmp"]\n'


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with running(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture
def kit(tmp_path: Path, slurm: Slurm) -> SshKit:
    """A user on the login node, which is this machine."""
    site = tmp_path / "slurm.toml"
    site.write_text(SITE)
    kit = SshKit(tmp_path / "login", tmp_path, tiny_plan(blocks=3, tokens=40))
    kit.extra = {**slurm.env, "KIT_SLURM": str(site)}
    return kit


def blocks_of(run: RunDirectory) -> tuple[int, ...]:
    first = next(iter(run.read())).event
    assert isinstance(first, schema.RunStarted)
    return first.blocks


def test_a_block_a_task_and_every_record_home(slurm: Slurm, kit: SshKit) -> None:
    done = kit.call("reproduce", "--plan", str(kit.plan), *FLEET, "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 3
    runs = kit.fetched()
    assert sorted(map(blocks_of, runs)) == [(1,), (2,), (3,)]
    assert all(run.is_sealed and list(run.verify_files()) == [] for run in runs)
    assert all(outcomes(run) == ["completed", "completed"] for run in runs)
    for run in runs:
        seen = [e.event for e in run.read() if isinstance(e.event, schema.SchedulerObserved)]
        assert [s.phase for s in seen] == ["start", "end"]
        assert {s.job.partition("_")[2] for s in seen} == {str(blocks_of(run)[0])}
        assert {s.source for s in seen} == {"scontrol"}  # this cluster keeps no accounts
        assert seen[0].facts["figures"][0]["NumNodes"] == "1"
        assert not any(node in run.events.read_text() for node in slurm.nodes)
    assert len({host_of(run) for run in runs}) == 3
    audit = json.loads(kit.call("audit", "--data", str(kit.records), "--json").stdout)
    own = {f["code"] for f in audit["findings"] if str(kit.records) in f["where"]["file"]}
    # Synthetic runs, outside git, of "nodes" that are one machine: nothing else is found.
    assert own <= {"PLAN04", "TIME01", "HIST03"}


def host_of(run: RunDirectory) -> str:
    (host,) = {e.event.host_id for e in run.read() if isinstance(e.event, schema.HostObserved)}
    return str(host)
