"""Blocks as managed jobs of SkyPilot: one each, which it recovers when its machine is taken away.

Invariant: a task carries all that it needs but the engine, which is the image's, and the models,
which it downloads itself by their lock.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from kit.docker.choice import DockerChoice
from kit.engine.provision import bring_code
from kit.engine.setup import REFERENCE, require_locked
from kit.fleet.queue_fleet import Wanted, require_same_runtime
from kit.home import Home
from kit.hosts.host import Running
from kit.hosts.offline import OfflineHost, job_for
from kit.planning import prompt_files
from kit.run.launch import Say, build_harness, read_job
from kit.sky.cloud_host import ManagedJob, SkyHost, job_note
from kit.sky.task_document import Carried, document
from records import bundle, canonical
from records.decode import to_object
from records.digest import Digest
from records.errors import ProvisionError
from records.job import Job
from records.plan import Plan


class SkyQueue:
    """One cloud for one plan. `docker`: the image to run in; none for the reference server."""

    def __init__(
        self, home: Home, host: SkyHost, plan: Plan, docker: DockerChoice | None, say: Say
    ) -> None:
        self._home = home
        self._host = host
        self._plan = plan
        self._docker = docker
        self._say = say

    @property
    def period_s(self) -> float:
        """As often as the site wants bucket and jobs looked at."""
        return float(self._host.site.poll_s)

    def submit(self, wanted: Sequence[Wanted]) -> list[tuple[Job, Running]]:
        """A managed job each. SchedulerError, ProvisionError."""
        require_locked(self._home, self._plan)
        if self._plan.engine.name != REFERENCE and not (self._docker and self._host.site.site):
            raise ProvisionError(
                f"plan {self._plan.id} takes no image, or sky.toml does not say where its "
                "packages are",
                'site = ["/usr/local/lib/python3.12/dist-packages"], and a plan of the image lock',
            )
        archive, digest = build_harness(self._home)
        self._say(f"harness {digest}")
        return [self._launch(one, archive, digest) for one in wanted]

    def _launch(self, one: Wanted, archive: Path, digest: Digest) -> tuple[Job, Running]:
        there = self._host.home(self._home)
        job, path = self._job(one, digest)
        root = PurePosixPath(self._host.site.root)
        harness, inside = str(root / bundle.HARNESS), str(root / bundle.JOB)
        files = {harness: str(archive), inside: str(path)}
        for source, name in prompt_files.files(self._home, self._plan):
            files[f"{job.prompts_directory}/{name}"] = str(source)
        setup = self._models(root, job, files)
        name = f"kit-{self._plan.id}-b{one.block}-{secrets.token_hex(3)}"[:60]
        task = document(
            self._plan,
            name,
            self._host.site,
            self._host.part,
            Carried(files, inside, harness, setup),
            self._docker,
        )
        number = self._host.cloud.launch(task)
        note = job_note(there.jobs / f"{job.run_id}.pid")
        note.write_text(f"{number}\n", encoding="ascii")
        self._say(f"[block {one.block}] managed job {number} of SkyPilot: {name}")
        return job, ManagedJob(self._host, number)

    def _models(self, root: PurePosixPath, job: Job, files: dict[str, str]) -> tuple[str, ...]:
        """What downloads the models there by their lock, and adds what it needs to `files`."""
        if not any(model.files for model in job.models.values()):
            return ()
        staging = self._host.home(self._home).path / "provision"
        code = bring_code(self._home, self._host, self._plan, staging)
        request = staging / f"{code.name}.request.json"
        wanted = {
            "engine": "",
            "models": str(root / bundle.MODELS),
            "lock": self._plan.engine.lock,
            "wanted": list(self._plan.models),
        }
        request.write_text(json.dumps(wanted, sort_keys=True), encoding="utf-8")
        there = root / "provision"
        files[str(there)] = str(code)
        files[str(root / "models.request.json")] = str(request)
        asked, answer = str(root / "models.request.json"), str(root / "models.answer.json")
        return (job.engine.launcher[0], "-I", str(there), asked, answer)

    def _job(self, one: Wanted, digest: Digest) -> tuple[Job, Path]:
        """The job as it will be read there, kept beside its note here."""
        there, here = self._host.home(self._home), self._host.mirror(self._home)
        path = there.job(one.run_id)
        begun = read_job(path) if path.exists() else None
        python = PurePosixPath(self._docker.image.python if self._docker else "python3")
        site = tuple(PurePosixPath(text) for text in self._host.site.site)
        machine = OfflineHost(PurePosixPath(self._host.site.root), python, site, "", "")
        job = job_for(self._home, self._plan, one.run_id, machine, digest)
        job = replace(job, blocks=begun.blocks if begun else (one.block,))
        require_same_runtime(begun, job)
        for target in (path, here.job(one.run_id)):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(canonical.encode(to_object(job)))
        return job, path
