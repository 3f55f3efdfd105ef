"""A plan on a real Slurm of three nodes: an array job, a task and a run for each block."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from called_kit import blocks_of, count, outcomes, tiny_plan
from slurm_service import Slurm, running
from ssh_kit import SshKit, name_of
from sshd import Sshd, wait_for
from sshd import running as sshd_running

from kit.run.launch import read_job
from records import schema
from records.digest import Digest
from records.errors import HostsFailedError
from records.run_directory import RunDirectory

pytestmark = pytest.mark.timeout(300)

FLEET = ("--fleet", "slurm:main")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with running(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture
def kit(tmp_path: Path, slurm: Slurm) -> SshKit:
    """A user on the login node, which is this machine."""
    site = tmp_path / "slurm.toml"
    for node in slurm.nodes:  # each node's own disk
        (tmp_path / node).mkdir()
    scratch = f'["$NOT_SET_HERE", "{tmp_path}/$SLURMD_NODENAME"]'
    site.write_text(f"poll_s = 1\nnotice_s = 30\nscratch = {scratch}\n")
    # A percent sign begins a pattern of Slurm's: sbatch(1), FILENAME PATTERN.
    kit = SshKit(tmp_path / "login%A", tmp_path, tiny_plan(blocks=3, tokens=40))
    kit.extra = {**slurm.env, "KIT_SLURM": str(site)}
    return kit


def host_of(run: RunDirectory) -> str:
    (host,) = {e.event.host_id for e in run.read() if isinstance(e.event, schema.HostObserved)}
    return str(host)


def made(kit: SshKit) -> dict[int, RunDirectory]:
    """The runs on the shared storage by their blocks."""
    jobs = [read_job(path) for path in (kit.home / "jobs").glob("*.json")]
    return {job.blocks[0]: RunDirectory(Path(job.run_directory)) for job in jobs}


def wait_for_windows(kit: SshKit, *blocks: int) -> None:
    """Until each of these blocks has a window open."""

    def all_open() -> bool:
        runs = made(kit)
        needle = b'"type":"window.started"'
        journals = [runs[b].events for b in blocks if b in runs]
        return len(journals) == len(blocks) and all(
            journal.exists() and needle in journal.read_bytes() for journal in journals
        )

    wait_for(all_open, "no window on every node")


class End(NamedTuple):
    """How a boot ended. `planned`: "" for one that filled a cache."""

    planned: str
    arm: str
    outcome: str


def ends(run: RunDirectory) -> list[End]:
    """Every boot of a run, in order of its end."""
    events = [envelope.event for envelope in run.read()]
    started = {e.boot: e for e in events if isinstance(e, schema.BootStarted)}
    ended = [e for e in events if isinstance(e, schema.BootEnded)]
    return [End(started[e.boot].planned, started[e.boot].arm, e.outcome) for e in ended]


def test_a_node_killed_a_task_preempted_one_cancelled(slurm: Slurm, kit: SshKit) -> None:
    # Warm caches, which stand in the scratch of a node, and are lost with it.
    text = tiny_plan(blocks=3, requests=3).replace('cache = "none"', 'cache = "warm"')
    kit.plan.write_text(text)
    words = ("reproduce", "--plan", str(kit.plan), *FLEET, "--json")
    process = kit.start(*words)
    wait_for_windows(kit, 1, 2, 3)
    nodes = slurm.nodes_by_task()
    (job,) = {name.partition("_")[0] for name in nodes}
    slurm.kill_node(nodes[f"{job}_1"])
    slurm.call("scontrol", "update", f"nodename={nodes[f'{job}_1']}", "state=down", "reason=power")
    urgent = ("-p", "urgent", "--exclusive", "-w", nodes[f"{job}_2"], "--output=/dev/null")
    slurm.call("sbatch", *urgent, "--wrap=sleep 2")
    slurm.call("scancel", f"{job}_3")
    out, shown = process.communicate(timeout=200)
    assert process.returncode == HostsFailedError.exit_code, shown
    assert len(json.loads(out)) == 2
    assert "1 of 3 hosts did not bring their blocks to an end" in shown
    assert f"kit reproduce --run {made(kit)[3].path.name} {' '.join(FLEET)}" in shown
    assert sorted(map(blocks_of, kit.fetched())) == [(1,), (2,)]
    slurm.start_node(nodes[f"{job}_1"])
    again = kit.call(*words)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("is sealed already") == 2
    assert "[block 3] run resumed" in again.stderr
    runs = kit.fetched()
    assert sorted(map(blocks_of, runs)) == [(1,), (2,), (3,)]
    assert all(run.is_sealed and list(run.verify_files()) == [] for run in runs)
    # Nothing lost: the boot that was cut short is there. Nothing twice: one run a block, in it each
    # planned boot once.
    measured = [[e for e in ends(run) if e.planned] for run in runs]
    want = ["interrupted", "completed", "completed"]
    assert [[e.outcome for e in one] for one in measured] == [want] * 3
    primed = [[e.arm for e in ends(run) if not e.planned] for run in runs]
    assert [len(one) for one in primed] == [4, 4, 4]  # both arms, and both again
    assert all(count(run, schema.RunResumed) == 1 for run in runs)
    done = [e.planned for one in measured for e in one if e.outcome == "completed"]
    assert len(done) == len(set(done)) == 6
    for run in runs:
        seen = [e.event for e in run.read() if isinstance(e.event, schema.SchedulerObserved)]
        assert [s.phase for s in seen] == ["start", "resume", "end"]
        # Tasks are numbered anew in each array.
        last = "1" if blocks_of(run) == (3,) else str(blocks_of(run)[0])
        assert seen[-1].job.partition("_")[2] == last
        assert {s.source for s in seen} == {"scontrol"}  # this cluster keeps no accounts
        assert seen[0].facts["figures"][0]["NumNodes"] == "1"
        assert not any(node in run.events.read_text() for node in slurm.nodes)
        # Queued again by Slurm with a count, by hand as another job.
        assert seen[-1].restarts == (0 if blocks_of(run) == (3,) else 1)
    tables = list((kit.place / "out" / "demo" / "tables").rglob("*.md"))
    assert tables


# Stands for apptainer, which a test cannot install: takes the same words, and runs what it is to
# run in an image file on the node itself.
APPTAINER = """\
#!{python}
import json, os, sys
verb, *rest = sys.argv[1:]
if verb == "--version":
    print("apptainer version 1.3.4")
elif verb == "pull":
    assert rest[0] == "--force"
    open(rest[1], "w").write(rest[2])
elif verb == "inspect":
    label = "org.label-schema.usage.singularity.deffile.from"
    built_of = open(rest[1]).read().removeprefix("docker://")
    print(json.dumps(dict(data=dict(attributes=dict(labels={{label: built_of}})))))
else:
    assert (verb, rest[0]) == ("exec", "--no-home")
    command = [word for word in rest if not word.startswith("--bind=")][2:]
    os.execvp(command[0], command)
"""
PLATFORM = {
    "manifest_digest": f"sha256:{'2' * 64}",
    "image_id": f"sha256:{'3' * 64}",
    "layers_bytes": 1,
    "layer_count": 1,
    "requires_cuda": "",
}
IMAGE = {
    "registry": "registry.example",
    "repository": "demo/engine",
    "released_as": "v1",
    "index_digest": f"sha256:{'1' * 64}",
    "resolved": True,
    "platforms": {"linux/amd64": PLATFORM},
    "python": sys.executable,
}


@pytest.fixture
def in_image(kit: SshKit, tmp_path: Path) -> SshKit:
    """The same user, at a site whose nodes run images as files."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "apptainer").write_text(APPTAINER.format(python=sys.executable))
    (tools / "apptainer").chmod(0o755)
    lock = tmp_path / "images.lock.json"
    lock.write_text(json.dumps({"format": 1, "images": {"demo": IMAGE}}))
    with Path(kit.extra["KIT_SLURM"]).open("a") as site:
        site.write('container = "apptainer"\n')
    kit.extra |= {"PATH": f"{tools}:{os.environ['PATH']}", "KIT_IMAGE_LOCK": str(lock)}
    kit.extra["KIT_RUNTIME"] = "docker"
    return kit


def test_in_an_image_file_seen_stopped_and_gone_on_with(slurm: Slurm, in_image: SshKit) -> None:
    kit = in_image
    kit.plan.write_text(tiny_plan(blocks=2, requests=5))
    plan = ("--plan", str(kit.plan), "--blocks", "1,2")
    begun = kit.call("run", *plan, *FLEET, "--detach", "--json")
    assert begun.returncode == 0, begun.stderr
    first, second = (one["run_id"] for one in json.loads(begun.stdout))
    wait_for_windows(kit, 1, 2)
    told = {t["run_id"]: t for t in json.loads(kit.call("status", *FLEET, "--json").stdout)}
    assert {told[first]["state"], told[second]["state"]} == {"measuring"}
    assert told[first]["left_s"] > 0
    assert "window c1" in kit.call("logs", first, *FLEET).stdout
    waiting = slurm.call("sbatch", "--hold", "--parsable", "--wrap=true", "--output=/dev/null")
    note = next((kit.home / "jobs").glob(f"{second}.slurm"))
    task = note.read_text()
    note.write_text(f"{waiting.strip()}\n")
    told = {t["run_id"]: t for t in json.loads(kit.call("status", *FLEET, "--json").stdout)}
    assert told[second]["state"] == "queued"
    note.write_text(task)
    slurm.call("scancel", waiting.strip())
    refused = kit.call("stop", *FLEET)
    assert "2 runs are under way" in refused.stderr
    stopped = kit.call("stop", first, *FLEET)
    assert stopped.returncode == 0, stopped.stderr
    assert f"kit reproduce --run {first} {' '.join(FLEET)}" in stopped.stdout
    process = kit.start("reproduce", *plan, *FLEET, "--json")
    out, shown = process.communicate(timeout=120)
    assert process.returncode == 0, shown
    assert f"run {second} is under way: attaching" in shown
    assert [one["run_id"] for one in json.loads(out)] == [first, second]
    runs = {run.path.name: outcomes(run) for run in kit.fetched()}
    assert runs[first] == ["interrupted", "completed", "completed"]
    assert runs[second] == ["completed", "completed"]
    for run in kit.fetched():
        events = [envelope.event for envelope in run.read()]
        bound = {e.digest for e in events if isinstance(e, schema.EngineBound)}
        assert [str(digest) for digest in bound] == [IMAGE["index_digest"]]
        facts = next(e.facts for e in events if isinstance(e, schema.EngineBound))
        built_of = f"registry.example/demo/engine@{IMAGE['index_digest']}"
        assert facts["built_of"] == built_of
        assert facts["sif_digest"] == str(Digest.of(f"docker://{built_of}".encode()))
        argv = next(e.argv for e in events if isinstance(e, schema.BootStarted))
        assert argv[:3] == ("apptainer", "exec", "--no-home")
        assert "--bind=<scratch>:<scratch>" in argv
    fetched = json.loads(kit.call("fetch-records", *FLEET, "--json").stdout)
    assert [f["new_bytes"] for f in fetched] == [0, 0]


def test_the_same_plan_by_ssh_slurm_and_here(
    slurm: Slurm, kit: SshKit, sshd: Sshd, user_home: Path, tmp_path: Path
) -> None:
    text = tiny_plan(blocks=7, tokens=40)  # more than the cluster numbers tasks
    kit.plan.write_text(text)
    by_ssh = SshKit(tmp_path / "laptop", user_home, text)
    here = SshKit(tmp_path / "here", user_home, text)
    from_afar = SshKit(tmp_path / "afar", user_home, text)
    from_afar.extra = {"KIT_SLURM": kit.extra["KIT_SLURM"]}
    key = user_home / ".ssh" / "id_ed25519.pub"
    with sshd_running(tmp_path / "login-node", key, **slurm.env) as login:
        ways = (
            (kit, FLEET),
            (from_afar, (*FLEET, "--host", name_of(login), "--accept-new")),
            (by_ssh, ("--host", name_of(sshd), "--accept-new")),
            (here, ()),
        )
        started = [
            way.start("reproduce", "--plan", str(way.plan), "--blocks", "7", *where)
            for way, where in ways
        ]
        for process in started:
            _, shown = process.communicate(timeout=120)
            assert process.returncode == 0, shown
        seen = from_afar.call("status", *FLEET, "--host", name_of(login), "--json")
        assert [one["state"] for one in json.loads(seen.stdout)] == ["sealed"]
    told = [told_of(*way.fetched()) for way, _ in ways]
    for other in told[1:]:
        assert [name for name, _ in other] == [name for name, _ in told[0]]
        differing = [(a, b) for a, b in zip(told[0], other, strict=True) if a != b]
        assert differing == []
    hosts = [{host_of(run) for run in way.fetched()} for way, _ in ways]
    assert len(set.union(*hosts)) == 4


def test_two_laptops_at_one_login_node_submit_a_block_once(
    slurm: Slurm, kit: SshKit, user_home: Path, tmp_path: Path
) -> None:
    key = user_home / ".ssh" / "id_ed25519.pub"
    with sshd_running(tmp_path / "login-node", key, **slurm.env) as login:
        where = (*FLEET, "--host", name_of(login))
        text = tiny_plan(blocks=2, tokens=40)
        laptops = [SshKit(tmp_path / name, user_home, text) for name in ("one", "two")]
        for laptop in laptops:
            laptop.extra = {"KIT_SLURM": kit.extra["KIT_SLURM"]}
        words = ("run", *where, "--accept-new", "--detach", "--json", "--plan")
        both = [laptop.start(*words, str(laptop.plan)) for laptop in laptops]
        told = [process.communicate(timeout=60) for process in both]
        assert [process.returncode for process in both] == [0, 0], told
        first, second = (json.loads(out) for out, _ in told)
        assert [one["run_id"] for one in first] == [one["run_id"] for one in second]
        (waited,) = (shown for _, shown in told if "submits this plan just now" in shown)
        assert waited.count("is under way: attaching") == 2
        stopped = laptops[0].call("stop", "--all", *where)
        assert stopped.returncode == 0, stopped.stderr
        assert not list((login.home / "jobs").glob("*.turn*"))


# What a host decides, its environment, or the hour; what is left is the plan's and the harness's.
OF_THE_HOST = {
    "PATH", "busiest_thread", "clock", "host", "host_id", "merged", "port", "report", "run_id",
    "steal_ppm", "void",
}  # fmt: skip
PYTHONS = ("<engine>/bin/python", "<engine>/bin/python3")
OBSERVATIONS = {"host.observed", "scheduler.observed", "client.calibrated"}


def told_of(run: RunDirectory) -> list[tuple[str, Any]]:
    """The events of a run without what the host or the moment decides."""
    events = [(envelope.event.TYPE, schema.encode(envelope.event)[1]) for envelope in run.read()]
    return [(name, without_host(value)) for name, value in events if name not in OBSERVATIONS]


def without_host(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in OF_THE_HOST and not k.endswith("_ns")}
        if "logs" in kept or "metrics" in kept:  # captures of these very processes
            kept |= {k: sorted(kept[k]) for k in ("logs", "metrics") if k in kept}
        return {k: without_host(v) for k, v in kept.items()}
    if isinstance(value, list):
        after = ["", *value]
        return [
            "PORT" if before == "--port" else without_host(v)
            for before, v in zip(after, value, strict=False)
        ]
    return "PYTHON" if value in PYTHONS else value
