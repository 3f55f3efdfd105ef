"""A plan on machines that a scheduler gives: a run for each block, through a queue.

Invariant: a block under way is attached to, never submitted a second time, also where two kits ask
at once; the runs are those of one plan, and what a task recorded before it was stopped is gone on
with by whichever task is next.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kit.fleet.address import spoken
from kit.fleet.carry_out import failed, tell
from kit.fleet.sole_submitter import sole_submitter
from kit.fleet.study import Part, parts
from kit.home import Home
from kit.hosts.host import Host, Running
from kit.run.campaign import Outcome, Share
from kit.run.follow import Ending, Watch
from kit.run.follow_log import harness_error
from kit.run.launch import (
    Say,
    jobs,
    new_run_id,
    read_job,
    require_intact,
    running_harness,
)
from kit.run.mirror import refresh_jobs, refresh_run
from kit.run.reproduce import Reproduced, bring_home
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

# A shared file system may show a new file late: nfs(5), acdirmax, 60 s by default.
_SEAL_LATE_S = 120.0
# A controller that is restarted is away for a while; its jobs go on.
_AWAY_S = 1800.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A block to submit: the run it is, new or `begun` before."""

    block: int
    run_id: str
    begun: Job | None = None

    @property
    def blocks(self) -> tuple[int, ...]:
        """What the run carries out: a run of several blocks is gone on with as it was begun."""
        return self.begun.blocks if self.begun else (self.block,)


class Queue(Protocol):
    """What takes blocks in: a cluster's scheduler, or a cloud's."""

    @property
    def period_s(self) -> float:
        """How long to wait between two looks."""
        ...

    def submit(self, wanted: Sequence[Wanted]) -> Sequence[tuple[Job, Running]]:
        """Hand these blocks over, all at once; their jobs, and how to watch them."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """For the block: no other kit decides what is left of the plan, wherever it runs."""
        ...


@runtime_checkable
class Explained(Protocol):
    """A task whose scheduler says why it waits, and as what it ended it."""

    @property
    def waits_for(self) -> str:
        """The reason; "" where it does not wait."""
        ...

    @property
    def ended_as(self) -> str:
        """The scheduler's word; "" where the task runs, or came to an end of its own."""
        ...


@dataclass(slots=True)
class _Live:
    """A block under way. `offset`: where its harness's log ended when this watch began."""

    share: Share
    job: Job
    running: Running
    watch: Watch
    offset: int
    ended_at: float = 0.0


class QueueFleet:
    """One queue and one plan. `host`: the files; `resume`: go on with exactly this run."""

    def __init__(
        self,
        home: Home,
        host: Host,
        plan: Plan,
        queue: Queue,
        say: Say,
        *,
        new: bool = False,
        blocks: tuple[int, ...] = (),
        resume: Job | None = None,
    ) -> None:
        self._home = home
        self._host = host
        self._plan = plan
        self._queue = queue
        self._say = say
        self._new = new
        self._blocks = blocks or tuple(range(1, plan.blocks + 1))
        self._resume = resume
        self._live: list[_Live] = []
        self._ended: list[Outcome] = []
        self._away_since = 0.0
        self._waits: dict[str, str] = {}

    @property
    def period_s(self) -> float:
        """The queue's."""
        return self._queue.period_s

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs under way, once submitted."""
        return tuple(live.job.run_id for live in self._live)

    def submit(self) -> None:
        """Attach to blocks under way; submit the others at once."""
        lock = self._host.mirror(self._home).jobs / f"{self._plan.digest.hex[:16]}.lock"
        # First among the kits of this directory, whose lock dies with them; then among all.
        with sole_submitter(lock, self._say), self._queue.turn():
            todo = self._not_under_way()
            if todo:
                self._submit(todo)

    def _not_under_way(self) -> list[Part]:
        """What is left to submit, once blocks under way or sealed are seen to."""
        todo: list[Part] = []
        for part in self._parts():
            label = f"[block {part.block}]"
            if part.old is None or (self._new and part.sealed):
                todo.append(Part(part.block))
                continue
            if part.sealed:
                self._say(f"{label} run {part.old.run_id} is sealed already")
                self._ended.append(self._sealed(self._share(part.block), part.old))
                continue
            running = running_harness(self._home, self._host, part.old.run_id)
            if running is not None:
                self._say(f"{label} run {part.old.run_id} is under way: attaching")
                self._watch(part.block, part.old, running)
            else:
                todo.append(Part(part.block) if self._new else part)
        return todo

    def poll(self) -> tuple[Outcome, ...]:
        """Say what the journals have gained; which tasks have ended."""
        try:
            for live in list(self._live):
                outcome = self._look(live)
                if outcome is not None:
                    self._live.remove(live)
                    self._ended.append(outcome)
        except SchedulerError as error:  # who does not answer for one task answers for none
            self._bear(error)
        ended, self._ended = self._ended, []
        if not self._away_since:
            self._explain()
        return tuple(ended)

    def is_under_way(self) -> bool:
        """Whether a task has not ended."""
        return bool(self._live)

    def cancel(self) -> None:
        """Stop every task that runs in order; take those that wait out of the queue.

        SchedulerError, once all were asked, where some could not be told.
        """
        errors = []
        for live in self._live:
            try:
                live.running.interrupt()
            except SchedulerError as error:
                errors.append(error)
        if errors:
            raise SchedulerError(
                f"{len(errors)} of {len(self._live)} tasks could not be told to stop and go on: "
                f"{errors[0].message}",
                f"once it answers: kit stop --all {spoken(self._host.name)}",
            )

    def fetch(self, outcome: Outcome) -> Reproduced:
        """From where the tasks left them."""
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

    def _share(self, block: int) -> Share:
        return Share(self._host.name, (block,), f"block {block}")

    def _submit(self, todo: Sequence[Part]) -> None:
        here = self._host.mirror(self._home)
        for directory in (here.runs, here.jobs, here.logs):
            directory.mkdir(parents=True, exist_ok=True)
        wanted = []
        for part in todo:
            if part.old is not None:
                require_intact(RunDirectory(here.run(part.old.run_id)).events)
            now = datetime.datetime.now(datetime.timezone.utc)
            run_id = part.old.run_id if part.old else new_run_id(self._plan, now)
            wanted.append(Wanted(part.block, run_id, part.old))
        try:
            submitted = self._queue.submit(wanted)
        except KeyboardInterrupt:
            where = spoken(self._host.name)
            self._say(
                "interrupted while submitting: what the queue took in goes on; the same command "
                f"attaches to it, kit stop --all {where} ends it"
            )
            raise
        for part, (job, running) in zip(todo, submitted, strict=True):
            self._say(f"[block {part.block}] run {job.run_id}")
            self._watch(part.block, job, running)

    def _watch(self, block: int, job: Job, running: Running) -> None:
        log = self._host.mirror(self._home).log(job.run_id)
        offset = log.stat().st_size if log.exists() else 0
        watch = Watch.begin(self._home, self._host, job.run_id)
        self._live.append(_Live(self._share(block), job, running, watch, offset))

    def _look(self, live: _Live) -> Outcome | None:
        try:
            # The status first: what the harness wrote before it ended is then surely seen below.
            status = live.running.exit_status()
            task: object = live.running
            ended_as = task.ended_as if isinstance(task, Explained) else ""
            for line in live.watch.lines():
                self._say(f"[{live.share.label}] {line}")
        except SchedulerError:
            raise
        except KitError as error:
            tell(live.share, error, self._say)
            return failed(live.share, error, live.job.run_id)
        self._away_since = 0.0
        if RunDirectory(self._host.mirror(self._home).run(live.job.run_id)).is_sealed:
            return self._sealed(live.share, live.job)
        if status is None:
            live.ended_at = 0.0
            return None
        if not live.ended_at:
            # Looked at once more: a task that is being queued again shows an end for a moment.
            live.ended_at = time.monotonic()
            return None
        late = time.monotonic() - live.ended_at < _SEAL_LATE_S
        if status in (0, BootsFailedError.exit_code) and late and live.watch.state.ended:
            return None
        cause = self._cause(live, status, ended_as)
        tell(live.share, cause, self._say)
        return failed(live.share, cause, live.job.run_id)

    def _explain(self) -> None:
        """Say why blocks have no machine: one line a reason, whenever that has changed."""
        reasons: dict[str, list[str]] = {}
        try:
            for live in self._live:
                task: object = live.running
                reason = task.waits_for if isinstance(task, Explained) else ""
                if reason not in ("", "None"):
                    reasons.setdefault(reason, []).append(live.share.listed)
        except SchedulerError:  # told by the next look
            return
        waits = {reason: ", ".join(blocks) for reason, blocks in reasons.items()}
        for reason, blocks in waits.items():
            if reason not in self._waits:
                self._say(f"in the queue: block {blocks}: {reason} (Ctrl-C takes out what waits)")
        self._waits = waits

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

    def _cause(self, live: _Live, status: int, ended_as: str) -> KitError:
        run_id, state = live.job.run_id, live.watch.state
        resumes = f"kit reproduce --run {run_id} {spoken(self._host.name)}"
        progress = state.progress
        what = f"run {run_id}, {progress}"
        if status == InterruptedRunError.exit_code:
            by = f" ({ended_as})" if ended_as else ""
            return InterruptedRunError(f"run {run_id} was interrupted{by}, {progress}", resumes)
        log = self._host.mirror(self._home).log(run_id)
        text = log.read_bytes()[live.offset :].decode("utf-8", "replace") if log.exists() else ""
        if not text and status == 0:
            return InterruptedRunError(f"{what}: it was taken out of the queue", resumes)
        if not text:
            place = self._host.home(self._home).path
            return SchedulerError(
                f"{what}: its task ended with status {status} and left no log",
                f"a cluster's nodes must share {place} with the login node; Slurm's own output "
                f"stands in {place / 'slurm'}",
            )
        return harness_error(status, text, what, str(log), resumes)


def require_same_runtime(begun: Job | None, job: Job) -> None:
    """What was begun in one runtime is not one measurement with what goes on in another."""
    if begun is not None and begun.engine.runtime != job.engine.runtime:
        raise ProvisionError(
            f"run {job.run_id} was begun in the runtime {begun.engine.runtime}, not "
            f"{job.engine.runtime}",
            "ask for the same --runtime, or begin anew with --new",
        )
