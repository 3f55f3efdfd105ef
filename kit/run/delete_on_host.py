"""Delete a run on a host, when a person asked for it and every byte of its records is here.

Invariant: nothing is deleted unless the run here is sealed and whole, the host's files were hashed
by the host just before and are the same, and nobody writes the run; the job goes first, so that
what a dropped line leaves behind can never be taken for a run that has not begun.
"""

from __future__ import annotations

import re
from pathlib import Path

from kit.home import Home
from kit.hosts.host import Host
from kit.run.fetch import Fetched
from kit.run.launch import is_under_way
from records.digest import Digest
from records.errors import ChainError, KitError, RunBusyError, UnknownRunError
from records.journal import EVENTS_NAME
from records.run_directory import RunDirectory
from records.seal import SEAL_NAME

# What a run id may be here: it becomes part of a path that is deleted.
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,}")


def delete_there(home: Home, host: Host, fetched: Fetched) -> None:
    """Delete run, job, log and scratch of what was just fetched.

    UnknownRunError: not sealed. ChainError: here or there are other bytes. RunBusyError: it is
    being written. KitError: the host could not delete it.
    """
    run_id, there = fetched.run_id, host.home(home)
    if not fetched.sealed or not _RUN_ID.fullmatch(run_id):
        raise UnknownRunError(f"run {run_id} is not sealed: nothing is deleted", "kit status")
    if is_under_way(home, host, run_id):
        raise RunBusyError(f"run {run_id} is still being written: nothing is deleted", "kit status")
    _require_same(host, there.run(run_id), RunDirectory(fetched.directory))
    job = there.job(run_id)
    ends = ("pid", "pid.status", "pid.lock", "slurm", "stop")
    notes = [f"{run_id}.{end}" for end in ends]
    _remove(host, [job, *(job.with_name(name) for name in notes)])
    places = (there.run(run_id), there.scratch(run_id), there.container(run_id), there.log(run_id))
    _remove(host, list(places))


def _require_same(host: Host, there: Path, here: RunDirectory) -> None:
    """ChainError unless the records here are whole and the host's own hashes are theirs."""
    for wrong in here.verify_files():
        raise wrong
    here.verify_chain()
    seal = here.seal()
    want = {name: one.digest for name, one in seal.files.items()}
    for name in (EVENTS_NAME, SEAL_NAME):
        want[name] = Digest.of((here.path / name).read_bytes())
    done = host.run(("sha256sum", "--", *(str(there / name) for name in want)), timeout_s=600)
    got = [line.lstrip("\\")[:64] for line in done.stdout.splitlines()]
    for (name, digest), found in zip(want.items(), [*got, *[""] * len(want)], strict=False):
        if found != digest.hex:
            raise ChainError(
                f"{there / name} on {host.name}: got sha256:{found or 'nothing'}, want {digest}, "
                "which is here; nothing is deleted",
                "kit fetch-records, without --delete-remote, says what differs",
            )


def _remove(host: Host, paths: list[Path]) -> None:
    done = host.run(("rm", "-rf", "--", *map(str, paths)), timeout_s=600)
    if done.status != 0:
        raise KitError(
            f"{host.name}: not everything could be deleted: {done.stderr.strip()[:300]}",
            "delete it by hand; the records are here",
        )
