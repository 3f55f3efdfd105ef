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
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from called_kit import outcomes, tiny_plan
from sshd import descendants, wait_for

from kit.docker.choice import DockerChoice
from kit.fleet.carry_out import carry_out
from kit.fleet.queue_fleet import QueueFleet
from kit.home import Home
from kit.image_lock import LockedImage
from kit.planning.plan_file import load_plan
from kit.registry.resolve import Platform
from kit.sky.cloud import SkyPilot, sync_argv
from kit.sky.cloud_host import SkyHost
from kit.sky.site import SkySite, read_site
from kit.sky.sky_queue import SkyQueue
from kit.sky.task_document import Carried, accelerator, document
from records import schema
from records.digest import Digest
from records.errors import PlanError, SchedulerError
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
        for pid in (self.machine.pid, *descendants(self.machine.pid)):
            os.kill(pid, signal.SIGKILL)
        self.machine.wait()
        shutil.rmtree(self.disk)

    def number(self, name: str) -> int | None:
        names = [task["name"] for task in self.tasks]
        return names.index(name) + 1 if name in names else None

    def statuses(self, jobs: Sequence[int]) -> dict[int, str]:
        assert self.machine is not None
        status = self.machine.poll()
        word = "RUNNING" if status is None else "SUCCEEDED" if status == 0 else "FAILED"
        return dict.fromkeys(jobs, word)

    def cancel(self, job: int) -> None:
        self.take_away()

    def bring(self, directory: Path) -> None:
        shutil.copytree(self.bucket, directory, dirs_exist_ok=True)


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


class Unsteady(MadeUpCloud):
    """Machines that never come; after so many launches, the next is cut short."""

    cut_short: BaseException = KeyboardInterrupt()
    whole: int = 0

    def launch(self, document: Mapping[str, Any]) -> int:
        self.tasks.append(document)
        if len(self.tasks) > self.whole:
            raise self.cut_short
        return len(self.tasks)

    def statuses(self, jobs: Sequence[int]) -> dict[int, str]:
        return dict.fromkeys(jobs, "PENDING")


def two_blocks(tmp_path: Path, cloud: MadeUpCloud, said: list[str]) -> QueueFleet:
    (tmp_path / "tiny.toml").write_text(tiny_plan(blocks=2))
    plan = load_plan(tmp_path / "tiny.toml")
    home = Home(ROOT, tmp_path / "kit", tmp_path / "data", tmp_path / "out")
    host = SkyHost(SkySite("b", root=str(cloud.disk), poll_s=1000), cloud, "sky/local", "")
    return QueueFleet(home, host, plan, SkyQueue(home, host, plan, None, said.append), said.append)


def test_a_launch_that_ctrl_c_cut_short_is_found_again_and_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    cloud = Unsteady(tmp_path / "disk", tmp_path / "bucket")
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        two_blocks(tmp_path, cloud, said).submit()
    cloud.whole = 9
    two_blocks(tmp_path, cloud, said).submit()
    assert [name.rpartition("-")[0] for name in map(itemgetter("name"), cloud.tasks)] == [
        "kit-tiny-b1",
        "kit-tiny-b2",
    ]
    assert any("is under way: attaching" in line for line in said)


def test_what_was_launched_before_a_refusal_is_told(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    cloud = Unsteady(tmp_path / "disk", tmp_path / "bucket")
    cloud.whole, cloud.cut_short = 1, SchedulerError("no quota", "sky check")
    with pytest.raises(SchedulerError, match=r"no quota; 1 of 2 blocks were launched") as refusal:
        two_blocks(tmp_path, cloud, []).submit()
    assert "kit stop --all --fleet sky" in refusal.value.remedy


def test_all_jobs_are_asked_for_at_once(tmp_path: Path) -> None:
    asked: list[list[int]] = []

    class Counting(Unsteady):
        def statuses(self, jobs: Sequence[int]) -> dict[int, str]:
            asked.append(list(jobs))
            return super().statuses(jobs)

    host = SkyHost(SkySite("b", poll_s=1000), Counting(tmp_path, tmp_path), "sky/local", "")
    assert [host.status(number) for number in (1, 2, 1)] == ["PENDING"] * 3
    assert asked == [[1], [1, 2]]


class ClusterNotUpError(Exception):
    """As sky.exceptions has it."""

    def __init__(self, message: str, cluster_status: object = None) -> None:
        super().__init__(message)
        self.cluster_status = cluster_status


class NoCloudAccessError(Exception):
    """Likewise: no base in common with the one above."""


Answer = Callable[[], tuple[Any, ...]]


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], SkyPilot]:
    """SkyPilot's calls, as `make test-sky` finds them, with this answer to every request."""

    def install(answer: Answer) -> SkyPilot:
        def request(*_args: object, **_asked: object) -> Answer:
            return answer

        calls = dict.fromkeys(("launch", "queue_v2", "cancel"), request)
        jobs, sky = ModuleType("sky.jobs"), ModuleType("sky")
        exceptions = ModuleType("sky.exceptions")
        vars(jobs).update(calls)
        for kind in (ClusterNotUpError, NoCloudAccessError):
            setattr(exceptions, kind.__name__, kind)
        vars(sky).update(
            get=lambda request: request(),
            stream_and_get=lambda request: request(),
            Task=SimpleNamespace(from_yaml_config=dict),
            ClusterStatus=SimpleNamespace(STOPPED="STOPPED"),
            exceptions=exceptions,
        )
        for module in (sky, jobs, exceptions):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        return SkyPilot(SkySite("b"))

    return install


def failing(error: Exception) -> Answer:
    def answer() -> tuple[Any, ...]:
        raise error

    return answer


def test_a_job_by_its_whole_name(
    answering: Callable[[Answer], SkyPilot], capsys: pytest.CaptureFixture[str]
) -> None:
    records = [
        SimpleNamespace(job_id=number, job_name=name, status=SimpleNamespace(value="RUNNING"))
        for number, name in ((7, "kit-a-b1-00"), (8, "kit-a-b1-000"))
    ]

    def answer() -> tuple[Any, ...]:
        print("Failed to connect to SkyPilot API server. Starting a local server.")
        return records, 2, {}, 2

    cloud = answering(answer)
    assert (cloud.number("kit-a-b1-00"), cloud.number("kit-a")) == (7, None)
    assert cloud.statuses([7]) == {7: "RUNNING", 8: "RUNNING"}
    assert capsys.readouterr().out == ""  # where a verb's --json goes


@pytest.mark.parametrize("status", [None, "STOPPED"])
def test_a_controller_that_ended_when_nothing_ran(
    answering: Callable[[Answer], SkyPilot], status: str | None
) -> None:
    cloud = answering(failing(ClusterNotUpError("No in-progress managed jobs.", status)))
    assert (cloud.number("kit-a-b1-00"), cloud.statuses([7])) == (None, {})


@pytest.mark.parametrize(
    "error",
    [
        ClusterNotUpError("Failed to connect to the controller.", "INIT"),
        NoCloudAccessError("Cloud access is not set up. Run: \x1b[1msky check\x1b[0m"),
        RuntimeError("Could not connect to SkyPilot API server"),
        ConnectionError("refused"),
    ],
)
def test_what_skypilot_refuses_is_an_error_of_the_kits(
    answering: Callable[[Answer], SkyPilot], error: Exception
) -> None:
    cloud = answering(failing(error))
    for ask in (
        lambda: cloud.launch({"name": "kit-a"}),
        lambda: cloud.statuses([7]),
        lambda: cloud.cancel(7),
    ):
        with pytest.raises(SchedulerError, match="SkyPilot: ") as refusal:
            ask()
        assert "\x1b" not in refusal.value.message


@pytest.mark.parametrize(
    ("store", "said", "is_absent"),
    [
        ("s3", "fatal error: An error occurred (NoSuchBucket) when calling ListObjectsV2", True),
        ("gcs", "BucketNotFoundException: 404 gs://b bucket does not exist.", True),
        (
            "gcs",
            "CommandException: arg (gs://b) does not name a directory, bucket, or bucket subdir.",
            True,
        ),
        ("gcs", "ServiceException: 401 Anonymous caller does not have storage access", False),
    ],
)
def test_a_bucket_that_is_yet_to_be_made_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, said: str, is_absent: bool
) -> None:
    for name in ("aws", "gsutil"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    refused = nullcontext() if is_absent else pytest.raises(SchedulerError, match="401")
    with refused:
        SkyPilot(SkySite("b", store)).bring(tmp_path / "here")
