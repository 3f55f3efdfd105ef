"""One task of an array job: a block, on whatever node it was given, begun or gone on with.

Invariant: records, job and log stand on shared storage, scratch on the node; a task that Slurm
stops has marked its boot before it ends, and is queued again only where nobody asked it to stop.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from records import canonical
from records.decode import from_object, to_object
from records.errors import FormatError, HostUnfitError, InterruptedRunError, RunBusyError
from records.job import EngineOnHost, Job
from records.slurm_array import SlurmArray, SlurmTask
from remote import run
from remote.slurm import fitness, report, shared_disk
from remote.slurm.observation import answer, node_id, show_job, task_name

# Slurm may send its signal up to 60 s early (sbatch(1), --signal).
_EARLY_S = 90
# NFSv4 keeps the lock of a node that died for its lease, 90 s by default (nfsd(7)).
_BUSY_S = 300
_RESTARTS = 20
_BUSY_POLL_S = 5
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "HF_TOKEN_FILE")


def main(array_path: str) -> int:
    """Carry out the task that SLURM_ARRAY_TASK_ID names; the exit status of `run`."""
    array = from_object(SlurmArray, canonical.decode(Path(array_path).read_bytes()))
    number = os.environ.get("SLURM_ARRAY_TASK_ID", "")
    if number not in array.tasks:
        raise FormatError(f"{array_path} has no task {number!r}", "kit reproduce --fleet slurm")
    task = array.tasks[number]
    _log_to(Path(task.log))
    for name in _TOKENS:
        os.environ.pop(name, None)
    return carry_out(array, task, os.environ, run.main)


def carry_out(
    array: SlurmArray,
    task: SlurmTask,
    environ: Mapping[str, str],
    run_job: Callable[[str], int],
) -> int:
    """Run the task's job here by `run_job`. InterruptedRunError: Slurm, or somebody, stopped it."""
    if Path(task.stop).exists():
        raise InterruptedRunError("stopped before it had begun", "the same command goes on")
    shared = from_object(Job, canonical.decode(Path(task.job).read_bytes()))
    fitness.require_fit(shared.plan.requirements)
    job = placed(shared, scratch_of(array.scratch, environ), environ)
    path = _bring(shared, job)
    Path(job.run_directory).parent.mkdir(parents=True, exist_ok=True)
    warning = shared_disk.require_lock(shared_disk.of(Path(job.run_directory).parent))
    if warning:
        print(warning, file=sys.stderr, flush=True)
    try:
        return _run_when_free(path, run_job)
    except InterruptedRunError:
        # Slurm queues a task again whose node failed or was taken away, not one out of time. A
        # block that no limit of this site holds is given up at last.
        again = int(environ.get("SLURM_RESTART_COUNT") or 0) < _RESTARTS
        if again and not Path(task.stop).exists():
            name = task_name(environ)
            if is_out_of_time(show_job(name), array.notice_s):
                print("near its time limit: asking for another turn", file=sys.stderr, flush=True)
                answer(("scontrol", "requeue", name))
        raise
    finally:
        shutil.rmtree(job.scratch, ignore_errors=True)  # the node is somebody else's next


def is_out_of_time(shown: Mapping[str, str], notice_s: int) -> bool:
    """Whether its limit is what ends the job: near while it runs, reached once it is being ended.

    A job that somebody cancelled is being ended before its limit, however near that was.
    """
    limit_s = report.seconds(shown.get("TimeLimit", ""))
    spent_s = report.seconds(shown.get("RunTime", ""))
    if limit_s is None or spent_s is None:
        return False
    near_s = notice_s + _EARLY_S if shown.get("JobState") == "RUNNING" else 0
    return limit_s - spent_s <= near_s


def scratch_of(candidates: Iterable[str], environ: Mapping[str, str]) -> Path:
    """The first candidate that is a writable directory on this node. HostUnfitError."""
    tried = []
    for text in candidates:
        words = {name: value for name, value in environ.items() if value}
        filled = text
        for name in sorted(words, key=len, reverse=True):
            filled = filled.replace(f"${name}", words[name])
        tried.append(filled)
        if "$" not in filled and Path(filled).is_dir() and os.access(filled, os.W_OK):
            return Path(filled)
    raise HostUnfitError(
        f"no scratch directory on this node among {', '.join(tried)}",
        'name one in slurm.toml: scratch = ["/local"]',
    )


def placed(job: Job, scratch: Path, environ: Mapping[str, str]) -> Job:
    """The job on this node: its scratch, the node's salted id, the names to keep out."""
    place = str(scratch / f"spec-fp8-kit-{environ.get('SLURM_JOB_USER', 'user')}" / job.run_id)
    names = {environ.get(name, "") for name in ("SLURMD_NODENAME", "SLURM_SUBMIT_HOST")}
    return replace(
        job,
        scratch=place,
        engine=_moved(job.engine, job.scratch, place),
        place=node_id(job.host_salt, environ),
        private_names=tuple(sorted({*job.private_names, *names} - {"", "localhost"})),
    )


def _moved(engine: EngineOnHost, before: str, after: str) -> EngineOnHost:
    """An image file's command binds the scratch that the engine may write to."""
    launcher = tuple(part.replace(before, after) for part in engine.launcher)
    return replace(engine, launcher=launcher)


def _bring(shared: Job, job: Job) -> Path:
    """Prompts and job into the node's scratch; where the job stands."""
    scratch = Path(job.scratch)
    _make_own(scratch.parent)
    scratch.mkdir(exist_ok=True)
    if Path(shared.prompts_directory).is_dir():
        shutil.copytree(shared.prompts_directory, job.prompts_directory, dirs_exist_ok=True)
    path = scratch / "job.json"
    path.write_bytes(canonical.encode(to_object(job)))
    return path


def _make_own(directory: Path) -> None:
    """A directory of this user's alone: where scratch is everybody's, another could lay one out."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise HostUnfitError(
            f"{directory} is not this user's own directory",
            'name another place in slurm.toml: scratch = ["/local"]',
        )


def _run_when_free(path: Path, run_job: Callable[[str], int]) -> int:
    """Run once the journal's lock is free: the node that held it may have died with it."""
    began = time.monotonic()
    while True:
        try:
            return run_job(str(path))
        except RunBusyError as error:
            if time.monotonic() - began > _BUSY_S:
                raise
            print(f"waiting: {error.message}", file=sys.stderr, flush=True)
            time.sleep(_BUSY_POLL_S)


def _log_to(log: Path) -> None:
    """Print where the kit looks for what a run's harness printed."""
    log.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.close(fd)
