"""A plan on a cluster under Slurm: one array job, a task and a run for each block.

Invariant: a block under way is attached to, never submitted a second time; the runs are those of
one plan, and what a task recorded before it was stopped is gone on with by whichever task is next.
"""

from __future__ import annotations

import datetime
import secrets
import time
from dataclasses import dataclass, replace
from pathlib import Path

from kit import engine_setup, prompt_files
from kit.campaign import Outcome, Share
from kit.docker.choice import DockerChoice
from kit.engine_setup import EngineSetup
from kit.fleet.address import spoken
from kit.fleet.carry_out import failed, tell
from kit.follow import Ending, Watch
from kit.follow_log import harness_error
from kit.home import Home
from kit.launch import (
    Say,
    bring_harness,
    build_harness,
    jobs,
    make_job,
    new_run_id,
    read_job,
    require_intact,
)
from kit.mirror import refresh_jobs, refresh_run
from kit.reproduce import Reproduced, bring_home
from kit.slurm import apptainer
from kit.slurm.cluster_host import SlurmHost, Task, stop_note, task_note
from kit.slurm.study import Part, parts
from kit.slurm.submission import gpus, sbatch_argv, script
from records import canonical
from records.decode import to_object
from records.digest import Digest
from records.errors import (
    BootsFailedError,
    InterruptedRunError,
    KitError,
    ProvisionError,
    SchedulerError,
)
from records.job import Job
from records.plan import Plan
from records.run_directory import RunDirectory
from records.slurm_array import SlurmArray, SlurmTask

# A shared file system may show a new file late: nfs(5), acdirmax, 60 s by default.
_SEAL_LATE_S = 120.0
# A controller that is restarted is away for a while; its jobs go on.
_AWAY_S = 1800.0


@dataclass(slots=True)
class _Live:
    """A block under way. `offset`: where its harness's log ended when this watch began."""

    share: Share
    job: Job
    task: Task
    watch: Watch
    offset: int
    ended_at: float = 0.0


class SlurmFleet:
    """One cluster and one plan. `resume`: go on with exactly this run. `docker`: the
    image, to run as a file of Apptainer."""

    def __init__(
        self,
        home: Home,
        host: SlurmHost,
        plan: Plan,
        say: Say,
        *,
        new: bool = False,
        blocks: tuple[int, ...] = (),
        resume: Job | None = None,
        docker: DockerChoice | None = None,
    ) -> None:
        self._home = home
        self._host = host
        self._plan = plan
        self._say = say
        self._new = new
        self._blocks = blocks or tuple(range(1, plan.blocks + 1))
        self._resume = resume
        self._docker = docker
        self._live: list[_Live] = []
        self._ended: list[Outcome] = []
        self._away_since = 0.0

    @property
    def period_s(self) -> float:
        """As often as the site wants its controller asked, and the shared storage looked at."""
        return float(self._host.site.poll_s)

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs under way, once submitted."""
        return tuple(live.job.run_id for live in self._live)

    def submit(self) -> None:
        """Attach to blocks under way; submit the others as one array job."""
        todo = []
        for part in self._parts():
            task = self._running(part.old) if part.old and not part.sealed else None
            if part.old is not None and part.sealed:
                self._say(f"[block {part.block}] run {part.old.run_id} is sealed already")
                self._ended.append(self._sealed(self._share(part), part.old))
            elif part.old is not None and task is not None:
                self._say(f"[block {part.block}] run {part.old.run_id} is under way: attaching")
                self._watch(self._share(part), part.old, task)
            else:
                todo.append(replace(part, old=None) if self._new else part)
        if todo:
            self._submit(todo)

    def poll(self) -> tuple[Outcome, ...]:
        """Say what the journals have gained; which tasks have ended."""
        for live in list(self._live):
            outcome = self._look(live)
            if outcome is not None:
                self._live.remove(live)
                self._ended.append(outcome)
        ended, self._ended = self._ended, []
        return tuple(ended)

    def is_under_way(self) -> bool:
        """Whether a task has not ended."""
        return bool(self._live)

    def cancel(self) -> None:
        """Signal every task that runs; take those that wait out of the queue."""
        for live in self._live:
            live.task.interrupt()

    def fetch(self, outcome: Outcome) -> Reproduced:
        """From the shared storage."""
        job = read_job(self._host.mirror(self._home).job(outcome.run_id))
        fetched = bring_home(self._home, self._host, job, self._say)
        ending = Ending(outcome.run_id, outcome.completed, outcome.failed)
        return Reproduced(ending, fetched, self._home.tables_for(job))

    def _parts(self) -> tuple[Part, ...]:
        if self._resume is not None:
            return (Part((self._resume.blocks or self._blocks)[0], self._resume),)
        here = refresh_jobs(self._host, self._home)
        found = list(jobs(here, self._say))
        return parts(self._plan, self._blocks, found, self._is_sealed)

    def _is_sealed(self, job: Job) -> bool:
        refresh_run(self._host, self._home, job.run_id)
        return RunDirectory(self._host.mirror(self._home).run(job.run_id)).is_sealed

    def _share(self, part: Part) -> Share:
        return Share(self._host.name, (part.block,), f"block {part.block}")

    def _running(self, job: Job) -> Task | None:
        there = self._host.home(self._home)
        found = self._host.attach(_note(there, job.run_id), str(there.job(job.run_id)))
        if found is not None and not isinstance(found, Task):
            raise SchedulerError(
                f"run {job.run_id} is carried out on the login node itself",
                "kit stop, without --fleet",
            )
        return found

    def _submit(self, todo: list[Part]) -> None:
        there, here = self._host.home(self._home), self._host.mirror(self._home)
        for directory in (here.runs, here.jobs, here.logs):
            directory.mkdir(parents=True, exist_ok=True)
        engine_setup.require_locked(self._home, self._plan)
        archive, digest = build_harness(self._home)
        harness = bring_harness(self._home, self._host, archive)
        self._say(f"harness {digest}")
        setup = self._engine(harness, digest)
        tasks, made = {}, []
        for part in todo:
            job = self._job(part, setup)
            prompt_files.carry(self._home, self._host, job)
            note = _note(there, job.run_id)
            tasks[str(part.block)] = SlurmTask(
                str(there.job(job.run_id)), str(there.log(job.run_id)), str(stop_note(note))
            )
            made.append((part, job))
        site, name = self._host.site, f"kit-{secrets.token_hex(4)}"
        place = there.path / "slurm"
        path = place / f"{name}.json"
        array = SlurmArray(tasks, site.scratch, site.notice_s)
        self._host.write(path, canonical.encode(to_object(array)))
        self._host.run(("rm", "-f", "--", *(task.stop for task in tasks.values())))
        number = self._host.scheduler.submit(
            sbatch_argv(site, self._plan, (part.block for part in todo), name, place),
            script(self._host.python, harness, path),
        )
        what = f"{gpus(self._plan)} GPU each" if gpus(self._plan) else "no GPU"
        self._say(
            f"Slurm job {number}: {len(todo)} tasks, a node and {what}; it goes on if this ends"
        )
        for part, job in made:
            task = f"{number}_{part.block}"
            note = _note(there, job.run_id)
            self._host.write(task_note(note), f"{task}\n".encode())
            self._say(f"[block {part.block}] run {job.run_id}")
            self._watch(self._share(part), job, Task(self._host, task, stop_note(note)))

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

    def _job(self, part: Part, setup: EngineSetup) -> Job:
        there, here = self._host.home(self._home), self._host.mirror(self._home)
        if part.old is not None:
            require_intact(RunDirectory(here.run(part.old.run_id)).events)
        now = datetime.datetime.now(datetime.timezone.utc)
        run_id = part.old.run_id if part.old else new_run_id(self._plan, now)
        job = make_job(self._home, self._host, self._plan, run_id, setup, (part.block,))
        words = (p.replace(apptainer.SCRATCH_WORD, job.scratch) for p in job.engine.launcher)
        job = replace(job, engine=replace(job.engine, launcher=tuple(words)))
        if part.old is not None:
            job = replace(job, blocks=part.old.blocks)
        path = here.job(run_id)
        path.write_bytes(canonical.encode(to_object(job)))
        if there != here:
            self._host.put(path, there.job(run_id))
        return job

    def _watch(self, share: Share, job: Job, task: Task) -> None:
        log = self._host.mirror(self._home).log(job.run_id)
        offset = log.stat().st_size if log.exists() else 0
        watch = Watch.begin(self._home, self._host, job.run_id)
        self._live.append(_Live(share, job, task, watch, offset))

    def _look(self, live: _Live) -> Outcome | None:
        try:
            # The status first: what the harness wrote before it ended is then surely seen below.
            status = live.task.exit_status()
            for line in live.watch.lines():
                self._say(f"[{live.share.label}] {line}")
        except SchedulerError as error:
            self._bear(error)
            return None
        except KitError as error:
            tell(live.share, error, self._say)
            return failed(live.share, error)
        self._away_since = 0.0
        if RunDirectory(self._host.mirror(self._home).run(live.job.run_id)).is_sealed:
            return self._sealed(live.share, live.job)
        if status is None:
            return None
        live.ended_at = live.ended_at or time.monotonic()
        late = time.monotonic() - live.ended_at < _SEAL_LATE_S
        if status in (0, BootsFailedError.exit_code) and late and live.watch.state.ended:
            return None
        cause = self._cause(live, status)
        tell(live.share, cause, self._say)
        return failed(live.share, cause)

    def _bear(self, error: SchedulerError) -> None:
        """A controller that does not answer for a while stops nothing."""
        if not self._away_since:
            self._away_since = time.monotonic()
            self._say(f"{error.message}; its jobs go on, asking again")
        if time.monotonic() - self._away_since > _AWAY_S:
            raise error

    def _sealed(self, share: Share, job: Job) -> Outcome:
        run = Watch.begin(self._home, self._host, job.run_id).state
        status = BootsFailedError.exit_code if run.failed else 0
        return Outcome(share, status, "", job.run_id, run.done - run.failed, run.failed)

    def _cause(self, live: _Live, status: int) -> KitError:
        run_id, state = live.job.run_id, live.watch.state
        resumes = f"kit reproduce --run {run_id} {spoken(self._host.name)}"
        progress = f"{state.done} of {state.total} boots done" if state.plan else "no boot begun"
        what = f"run {run_id}, {progress}"
        if status == InterruptedRunError.exit_code:
            return InterruptedRunError(f"run {run_id} was interrupted, {progress}", resumes)
        log = self._host.mirror(self._home).log(run_id)
        text = log.read_bytes()[live.offset :].decode("utf-8", "replace") if log.exists() else ""
        if not text:
            place = self._host.home(self._home).path
            return SchedulerError(
                f"{what}: its task ended with status {status} and left no log",
                f"do the nodes share {place} with the login node? Slurm's own output: "
                f"{place / 'slurm'}",
            )
        return harness_error(status, text, what, str(log), resumes)


def _note(there: Home, run_id: str) -> Path:
    return there.jobs / f"{run_id}.pid"
