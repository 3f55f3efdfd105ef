"""What it costs to bring home, audit and analyse the runs of many hosts, and how that grows.

`python -m tests.bench.bench_fleet [--hosts 10,100,300] [--disk DIR] [--only CASE,CASE]` makes a
synthetic sealed run of twelve boots for each host, all of one plan, prints a table and writes
build/bench-fleet.json. Seconds are of processor time, of all processes together, so that a busy
machine tells the same; the peak is that of the largest process. Where the cost of a run stays the
same from size to size, the whole is linear; the last column is the growth of time over that of
runs, as an exponent from the size before: 1 is linear, 2 quadratic.

fetch: every run from one host's kit directory, as `kit fetch-records` brings it; refetch: the
same when all of it is home. list: RUNS and CHECKPOINT alone, run by run. audit, again: `kit audit`,
and with --incremental. analyze: `kit analyze` of the directory. compare: `kit compare` of one half
with the other.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from audit.repository import RepositoryView
from audit.runner import audit
from audit.trust import Context
from kit.home import Home
from kit.hosts.local import LocalHost
from kit.main import main as kit
from kit.run.fetch import already_home, fetch_run
from kit.run.mirror import refresh_all
from records.checkpoint import Leaf, add_run, read_runs
from records.run_directory import RunDirectory, runs_in
from tests.bench.bench_audit import _peak_bytes
from tests.bench.fleet_runs import list_runs, make_fleet, write_jobs

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "bench-fleet.json"
SIZES = "10,100,300"
_MEMORY = Path("/dev/shm")
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """One case at one size. `exponent`: of time against the size before; None at the first."""

    case: str
    hosts: int
    boots: int
    cpu_s: float
    wall_s: float
    ms_a_run: float
    peak_mb: float
    exponent: float | None


class _Cluster(LocalHost):
    """A host whose kit directory is another one of this machine, and which is mirrored here."""

    name = "cluster"

    def __init__(self, top: Path) -> None:
        self._top = top

    def home(self, here: Home) -> Home:
        return _home(self._top / "there")

    def mirror(self, here: Home) -> Home:
        return _home(self._top / "mirror")


def _home(path: Path) -> Home:
    return Home(ROOT, path, path / "data", path / "out")


def fetch(top: Path) -> None:
    """All that stands on the cluster."""
    host, here = _Cluster(top), _home(top / "here")
    seen = refresh_all(host, here)
    for run in runs_in(host.home(here).runs):
        assert fetch_run(host, run.path, here.data, seen).listed


def refetch(top: Path) -> None:
    """The same once more, when all of it is home."""
    host, here = _Cluster(top), _home(top / "here")
    seen = refresh_all(host, here)
    listed = {leaf.run_id: leaf.seal for leaf in read_runs(here.data)}
    for run in runs_in(seen.runs):
        assert already_home(run, RunDirectory(here.data / run.path.name), listed)


def list_(top: Path) -> None:
    """RUNS and CHECKPOINT of a directory that holds neither yet."""
    empty = top / "listed"
    empty.mkdir()
    for run in runs_in(_data(top)):
        add_run(empty, Leaf(run.path.name, run.seal_digest))


def audit_(top: Path) -> None:
    """As the verb; its keys are kept for the incremental one."""
    audit(top, _data(top), processes=os.cpu_count() or 1)


def again(top: Path) -> None:
    """With the meaning of every run known: none is clean, being synthetic, but here they pass."""
    context = Context.of(top)
    trusted = frozenset(context.key(run) for run in RepositoryView(top, _data(top)).runs)
    report = audit(top, _data(top), trusted=trusted, processes=os.cpu_count() or 1)
    assert len(report.known) == len(trusted)


def analyze(top: Path) -> None:
    """Tables of every run, and of the study."""
    _verb("analyze", str(_data(top)))


def compare(top: Path) -> None:
    """The first half of the hosts with the second."""
    _verb("compare", str(top / "half-0"), "--with", str(top / "half-1"))


CASES: dict[str, Callable[[Path], None]] = {
    "fetch": fetch,
    "refetch": refetch,
    "list": list_,
    "audit": audit_,
    "again": again,
    "analyze": analyze,
    "compare": compare,
}


def _data(top: Path) -> Path:
    return top / "fleet"


def _verb(*argv: str) -> None:
    with Path(os.devnull).open("w") as nothing, contextlib.redirect_stdout(nothing):
        status = kit(argv)
    assert status == 0, argv


def prepare(top: Path, hosts: int) -> None:
    """The runs as records, as the cluster holds them, and in two halves; links, not copies."""
    _data(top).mkdir(parents=True)
    made = make_fleet(_data(top), hosts)
    list_runs(_data(top), made)
    there = _home(top / "there")
    write_jobs(there, hosts)
    for number, run in enumerate(made):
        for place in (there.runs, top / f"half-{2 * number // hosts}"):
            shutil.copytree(run.path, place / run.path.name, copy_function=os.link)


def measure(case: str, top: Path) -> dict[str, float]:
    """One case in this process and its children: CPU and wall seconds, peak MB of the largest."""
    wall, cpu = time.perf_counter(), _cpu_s()
    CASES[case](top)
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    return {
        "cpu_s": _cpu_s() - cpu,
        "wall_s": time.perf_counter() - wall,
        "peak_mb": max(_peak_bytes(), children) / _MB,
    }


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime


def bench(hosts: int, cases: Sequence[str], scratch: Path, before: dict[str, Row]) -> list[Row]:
    """Every case at one size, one after the other."""
    rows = []
    with TemporaryDirectory(dir=scratch, prefix="bench-fleet-") as name:
        top = Path(name)
        prepare(top, hosts)
        env = {**os.environ, "KIT_HOME": f"{top}/kit", "KIT_OUT": f"{top}/out"}
        for case in cases:
            argv = [sys.executable, "-m", "tests.bench.bench_fleet", "--measure", case, name]
            done = subprocess.run(argv, cwd=ROOT, env=env, check=True, capture_output=True)
            found = json.loads(done.stdout)
            last = before.get(case)
            grown = last and math.log(found["cpu_s"] / last.cpu_s) / math.log(hosts / last.hosts)
            rows.append(
                Row(
                    case,
                    hosts,
                    12 * hosts,
                    round(found["cpu_s"], 3),
                    round(found["wall_s"], 3),
                    round(1000 * found["cpu_s"] / hosts, 2),
                    round(found["peak_mb"], 1),
                    None if grown is None else round(grown, 2),
                )
            )
            _show(rows[-1])
    return rows


def _show(row: Row) -> None:
    grown = "" if row.exponent is None else f"{row.exponent:.2f}"
    print(
        f"{row.case:<10}{row.hosts:>8,}{row.boots:>9,}{row.cpu_s:>10.2f}{row.wall_s:>10.2f}"
        f"{row.ms_a_run:>10.2f}{row.peak_mb:>10.0f}{grown:>10}",
        flush=True,
    )


def main() -> None:
    """Make, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", default=SIZES, help=f"numbers of hosts [{SIZES}]")
    parser.add_argument("--only", default=",".join(CASES), help="cases, joined by commas")
    parser.add_argument("--disk", type=Path, help="where runs are made [memory, else build/]")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure[0], Path(options.measure[1]))))
        return
    OUTPUT.parent.mkdir(exist_ok=True)
    # Half a megabyte a run.
    scratch = options.disk or (_MEMORY if _MEMORY.is_dir() else OUTPUT.parent)
    print(
        f"{'':10}{'hosts':>8}{'boots':>9}{'CPU s':>10}{'wall s':>10}{'ms a run':>10}"
        f"{'peak MB':>10}{'exponent':>10}"
    )
    rows: list[Row] = []
    for hosts in map(int, options.hosts.split(",")):
        last = {row.case: row for row in rows}
        rows += bench(hosts, options.only.split(","), scratch, last)
    OUTPUT.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
