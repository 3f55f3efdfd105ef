"""A task on its node: scratch, place, names, and when it queues itself again."""

from __future__ import annotations

from pathlib import Path

import pytest

from records import canonical
from records.decode import from_object, to_object
from records.digest import Digest
from records.errors import HostUnfitError, InterruptedRunError, RunBusyError
from records.job import EngineOnHost, Job
from records.slurm_array import SlurmArray, SlurmTask
from remote.slurm.observation import node_id, observe, task_name
from remote.slurm.task import carry_out, is_out_of_time, placed, scratch_of
from tests.sealed_run import small_plan

ENVIRON = {
    "SLURM_JOB_ID": "14",
    "SLURM_ARRAY_JOB_ID": "12",
    "SLURM_ARRAY_TASK_ID": "3",
    "SLURM_RESTART_COUNT": "2",
    "SLURMD_NODENAME": "gpu-node-07",
    "SLURM_SUBMIT_HOST": "login1",
    "SLURM_CPUS_ON_NODE": "64",
    "SLURM_JOB_USER": "me",
}

ENGINE = EngineOnHost("reference", ("python3",), (), {}, "", Digest.of(b""))


def handed_out(shared: Path) -> SlurmTask:
    """A task and its job, on this shared storage."""
    job = Job("run-1", small_plan(), ENGINE, {}, str(shared / "runs" / "run-1"), "/none", "salt")
    task = SlurmTask(str(shared / "job.json"), str(shared / "log"), str(shared / "stop"))
    Path(task.job).write_bytes(canonical.encode(to_object(job)))
    return task


def test_the_first_scratch_that_is_there(tmp_path: Path) -> None:
    environ = {"TMPDIR": str(tmp_path), "SLURM_TMPDIR": "", "SLURM": "/wrong"}
    candidates = ("$SLURM_TMPDIR", "/nowhere/at/all", "$TMPDIR", "/")
    assert scratch_of(candidates, environ) == tmp_path
    with pytest.raises(HostUnfitError, match="/nowhere"):
        scratch_of(("$UNSET", "/nowhere"), environ)


def test_a_scratch_that_somebody_else_laid_out_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "spec-fp8-kit-me").symlink_to(tmp_path / "theirs")
    task = handed_out(tmp_path)
    with pytest.raises(HostUnfitError, match="is not this user's own"):
        carry_out(SlurmArray({}, (str(tmp_path),), 120), task, ENVIRON, lambda _path: 0)
    assert list((tmp_path / "theirs").iterdir()) == []


def test_a_job_is_placed_without_a_name_of_the_node(tmp_path: Path) -> None:
    shared = Job("run-1", small_plan(), ENGINE, {}, "/shared/runs/run-1", "/shared/s", "salt")
    one = placed(shared, tmp_path, ENVIRON)
    other = placed(shared, tmp_path, {**ENVIRON, "SLURMD_NODENAME": "gpu-node-08"})
    assert one.run_directory == shared.run_directory
    assert Path(one.scratch) == tmp_path / "spec-fp8-kit-me" / "run-1"
    assert one.place != other.place
    assert "gpu" not in one.place
    assert one.private_names == ("gpu-node-07", "login1")


SCONTROL = """\
#!/bin/sh
echo "$@" >> {log}
echo JobId=14 JobState={state} RunTime=00:10:00 TimeLimit={limit}
"""


@pytest.mark.parametrize(
    ("limit", "state", "stop", "want"),
    [
        # By its own name: an array's last task bears the array's number, which stands for all.
        ("00:12:00", "RUNNING", False, ["show job -o 12_3", "requeue 12_3"]),
        ("10:00:00", "RUNNING", False, ["show job -o 12_3"]),
        ("00:12:00", "RUNNING", True, []),
        ("00:12:00", "COMPLETING", False, ["show job -o 12_3"]),  # somebody cancelled it
    ],
)
def test_only_a_task_out_of_time_queues_itself_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    state: str,
    stop: bool,
    want: list[str],
) -> None:
    log, scontrol = tmp_path / "asked", tmp_path / "bin" / "scontrol"
    log.touch()
    scontrol.parent.mkdir()
    scontrol.write_text(SCONTROL.format(log=log, limit=limit, state=state))
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{scontrol.parent}:/usr/bin:/bin")
    task = handed_out(tmp_path)
    ran: list[Job] = []

    def run(path: str) -> int:
        ran.append(from_object(Job, canonical.decode(Path(path).read_bytes())))
        if stop:
            Path(task.stop).touch()
        raise InterruptedRunError("stopped by SIGTERM")

    with pytest.raises(InterruptedRunError):
        carry_out(SlurmArray({}, (str(tmp_path),), 120), task, ENVIRON, run)
    assert ran[0].run_directory == str(tmp_path / "runs" / "run-1")
    assert Path(ran[0].scratch).parent.stat().st_mode & 0o077 == 0
    assert not Path(ran[0].scratch).exists()  # nothing is left on the node
    assert log.read_text().splitlines() == want
    Path(task.stop).touch()
    with pytest.raises(InterruptedRunError, match="before it had begun"):
        carry_out(SlurmArray({}, (str(tmp_path),), 120), task, ENVIRON, run)
    assert len(ran) == 1


def test_a_journal_that_a_dead_node_still_holds_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remote.slurm.task._BUSY_POLL_S", 0)
    task = handed_out(tmp_path)
    answers: list[int | None] = [None, None, 51]

    def run(_path: str) -> int:
        status = answers.pop(0)
        if status is None:
            raise RunBusyError("another process is writing")
        return status

    assert carry_out(SlurmArray({}, (str(tmp_path),), 120), task, ENVIRON, run) == 51


@pytest.mark.parametrize(
    ("state", "limit", "spent", "want"),
    [
        ("RUNNING", "01:00:00", "00:56:30", True),
        ("RUNNING", "01:00:00", "00:56:29", False),
        ("RUNNING", "UNLIMITED", "00:56:30", False),
        ("COMPLETING", "01:00:00", "00:59:59", False),
        ("COMPLETING", "01:00:00", "01:00:00", True),
    ],
)
def test_what_is_out_of_time(state: str, limit: str, spent: str, want: bool) -> None:
    shown = {"JobState": state, "TimeLimit": limit, "RunTime": spent}
    assert is_out_of_time(shown, notice_s=120) == want
    assert not is_out_of_time({}, notice_s=120)


def test_outside_slurm_nothing_is_observed(tmp_path: Path) -> None:
    assert observe("start", "salt", tmp_path, {}) is None


def commands(place: Path, **texts: str) -> str:
    """PATH with these commands, which note what they are asked in `place`/asked."""
    place.mkdir()
    for name, text in texts.items():
        (place / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {place}/asked\n{text}\n')
        (place / name).chmod(0o755)
    return f"{place}:/usr/bin:/bin"


SACCT_ROW = "|".join(["RUNNING", "61", "00:59.1", "", "", "", "", "cpu=1", "cpu=1", "16"])


@pytest.mark.parametrize(
    ("sacct", "source"),
    [
        (f"echo '12_3|{SACCT_ROW}'", "sacct"),
        (f"echo 'Accounts are being moved.'; echo '12_3|{SACCT_ROW}'", "sacct"),
        ("echo 'Accounts are being moved.'", "scontrol"),
        (r"printf '12_3|caf\351\n'", "scontrol"),
        ("echo 'sacct: error: Slurm accounting storage is disabled' >&2; exit 1", "scontrol"),
    ],
)
def test_figures_are_of_this_task_whatever_a_site_prints_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sacct: str, source: str
) -> None:
    scontrol = "echo Welcome; echo JobId=12 JobState=RUNNING NumNodes=1"
    monkeypatch.setenv("PATH", commands(tmp_path / "bin", sacct=sacct, scontrol=scontrol))
    seen = observe("start", "salt", tmp_path, {**ENVIRON, "SLURM_JOB_ID": "12"})
    assert seen is not None
    assert seen.source == source
    (figures,) = seen.facts["figures"]
    assert figures.get("State", figures.get("JobState")) == "RUNNING"
    for line in (tmp_path / "bin" / "asked").read_text().splitlines():
        assert "12_3" in line.split()


def test_an_allocation_whose_scheduler_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # none of Slurm's commands is there
    seen = observe("resume", "salt", tmp_path, ENVIRON)
    assert seen is not None
    assert (seen.job, seen.restarts, seen.source) == ("12_3", 2, "none")
    assert seen.node == node_id("salt", ENVIRON)
    assert "gpu-node" not in str(seen)
    assert task_name({"SLURM_JOB_ID": "14"}) == "14"
