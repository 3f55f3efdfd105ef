"""Keep the container of one run: create or adopt it, answer for it, pass signals on, clear it away.

Invariant: runs on the host, outside the container, as the process that stands for the run there;
the container is one of this run's own name, made from the request as it was given.
"""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from records import canonical
from records.container_job import ContainerJob
from records.decode import from_object
from records.errors import DockerError, ImageMismatchError, InterruptedRunError
from records.job import Job
from remote import spot_notice
from remote.container import attestation
from remote.container.docker_api import DaemonAwayError, DockerApi
from remote.container.facts import binding_facts
from remote.host_lock import sole_run_of

# Rarely: what the daemon does for us it does on the measured host.
_LOOK_S = 2.0
_TICK_S = 0.2
_AWAY_S = 180.0
# dockerd gives all containers 15 s to end before it ends itself (its --shutdown-timeout).
_LEAVES_S = 16.0
_RESTARTS = 3


def main(container_path: str, job_path: str) -> int:
    """Keep the container that this file describes; the exit status of the harness in it.

    `job_path`: the job of the run. RunBusyError: another run is being measured on this host.
    """
    job = from_object(ContainerJob, canonical.decode(Path(container_path).read_bytes()))
    keeper = Keeper(job, DockerApi(job.socket))
    signal.signal(signal.SIGTERM, keeper.stop)
    signal.signal(signal.SIGINT, keeper.stop)
    # In the container there is no network that a cloud's metadata service could be asked over.
    explain = partial(attestation.tell_reason, Path(job.exchange))
    spot_notice.watch(explain, spot_notice.cloud())
    with sole_run_of(from_object(Job, canonical.decode(Path(job_path).read_bytes()))):
        return keeper.keep()


@dataclass(slots=True)
class Keeper:
    """One container from here to its end. `stopping`: somebody asked for that end."""

    job: ContainerJob
    api: DockerApi
    stopping: bool = False
    _told: bool = False
    _since: str = ""
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """Ask the harness to mark its boot and end."""
        self.stopping = True

    def keep(self) -> int:
        """From creation to removal. After a restart of the daemon the container goes on."""
        container = self._adopt() or self._create()
        restarts = 0
        while True:
            status = self._until_exit(container)
            if Path(self.job.seal).exists() or self.stopping or status is not None:
                break
            if restarts == _RESTARTS:
                raise DockerError(f"the daemon ended the container {restarts} times", "kit doctor")
            restarts += 1
            self._say("the Docker daemon was restarted and ended the container; starting it again")
            attestation.clear(Path(self.job.exchange))
            self._wait_for_daemon()
            self.api.start(container)
        state = (self.api.container(container) or {}).get("State") or {}
        self.api.remove(container)
        return int(state.get("ExitCode", 1))

    def attest(self) -> dict[str, Any]:
        """What the container is now, or in what it differs from the lock."""
        container = self.api.container(self.job.name)
        if container is None:
            return {"problem": f"container {self.job.name} is gone"}
        image = self.api.image(str(container["Image"]))
        wrong = list(self.job.image.differences(image, container))
        if wrong:
            return {"problem": "; ".join(wrong)}
        version = self.api.version()
        facts = binding_facts(self.job.image, image, container, version, self.job.registry)
        return {"digest": str(self.job.image.index), "facts": facts}

    def _adopt(self) -> str | None:
        """The container of this run if it is still running; a dead one makes room."""
        found = self.api.container(self.job.name)
        if found is None:
            return None
        labels = found["Config"].get("Labels") or {}
        if found["State"]["Running"] and self.job.request["Labels"].items() <= labels.items():
            self._say("the container of this run is running: keeping it")
            return str(found["Id"])
        self.api.remove(str(found["Id"]))
        return None

    def _create(self) -> str:
        attestation.clear(Path(self.job.exchange))
        image = self.api.image(str(self.job.request["Image"]))
        wrong = list(self.job.image.differences(image))
        if wrong:
            raise ImageMismatchError(
                f"image on this host: {'; '.join(wrong)}", "kit images verify HOST"
            )
        container = self.api.create(self.job.name, self.job.request)
        try:
            self.api.start(container)
        except DockerError:
            self.api.remove(container)
            raise
        return container

    def _until_exit(self, container: str) -> int | None:
        """The harness's status; None where it ended because the daemon did."""
        away_since, was_away, looked = 0.0, False, 0.0
        while True:
            time.sleep(_TICK_S)
            now = time.monotonic()
            try:
                self._answer_and_signal(container)
                if now - looked < _LOOK_S and not self.stopping:
                    continue
                looked = now
                state = self._look(container)
            except DaemonAwayError:
                away_since, was_away = away_since or now, True
                if now - away_since > _AWAY_S:
                    raise
                continue
            away_since = 0.0
            if state["Running"]:
                continue
            settled = self.stopping or Path(self.job.seal).exists() or not _looks_ended(state)
            if not settled and (was_away or self._daemon_goes_away(container)):
                return None
            return int(state["ExitCode"])

    def _answer_and_signal(self, container: str) -> None:
        for phase in attestation.answer_all(Path(self.job.exchange), self.attest):
            self._say(f"told the harness what it runs in ({phase})")
        if self.stopping and not self._told:
            try:
                self.api.signal(container, "SIGTERM")
            except DaemonAwayError:  # told again once the daemon is back
                raise
            except DockerError as error:  # it had ended by itself a moment before
                self._say(error.message)
            self._told = True

    def _look(self, container: str) -> dict[str, Any]:
        """The container's state, after what it printed was passed on. DockerError: it is gone."""
        state = (self.api.container(container) or {}).get("State")
        if state is None:
            raise DockerError(f"container {self.job.name} was removed by somebody", "kit logs")
        self._pass_on_output(container)
        found: dict[str, Any] = state
        return found

    def _wait_for_daemon(self) -> None:
        """Until it answers. DaemonAwayError after a few minutes."""
        began = time.monotonic()
        while True:
            try:
                self.api.version()
            except DaemonAwayError:
                if time.monotonic() - began > _AWAY_S:
                    raise
                time.sleep(_TICK_S)
            else:
                return

    def _daemon_goes_away(self, container: str) -> bool:
        """Whether it was the daemon that ended the container: it ends them first, then itself.

        It may be back already; then it no longer knows that it started this container.
        """
        deadline_s = time.monotonic() + _LEAVES_S
        while time.monotonic() < deadline_s:
            try:
                if not self.api.remembers_start(container):
                    return True
            except DaemonAwayError:
                return True
            time.sleep(_TICK_S)
        return False

    def _pass_on_output(self, container: str) -> None:
        """Print what the harness printed since the last time; the log of the run is our output."""
        for stamp, line in self.api.output(container, self._since):
            if (stamp, line) in self._seen:
                continue
            if stamp != self._since:
                self._seen.clear()
            self._since = stamp
            self._seen.add((stamp, line))
            print(line, file=sys.stderr, flush=True)

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


def _looks_ended(state: dict[str, Any]) -> bool:
    """Whether this status is that of a harness which something outside made end.

    52: it took SIGTERM and marked its boot; 137, 143: killed; 255: the daemon lost sight of it.
    """
    return int(state["ExitCode"]) in (InterruptedRunError.exit_code, 137, 143, 255)
