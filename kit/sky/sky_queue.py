"""Blocks as managed jobs of SkyPilot: one each, which it recovers when its machine is taken away.

Invariant: a task carries all that it needs but the engine, which is the image's, and the models,
which it downloads itself by their lock. Its note stands before it is launched, by the job's name,
so that any later look finds the job wherever this one ended.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from kit.docker.choice import DockerChoice
from kit.engine.provision import bring_code
from kit.engine.setup import REFERENCE, require_locked
from kit.fleet.address import spoken
from kit.fleet.queue_fleet import Wanted, require_same_runtime
from kit.home import Home
from kit.hosts.host import Running
from kit.hosts.offline import OfflineHost, job_for
from kit.planning import prompt_files
from kit.run.launch import Say, build_harness
from kit.sky.cloud_host import ManagedJob, SkyHost, job_note
from kit.sky.task_document import Carried, document
from records import bundle, canonical
from records.decode import to_object
from records.digest import Digest
from records.errors import ProvisionError, SchedulerError
from records.job import Job
from records.plan import Plan


@dataclass(frozen=True, slots=True)
class SkyQueue:
    """One cloud for one plan. `docker`: the image to run in; none for the reference server."""

    home: Home
    host: SkyHost
    plan: Plan
    docker: DockerChoice | None
    say: Say

    @property
    def period_s(self) -> float:
        """As often as the site wants bucket and jobs looked at."""
        return float(self.host.site.poll_s)

    def turn(self) -> AbstractContextManager[None]:
        """Nothing: jobs stand in the directory of this machine, and no other sees its own there."""
        return nullcontext()

    def submit(self, wanted: Sequence[Wanted]) -> list[tuple[Job, Running]]:
        """A managed job each. SchedulerError, ProvisionError."""
        require_locked(self.home, self.plan)
        if self.plan.engine.name != REFERENCE and not (self.docker and self.host.site.site):
            raise ProvisionError(
                f"plan {self.plan.id} takes no image, or sky.toml does not say where its "
                "packages are",
                'site = ["/usr/local/lib/python3.12/dist-packages"], and a plan of the image lock',
            )
        archive, digest = build_harness(self.home)
        self.say(f"harness {digest}")
        launched: list[tuple[Job, Running]] = []
        for one in wanted:
            try:
                launched.append(self._launch(one, archive, digest))
            except SchedulerError as error:
                if not launched:
                    raise
                raise SchedulerError(
                    f"{error.message}; {len(launched)} of {len(wanted)} blocks were launched, and "
                    "go on",
                    f"the same command attaches to them; kit stop --all {spoken(self.host.name)} "
                    "ends them",
                ) from error
        return launched

    def _launch(self, one: Wanted, archive: Path, digest: Digest) -> tuple[Job, Running]:
        there = self.host.home(self.home)
        job, path = self._job(one, digest)
        root = PurePosixPath(self.host.site.root)
        harness, inside = str(root / bundle.HARNESS), str(root / bundle.JOB)
        files = {harness: str(archive), inside: str(path)}
        for source, name in prompt_files.files(self.home, self.plan):
            files[f"{job.prompts_directory}/{name}"] = str(source)
        setup = self._models(root, job, files)
        name = f"kit-{self.plan.id}-b{one.block}-{secrets.token_hex(3)}"
        task = document(
            self.plan,
            name,
            self.host.site,
            self.host.part,
            Carried(files, inside, harness, setup),
            self.docker,
        )
        job_note(there.job(job.run_id)).write_text(f"{name}\n", encoding="ascii")
        number = self.host.cloud.launch(task)
        self.say(f"[block {one.block}] managed job {number} of SkyPilot: {name}")
        return job, ManagedJob(self.host, number)

    def _models(self, root: PurePosixPath, job: Job, files: dict[str, str]) -> tuple[str, ...]:
        """What downloads the models there by their lock, and adds what it needs to `files`."""
        if not any(model.files for model in job.models.values()):
            return ()
        staging = self.host.home(self.home).path / "provision"
        code = bring_code(self.home, self.host, self.plan, staging)
        request = staging / f"{code.name}.request.json"
        wanted = {
            "engine": "",
            "models": str(root / bundle.MODELS),
            "lock": self.plan.engine.lock,
            "wanted": list(self.plan.models),
        }
        request.write_text(json.dumps(wanted, sort_keys=True), encoding="utf-8")
        there = root / "provision"
        files[str(there)] = str(code)
        files[str(root / "models.request.json")] = str(request)
        asked, answer = str(root / "models.request.json"), str(root / "models.answer.json")
        return (job.engine.launcher[0], "-I", str(there), asked, answer)

    def _job(self, one: Wanted, digest: Digest) -> tuple[Job, Path]:
        """The job as it will be read there, kept beside its note here."""
        there, here = self.host.home(self.home), self.host.mirror(self.home)
        path = there.job(one.run_id)
        python = PurePosixPath(self.docker.image.python if self.docker else "python3")
        site = tuple(PurePosixPath(text) for text in self.host.site.site)
        machine = OfflineHost(PurePosixPath(self.host.site.root), python, site, "", "")
        job = job_for(self.home, self.plan, one.run_id, machine, digest)
        job = replace(job, blocks=one.blocks)
        require_same_runtime(one.begun, job)
        for target in (path, here.job(one.run_id)):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(canonical.encode(to_object(job)))
        return job, path
