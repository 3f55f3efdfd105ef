"""A host goes away in the second block of a real run: closed at home, audited, counted."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from called_kit import CalledKit

from analysis.claiming.reading import read_study_run
from analysis.study import merge
from audit.runner import audit
from kit import zipapp
from records import canonical, schema
from records.decode import to_object
from records.errors import ClosedRunError
from records.job import EngineOnHost, Job, ModelOnHost
from records.load import Load
from records.plan import boot_order
from records.run_directory import RunDirectory
from remote import leftover
from tests.remote import void_runs

RUN = "20261130T100000Z-void-0a1b2c"
PLAN = replace(
    void_runs.plan(
        {"one": (), "two": ()}, void_runs.WIDE, (void_runs.window(Load("closed", 2, requests=4)),)
    ),
    blocks=2,
)
SECOND_BLOCK = [boot.id for boot in boot_order(PLAN) if boot.block == 2]


def prepared(host: Path) -> tuple[list[str], Job]:
    """The command that carries out, or goes on with, the plan on this "host"."""
    harness, digest = zipapp.build_named(host / "harness", void_runs.ROOT)
    launcher = (sys.executable, "-I", "-S", str(harness), "reference")
    job = Job(
        run_id=RUN,
        plan=PLAN,
        engine=EngineOnHost("reference", launcher, (), {}, "", digest),
        models={"synthetic": ModelOnHost("synthetic", {})},
        run_directory=str(host / "runs" / RUN),
        scratch=str(host / "scratch"),
        host_salt="s",
    )
    (host / "job.json").write_bytes(canonical.encode(to_object(job)))
    return [sys.executable, "-I", "-S", str(harness), "run", str(host / "job.json")], job


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A host on which the harness was killed in the second boot of the second block."""
    place = tmp_path_factory.mktemp("host")
    argv, job = prepared(place)
    events = RunDirectory(Path(job.run_directory)).events
    with (place / "log").open("wb") as log:
        harness = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        begun = '"type":"boot.healthy","value":{"after_ns":'
        while harness.poll() is None:
            lines = events.read_text("utf-8").splitlines() if events.exists() else []
            if any(begun in line and SECOND_BLOCK[1] in line for line in lines):
                break
            time.sleep(0.01)
        assert harness.poll() is None, (place / "log").read_text()
    finally:
        harness.kill()
        harness.wait()
        leftover.end(Path(job.scratch))
    return place


@pytest.fixture(scope="module")
def carried(host: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was packed there, carried here."""
    harness = str(next((host / "harness").glob("*.pyz")))
    subprocess.run(
        [sys.executable, "-I", "-S", harness, "pack", "--root", str(host), "--out",
         str(host / "out")],
        check=True, capture_output=True,
    )  # fmt: skip
    place = tmp_path_factory.mktemp("carried")
    data = b"".join(part.read_bytes() for part in sorted((host / "out").glob("records-[0-9]*")))
    subprocess.run(["tar", "xzf", "-", "-C", str(place)], input=data, check=True)
    return place / RUN


@pytest.fixture
def kit(tmp_path: Path) -> CalledKit:
    return CalledKit(tmp_path / "home")


def closed(kit: CalledKit, carried: Path) -> RunDirectory:
    """Taken in unfinished, then closed. A synthetic run has a place of its own."""
    taken = kit.call("fetch-records", "--from", str(carried), "--unfinished")
    assert taken.returncode == 0, taken.stderr
    run = RunDirectory(kit.records / RUN)
    done = kit.call("close", str(run.path), "--because", "the lease was over", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["carried_out"], told["missing"]) == ([1], [2])
    assert told["event"]["interrupted"] == SECOND_BLOCK[1]
    return run


def codes(run: RunDirectory, severity: str) -> set[str]:
    report = audit(void_runs.ROOT, run.path.parent)
    of_run = [f for f in report.findings if RUN in f.where.file]
    return {finding.code for finding in of_run if finding.severity == severity}


def test_what_came_home_counts_block_by_block(kit: CalledKit, carried: Path) -> None:
    run = closed(kit, carried)
    assert codes(run, "error") == {"PLAN04"}, "synthetic, and nothing else"
    # On a busy machine a window may be void besides, which the audit then names.
    assert codes(run, "warning") >= {"CLOSE01", "CLOSE02"}
    (counted,) = merge([read_study_run(run)])
    assert {one.block: one.counts for one in counted.executions} == {1: True, 2: False}
    assert not any(isinstance(line.event, schema.RunEnded) for line in run.read())
    analyzed = kit.call("analyze", str(run.path), "--json")
    assert analyzed.returncode == 0, analyzed.stderr
    (study,) = json.loads(analyzed.stdout)["studies"]
    tables: dict[str, Any] = {table["name"]: table for table in study["tables"]}
    assert {row["block"] for row in tables["by-boot"]["rows"]} <= {1}
    assert all(any("closed: host gone" in note for note in t["notes"]) for t in tables.values())
    assert {
        row["boot"]: row["reason"] for row in tables["void"]["rows"] if row["window"] == "-"
    } == {
        SECOND_BLOCK[0]: "completed: its block was cut off: the host went away for good",
        SECOND_BLOCK[1]: "interrupted: its host went away for good",
    }
    assert "closed: host gone" in kit.call("status").stdout
    assert f"{RUN} (closed: host gone)" in kit.call("minutes", str(run.path)).stdout


def test_the_host_was_not_gone_and_ended_the_run(
    kit: CalledKit, carried: Path, host: Path, tmp_path: Path
) -> None:
    """The same job goes on there and seals the run: home has closed it, and says so."""
    run = closed(kit, carried)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    subprocess.run(["cp", "-r", str(host), str(tmp_path / "host")], check=True)
    argv, job = prepared(tmp_path / "host")
    subprocess.run(argv, check=True, capture_output=True)
    assert RunDirectory(Path(job.run_directory)).is_sealed
    again = kit.call("fetch-records", "--from", job.run_directory)
    assert again.returncode == ClosedRunError.exit_code
    assert f"run {RUN} was closed here after" in again.stderr
    assert "the host ended it itself" in again.stderr
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


def test_a_harness_does_not_go_on_with_a_closed_run(
    kit: CalledKit, carried: Path, tmp_path: Path
) -> None:
    run = closed(kit, carried)
    (tmp_path / "host").mkdir()
    argv, job = prepared(tmp_path / "host")
    there = Path(job.run_directory)
    there.parent.mkdir(parents=True)
    subprocess.run(["cp", "-r", str(run.path), str(there)], check=True)
    (there / "seal.json").unlink()
    text = (there / "events.jsonl").read_bytes()
    refused = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert refused.returncode == ClosedRunError.exit_code
    assert (there / "events.jsonl").read_bytes() == text
