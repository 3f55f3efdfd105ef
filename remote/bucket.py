"""Run a job on a machine that may vanish with its disk: its records go to a bucket, boot by boot.

Invariant: a file is brought there only between measurements, once a boot has ended; a journal there
ends in a whole line and is a prefix of the one here. What was not brought yet is lost with the
machine: the boots in it are measured again, and were counted nowhere.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from records import canonical
from records.decode import from_object
from records.job import Job
from records.journal import EVENTS_NAME
from records.seal import SEAL_NAME
from remote import run

_PERIOD_S = 0.5
_BOOT_ENDED, _WINDOW_STARTED = b'"type":"boot.ended"', b'"type":"window.started"'


class Courier:
    """Between a run directory here, with its log, and a mounted bucket."""

    def __init__(self, directory: Path, log: Path, bucket: Path) -> None:
        self._directory = directory
        self._log = log
        self._there = bucket / "runs" / directory.name
        self._log_there = bucket / "logs" / log.name
        self._ended = threading.Event()
        self._brought = 0

    def restore(self) -> bool:
        """Take over what another machine left; whether there was anything."""
        if self._directory.exists() or not (self._there / EVENTS_NAME).is_file():
            return False
        self._directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(self._there, self._directory)
        if self._log_there.is_file():
            shutil.copyfile(self._log_there, self._log)
        return True

    def bring(self) -> None:
        """Everything that is new: attachments, then the journal's whole lines, the seal last."""
        for path in self._in_order():
            target = self._there / path.relative_to(self._directory)
            data = path.read_bytes()
            if path.name == EVENTS_NAME:
                data = data[: data.rfind(b"\n") + 1]
            if not target.is_file() or target.stat().st_size != len(data):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        if self._log.is_file():
            self._log_there.parent.mkdir(parents=True, exist_ok=True)
            self._log_there.write_bytes(self._log.read_bytes())

    def watch(self) -> None:
        """In the background, after each boot that ends."""
        threading.Thread(target=self._until_ended, daemon=True).start()

    def end(self) -> None:
        """Bring what is left, once and for all."""
        self._ended.set()
        self.bring()

    def _until_ended(self) -> None:
        while not self._ended.wait(_PERIOD_S):
            size = self._due()
            if size:
                self.bring()
                self._brought = size

    def _due(self) -> int:
        """The journal's size if a boot has ended since the last time and no window is open."""
        events = self._directory / EVENTS_NAME
        if not events.is_file() or events.stat().st_size <= self._brought:
            return 0
        with events.open("rb") as file:
            file.seek(self._brought)
            new = file.read()
        ended, window = new.rfind(_BOOT_ENDED), new.rfind(_WINDOW_STARTED)
        return self._brought + len(new) if ended > window else 0

    def _in_order(self) -> Iterator[Path]:
        files = [path for path in self._directory.rglob("*") if path.is_file()]
        last = (EVENTS_NAME, SEAL_NAME)
        yield from sorted(path for path in files if path.name not in last)
        yield from (self._directory / name for name in last if self._directory / name in files)


def main(job_path: str, bucket: str) -> int:
    """Carry out the job, beginning with what is in the bucket; the exit status of `run`."""
    job = from_object(Job, canonical.decode(Path(job_path).read_bytes()))
    directory = Path(job.run_directory)
    log = directory.parent.parent / "logs" / f"{job.run_id}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    courier = Courier(directory, log, Path(bucket))
    taken_over = courier.restore()
    print(f"run {job.run_id}: {'goes on' if taken_over else 'begins'}; log: {log}", flush=True)
    with log.open("ab") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    courier.watch()
    try:
        return run.main(job_path)
    finally:
        sys.stderr.flush()
        courier.end()
