"""Sealed runs of a fleet for the benchmark: one plan, and a share of its blocks for each host.

Invariant: synthetic, and said so in every record; only for directories that a benchmark made.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kit.home import Home
from records import canonical
from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME, Checkpoint, Leaf
from records.decode import to_object
from records.digest import Digest
from records.job import EngineOnHost, Job
from records.plan import Plan
from records.run_directory import RunDirectory
from tests.sealed_run import Shape, make_run, small_plan

# Of two arms: twelve boots a host.
BLOCKS_A_HOST = 6


def fleet_plan(hosts: int) -> Plan:
    """Two arms, six blocks a host."""
    return replace(small_plan(BLOCKS_A_HOST * hosts), id="fleet")


def share(host: int) -> tuple[int, ...]:
    """The blocks of a host, counting from 0."""
    first = BLOCKS_A_HOST * host + 1
    return tuple(range(first, first + BLOCKS_A_HOST))


def make_fleet(runs: Path, hosts: int) -> list[RunDirectory]:
    """One sealed run a host below `runs`, each host some percent faster or slower than the next."""
    plan = fleet_plan(hosts)
    made = []
    with _unsynced():
        for host in range(hosts):
            name = f"20261130T120000Z-fleet-{host:06d}"
            speed = 1_000_000 + zlib.crc32(name.encode()) % 60_000 - 30_000
            shape = Shape(
                synthetic=True, host=f"host-{host:06d}", blocks=share(host), scale_ppm=speed
            )
            made.append(make_run(runs / name, plan, shape))
    return made


def write_jobs(home: Home, hosts: int) -> None:
    """The job files that stand beside such runs where they were made."""
    plan, nothing = fleet_plan(hosts), Digest.of(b"")
    home.jobs.mkdir(parents=True)
    for host in range(hosts):
        run = home.run(f"20261130T120000Z-fleet-{host:06d}")
        engine = EngineOnHost("reference", ("none",), (), {}, "", nothing)
        job = Job(run.name, plan, engine, {}, str(run), str(home.path), "", blocks=share(host))
        home.job(job.run_id).write_bytes(canonical.encode(to_object(job)))


def list_runs(data: Path, runs: list[RunDirectory]) -> None:
    """RUNS and CHECKPOINT over these runs, at once."""
    leaves = [Leaf(run.path.name, run.seal_digest) for run in runs]
    (data / RUNS_NAME).write_text("".join(f"{leaf}\n" for leaf in leaves), "ascii")
    (data / CHECKPOINT_NAME).write_text(str(Checkpoint.of(leaves)), "ascii")


@contextmanager
def _unsynced() -> Iterator[None]:
    """Making the runs is not what is measured, and what is made is thrown away."""
    real, os.fsync = os.fsync, lambda _: None
    try:
        yield
    finally:
        os.fsync = real
