"""Blocks into Slurm's queue: engine and jobs on the shared storage, one array job for all.

Invariant: a task's note stands beside its job before it is submitted, by the name of the array job,
which unlike its number is known by then and never given again; so any later look finds the task
wherever this one ended. What it is to do is in files before Slurm knows of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kit.docker.choice import DockerChoice
from kit.engine import setup as engine_setup
from kit.engine.setup import EngineSetup
from kit.fleet.queue_fleet import Wanted, require_same_runtime
from kit.fleet.turn import turn
from kit.home import Home
from kit.hosts.host import Running
from kit.planning import prompt_files
from kit.run.campaign import Share
from kit.run.launch import Say, bring_harness, build_harness, make_job
from kit.slurm import apptainer
from kit.slurm.cluster_host import SlurmHost, Task, stop_note, task_note
from kit.slurm.submission import gpus, pattern, sbatch_argv, script
from records import canonical
from records.decode import to_object
from records.digest import Digest
from records.errors import ProvisionError, SchedulerError
from records.job import Job
from records.plan import Plan
from records.slurm_array import SlurmArray, SlurmTask


@dataclass(frozen=True, slots=True)
class SlurmQueue:
    """One cluster for one plan. `docker`: the image, to run as a file of Apptainer."""

    home: Home
    host: SlurmHost
    plan: Plan
    docker: DockerChoice | None
    say: Say

    @property
    def period_s(self) -> float:
        """As often as the site wants its controller asked, and the shared storage looked at."""
        return float(self.host.site.poll_s)

    def turn(self) -> AbstractContextManager[None]:
        """On the shared storage: others may submit the same plan from their own machines."""
        place = self.host.home(self.home).jobs / f"{self.plan.digest.hex[:16]}.turn"
        return turn(self.host, place, self.say)

    def submit(self, wanted: Sequence[Wanted]) -> list[tuple[Job, Running]]:
        """One array job, its tasks numbered from 1 on. SchedulerError, ProvisionError."""
        engine_setup.require_locked(self.home, self.plan)
        self.host.scheduler.require()
        pattern(self._place)  # told before anything is installed
        archive, digest = build_harness(self.home)
        harness = bring_harness(self.home, self.host, archive)
        self.say(f"harness {digest}")
        setup = self._engine(harness, digest)
        jobs = [self._job(one, setup) for one in wanted]
        tasks = {str(number): self._task(job) for number, job in enumerate(jobs, 1)}
        array = self._array(tasks, harness)
        blocks = Share(self.host.name, tuple(one.block for one in wanted)).listed
        what = f"{gpus(self.plan)} GPU each" if gpus(self.plan) else "no GPU"
        self.say(
            f"Slurm job {array}: blocks {blocks} as its tasks 1-{len(tasks)}, a node and {what}; "
            "it goes on if this ends"
        )
        running = (Task(self.host, f"{array}_{n}", Path(task.stop)) for n, task in tasks.items())
        return list(zip(jobs, running, strict=True))

    def _array(self, tasks: dict[str, SlurmTask], harness: Path) -> str:
        """Its number. Block numbers may be higher than a cluster numbers the tasks of an array
        (slurm.conf(5), MaxArraySize), so the tasks have numbers of their own.
        """
        site, name = self.host.site, f"kit-{secrets.token_hex(4)}"
        place = self._place
        path = place / f"{name}.json"
        array = SlurmArray(tasks, site.scratch, site.notice_s)
        self.host.write(path, canonical.encode(to_object(array)))
        self.host.run(("rm", "-f", "--", *(task.stop for task in tasks.values())))
        for number, task in tasks.items():
            self.host.write(task_note(Path(task.job)), f"{name}_{number}\n".encode())
        argv = sbatch_argv(site, self.plan, len(tasks), name, place)
        return self._submit(argv, script(self.host.python, harness, path), name)

    @property
    def _place(self) -> Path:
        """Where arrays, and what no task took over, stand on the shared storage."""
        return self.host.home(self.home).path / "slurm"

    def _submit(self, argv: Sequence[str], text: bytes, name: str) -> str:
        """The array's number, found by its name also where sbatch took it in and then failed."""
        number, failure = "", None
        try:
            number = self.host.scheduler.submit(argv, text)
        except SchedulerError as error:
            failure = error
        with suppress(SchedulerError):  # then it is what sbatch says
            number = self.host.scheduler.number(name) or number
        if failure is None:
            return number
        if not number:
            raise failure
        self.say(f"warning: {failure.message}; it is in the queue all the same")
        return number

    def _engine(self, harness: Path, digest: Digest) -> EngineSetup:
        if self.docker is None:
            return engine_setup.set_up(self.home, self.host, self.plan, harness, digest, self.say)
        if not self.host.site.container:
            raise ProvisionError(
                f"plan {self.plan.id} runs in an image, and the site names no way to",
                'container = "apptainer" in slurm.toml, or --runtime wheels',
            )
        return apptainer.set_up(self.home, self.host, self.plan, self.docker, harness, self.say)

    def _job(self, one: Wanted, setup: EngineSetup) -> Job:
        there, here = self.host.home(self.home), self.host.mirror(self.home)
        path = here.job(one.run_id)
        job = make_job(self.home, self.host, self.plan, one.run_id, setup, one.blocks)
        require_same_runtime(one.begun, job)
        words = (p.replace(apptainer.SCRATCH_WORD, job.scratch) for p in job.engine.launcher)
        job = replace(job, engine=replace(job.engine, launcher=tuple(words)))
        prompt_files.carry(self.home, self.host, job)
        path.write_bytes(canonical.encode(to_object(job)))
        if there != here:
            self.host.put(path, there.job(one.run_id))
        return job

    def _task(self, job: Job) -> SlurmTask:
        there = self.host.home(self.home)
        path = there.job(job.run_id)
        return SlurmTask(str(path), str(there.log(job.run_id)), str(stop_note(path)))
