"""SkyPilot: what a task asks for, and a study whose machine is taken away in its midst.

The cloud is made up: a directory as bucket, processes as machines, whose disk is another directory.
What is sent to them is what would be sent to SkyPilot; `make test-sky` has SkyPilot itself read it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from ssh_kit import outcomes, tiny_plan
from sshd import wait_for

from kit.docker.choice import DockerChoice
from kit.fleet.carry_out import carry_out
from kit.fleet.queue_fleet import QueueFleet
from kit.home import Home
from kit.image_lock import LockedImage
from kit.planning.plan_file import load_plan
from kit.registry.resolve import Platform
from kit.sky.cloud import sync_argv
from kit.sky.cloud_host import SkyHost
from kit.sky.site import SkySite, read_site
from kit.sky.sky_queue import SkyQueue
from kit.sky.task_document import Carried, accelerator, document
from records import schema
from records.digest import Digest
from records.errors import PlanError
from records.plan import Plan
from records.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]
L4 = load_plan(ROOT / "kit" / "plans" / "l4-confounds.toml")
INDEX = Digest.of(b"index")


def choice() -> DockerChoice:
    """An image that was resolved."""
    image = LockedImage("docker.io", "vllm/vllm-openai", "v0.29.0", INDEX, False, {}, "python3")
    platform = Platform(Digest.of(b"manifest"), Digest.of(b"id"), 9 << 30, 30, "12.9")
    return DockerChoice(image, platform, "docker.io", "images.lock.json", Digest.of(b"lock"))


def l4_document() -> dict[str, Any]:
    carried = Carried({"/kit/harness.pyz": "/h.pyz"}, "/kit/job.json", "/kit/harness.pyz")
    return document(L4, "kit-l4-b1", SkySite("records"), "gcp", carried, choice())


def test_a_task_asks_for_what_the_plan_needs() -> None:
    assert l4_document() == {
        "name": "kit-l4-b1",
        "resources": {
            "memory": "14+",
            "disk_size": 44 + 36 + 30,
            "use_spot": True,
            "job_recovery": {
                "strategy": "FAILOVER",
                "max_restarts_on_errors": 0,
                "recover_on_exit_codes": [52],
            },
            "infra": "gcp",
            "accelerators": "L4:1",
            "image_id": f"docker:docker.io/vllm/vllm-openai@{INDEX}",
        },
        "num_nodes": 1,
        "file_mounts": {
            "/kit/harness.pyz": "/h.pyz",
            "/kit/bucket": {"name": "records", "store": "s3", "mode": "MOUNT"},
        },
        "run": "exec python3 -I -S /kit/harness.pyz bucket /kit/job.json /kit/bucket\n",
    }


@pytest.mark.parametrize(
    ("capability", "memory_mib", "want"),
    [("8.9", 22_000, "L4"), ("8.9", 40_000, "L40S"), ("9.0", 79_000, "H100")],
)
def test_the_smallest_gpu_that_holds_the_plan(capability: str, memory_mib: int, want: str) -> None:
    assert accelerator(needing(capability, memory_mib)) == want


def test_a_gpu_that_nobody_knows() -> None:
    with pytest.raises(PlanError, match=r"12\.0"):
        accelerator(needing("12.0", 1))


def needing(capability: str, memory_mib: int) -> Plan:
    needs = replace(
        L4.requirements, compute_capability=Decimal(capability), gpu_memory_mib=memory_mib
    )
    return replace(L4, requirements=needs)


def test_the_bucket_comes_home_by_its_own_command() -> None:
    here = Path("/here")
    assert sync_argv(SkySite("b"), here)[:4] == ("aws", "s3", "sync", "s3://b")
    assert sync_argv(SkySite("b", "gcs"), here)[-2:] == ("gs://b", "/here")


@pytest.mark.parametrize("text", ["", "bucket = 'b'\nstore = 'ftp'", "bucket = 'b'\nx = 1"])
def test_a_site_file_that_is_wrong(tmp_path: Path, text: str) -> None:
    (tmp_path / "sky.toml").write_text(text)
    with pytest.raises(PlanError, match=r"sky\.toml"):
        read_site(Home(tmp_path, tmp_path, tmp_path, tmp_path), {})


@dataclass
class MadeUpCloud:
    """One machine at a time; its disk is `disk`, the bucket outlives it."""

    disk: Path
    bucket: Path
    tasks: list[Mapping[str, Any]] = field(default_factory=list)
    machine: subprocess.Popen[bytes] | None = None

    def launch(self, document: Mapping[str, Any]) -> int:
        self.tasks.append(document)
        self.start()
        return len(self.tasks)

    def start(self) -> None:
        """A fresh machine for the last task."""
        self.disk.mkdir()
        for there, here in self.tasks[-1]["file_mounts"].items():
            if isinstance(here, dict):
                Path(there).symlink_to(self.bucket)
            else:
                shutil.copy(here, there)
        words = shlex.split(self.tasks[-1]["run"])[1:]
        self.machine = subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL)

    def take_away(self) -> None:
        """The machine and its disk are gone, without a notice."""
        assert self.machine is not None
        for pid in tree(self.machine.pid):
            os.kill(pid, signal.SIGKILL)
        self.machine.wait()
        shutil.rmtree(self.disk)

    def statuses(self, jobs: Sequence[int]) -> dict[int, str]:
        assert self.machine is not None
        status = self.machine.poll()
        word = "RUNNING" if status is None else "SUCCEEDED" if status == 0 else "FAILED"
        return dict.fromkeys(jobs, word)

    def cancel(self, job: int) -> None:
        self.take_away()

    def bring(self, directory: Path) -> None:
        shutil.copytree(self.bucket, directory, dirs_exist_ok=True)


def tree(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in tree(int(child)))]


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[MadeUpCloud]:
    (tmp_path / "bucket").mkdir()
    made_up = MadeUpCloud(tmp_path / "disk", tmp_path / "bucket")
    yield made_up
    if made_up.machine is not None and made_up.machine.poll() is None:
        made_up.take_away()


def test_a_machine_taken_away_loses_boots_and_no_record(tmp_path: Path, cloud: MadeUpCloud) -> None:
    (tmp_path / "tiny.toml").write_text(tiny_plan(blocks=1, requests=3))
    plan = load_plan(tmp_path / "tiny.toml")
    home = Home(ROOT, tmp_path / "kit", tmp_path / "data", tmp_path / "out")
    host = SkyHost(SkySite("b", root=str(cloud.disk), poll_s=1), cloud, "sky/local", "")
    said: list[str] = []
    queue = SkyQueue(home, host, plan, None, said.append)
    fleet = QueueFleet(home, host, plan, queue, said.append)
    fleet.submit()
    (run_id,) = fleet.run_ids
    events = cloud.bucket / "runs" / run_id / "events.jsonl"
    wait_for(lambda: events.exists() and b"boot.ended" in events.read_bytes(), "nothing came home")
    first = events.read_bytes()
    assert fleet.poll() == ()
    cloud.take_away()
    cloud.start()  # as SkyPilot recovers it
    shared = carry_out(QueueFleet(home, host, plan, queue, said.append), said.append)
    assert [one.ending.completed for one in shared.done] == [2], said
    assert f"[block 1] run {run_id} is under way: attaching" in said
    run = RunDirectory(shared.done[0].fetched.directory)
    assert run.is_sealed
    assert list(run.verify_files()) == []
    assert run.events.read_bytes().startswith(first)
    # The boot that the machine took with it was begun or not when the journal was brought.
    assert [o for o in outcomes(run) if o != "interrupted"] == ["completed", "completed"]
    resumed = [e.event for e in run.read() if isinstance(e.event, schema.RunResumed)]
    assert len(resumed) == 1
