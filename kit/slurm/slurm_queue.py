"""Blocks into Slurm's queue: engine and jobs on the shared storage, one array job for all.

Invariant: a task's note stands beside its job before it is submitted, by the name of the array job,
which unlike its number is known by then and never given again; so any later look finds the task
wherever this one ended. What it is to do is in files before Slurm knows of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kit.docker.choice import DockerChoice
from kit.engine import setup as engine_setup
from kit.engine.setup import EngineSetup
from kit.fleet.queue_fleet import Wanted, require_same_runtime
from kit.home import Home
from kit.hosts.host import Running
from kit.planning import prompt_files
from kit.run.launch import Say, bring_harness, build_harness, make_job, read_job
from kit.slurm import apptainer
from kit.slurm.cluster_host import SlurmHost, Task, stop_note, task_note
from kit.slurm.submission import gpus, sbatch_argv, script
from records import canonical
from records.decode import to_object
from records.digest import Digest
from records.errors import ProvisionError, SchedulerError
from records.job import Job
from records.plan import Plan
from records.slurm_array import SlurmArray, SlurmTask


class SlurmQueue:
    """One cluster for one plan. `docker`: the image, to run as a file of Apptainer."""

    def __init__(
        self, home: Home, host: SlurmHost, plan: Plan, docker: DockerChoice | None, say: Say
    ) -> None:
        self._home = home
        self._host = host
        self._plan = plan
        self._docker = docker
        self._say = say

    @property
    def period_s(self) -> float:
        """As often as the site wants its controller asked, and the shared storage looked at."""
        return float(self._host.site.poll_s)

    def submit(self, wanted: Sequence[Wanted]) -> list[tuple[Job, Running]]:
        """One array job. SchedulerError, ProvisionError."""
        there = self._host.home(self._home)
        engine_setup.require_locked(self._home, self._plan)
        self._host.scheduler.require()
        archive, digest = build_harness(self._home)
        harness = bring_harness(self._home, self._host, archive)
        self._say(f"harness {digest}")
        setup = self._engine(harness, digest)
        made = [self._job(one, setup) for one in wanted]
        numbers = [one.block for one in wanted]
        tasks = {}
        for number, job in zip(numbers, made, strict=True):
            stop = stop_note(_note(there, job.run_id))
            tasks[str(number)] = SlurmTask(
                str(there.job(job.run_id)), str(there.log(job.run_id)), str(stop)
            )
        notes = {
            number: task_note(_note(there, j.run_id))
            for number, j in zip(numbers, made, strict=True)
        }
        array = self._array(notes, tasks, harness)
        running: list[tuple[Job, Running]] = []
        for number, job in zip(numbers, made, strict=True):
            stop = stop_note(_note(there, job.run_id))
            running.append((job, Task(self._host, f"{array}_{number}", stop)))
        return running

    def _array(self, notes: dict[int, Path], tasks: dict[str, SlurmTask], harness: Path) -> str:
        site, name = self._host.site, f"kit-{secrets.token_hex(4)}"
        place = self._host.home(self._home).path / "slurm"
        path = place / f"{name}.json"
        array = SlurmArray(tasks, site.scratch, site.notice_s)
        self._host.write(path, canonical.encode(to_object(array)))
        self._host.run(("rm", "-f", "--", *(task.stop for task in tasks.values())))
        argv = sbatch_argv(site, self._plan, notes, name, place)
        for block, note in notes.items():
            self._host.write(note, f"{name}_{block}\n".encode())
        number = self._submit(argv, script(self._host.python, harness, path), name)
        what = f"{gpus(self._plan)} GPU each" if gpus(self._plan) else "no GPU"
        self._say(
            f"Slurm job {number}: {len(tasks)} tasks, a node and {what}; it goes on if this ends"
        )
        return number

    def _submit(self, argv: Sequence[str], text: bytes, name: str) -> str:
        """Its number, also where sbatch took the job in and then failed: a socket timed out."""
        try:
            return self._host.scheduler.submit(argv, text)
        except SchedulerError as error:
            try:
                number = self._host.scheduler.number(name)
            except SchedulerError:
                raise error from None
            if not number:
                raise
            self._say(f"warning: {error.message}; it is in the queue all the same")
            return number

    def _engine(self, harness: Path, digest: Digest) -> EngineSetup:
        if self._docker is None:
            return engine_setup.set_up(
                self._home, self._host, self._plan, harness, digest, self._say
            )
        if not self._host.site.container:
            raise ProvisionError(
                f"plan {self._plan.id} runs in an image, and the site names no way to",
                'container = "apptainer" in slurm.toml, or --runtime wheels',
            )
        return apptainer.set_up(
            self._home, self._host, self._plan, self._docker, harness, self._say
        )

    def _job(self, one: Wanted, setup: EngineSetup) -> Job:
        there, here = self._host.home(self._home), self._host.mirror(self._home)
        path = here.job(one.run_id)
        begun = read_job(path) if path.exists() else None
        blocks = begun.blocks if begun else (one.block,)
        job = make_job(self._home, self._host, self._plan, one.run_id, setup, blocks)
        require_same_runtime(begun, job)
        words = (p.replace(apptainer.SCRATCH_WORD, job.scratch) for p in job.engine.launcher)
        job = replace(job, engine=replace(job.engine, launcher=tuple(words)))
        prompt_files.carry(self._home, self._host, job)
        path.write_bytes(canonical.encode(to_object(job)))
        if there != here:
            self._host.put(path, there.job(one.run_id))
        return job


def _note(there: Home, run_id: str) -> Path:
    return there.jobs / f"{run_id}.pid"
