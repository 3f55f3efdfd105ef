"""Whatever is done to a sealed run, `kit audit` fails and names file, line and what it expected."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sealed_run import Shape, list_run, make_run, small_plan

from audit.catalogue import ALL
from audit.checks import chain as chain_check
from audit.checks import checkpoint, seal
from audit.finding import Check
from audit.runner import audit
from records import chain, schema
from records.errors import AuditFailedError

LINKED = (chain_check.CHECK, seal.CHECK, checkpoint.CHECK)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two sealed runs and no git: the records must speak for themselves."""
    data = tmp_path_factory.mktemp("bytes") / "project" / "records" / "data"
    data.mkdir(parents=True)
    plan = small_plan(blocks=1, requests=2)
    for name in ("run-1", "run-2"):
        list_run(data, make_run(data / name, plan, Shape()))
    return data


def files_of(data: Path) -> list[Path]:
    """Every file that is a record, the two lists included."""
    return sorted(path for path in data.rglob("*") if path.is_file())


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(pick=st.data())
def test_any_flipped_byte_is_found_and_placed(records: Path, pick: st.DataObject) -> None:
    path = pick.draw(st.sampled_from(files_of(records)), label="file")
    original = path.read_bytes()
    at = pick.draw(st.integers(0, len(original) - 1), label="byte")
    mask = pick.draw(st.integers(1, 255), label="mask")
    path.write_bytes(original[:at] + bytes([original[at] ^ mask]) + original[at + 1 :])
    try:
        found = errors(records)
    finally:
        path.write_bytes(original)
    assert_placed(found, records, path, original[:at].count(b"\n") + 1)


def test_every_byte_of_one_line_and_of_the_seal(records: Path) -> None:
    """Not a sample: each byte of a middle line, of the last line, of seal, RUNS and CHECKPOINT."""
    run = records / "run-1"
    lines = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    middle = sum(len(line) for line in lines[:5])
    last = sum(len(line) for line in lines[:-1])
    spans = [
        (run / "events.jsonl", middle, middle + len(lines[5])),
        (run / "events.jsonl", last, last + len(lines[-1])),
        (records / "RUNS", 0, None),
        (records / "CHECKPOINT", 0, None),
    ]
    mask = random.Random(1)
    for path, start, stop in spans:
        original = path.read_bytes()
        for at in range(start, len(original) if stop is None else stop):
            flip = original[at] ^ mask.randrange(1, 256)
            path.write_bytes(original[:at] + bytes([flip]) + original[at + 1 :])
            found = errors(records, LINKED)
            path.write_bytes(original)
            assert_placed(found, records, path, original[:at].count(b"\n") + 1)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(pick=st.data())
def test_any_two_swapped_lines_are_found(records: Path, pick: st.DataObject) -> None:
    path = records / "run-2" / "events.jsonl"
    original = path.read_bytes()
    lines = original.splitlines(keepends=True)
    first = pick.draw(st.integers(0, len(lines) - 2))
    second = pick.draw(st.integers(first + 1, len(lines) - 1))
    lines[first], lines[second] = lines[second], lines[first]
    path.write_bytes(b"".join(lines))
    try:
        found = errors(records)
    finally:
        path.write_bytes(original)
    assert_placed(found, records, path, first + 1)


def test_flipped_byte_through_the_command(records: Path, tmp_path: Path) -> None:
    data = copy(records, tmp_path)
    path = data / "run-1" / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[6] = lines[6].replace(b'"value":{', b'"value":[', 1)
    path.write_bytes(b"".join(lines))
    code, said = kit_audit(data)
    assert code == AuditFailedError.exit_code
    assert f"{path}:7" in said
    assert "got  sha256:" in said
    assert "want sha256:" in said


def test_dropped_last_line(records: Path, tmp_path: Path) -> None:
    data = copy(records, tmp_path)
    path = data / "run-1" / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    code, said = kit_audit(data)
    assert code == AuditFailedError.exit_code
    assert f"{path}:{len(lines)}" in said
    assert f"want {len(lines)} lines (from the seal)" in said


def test_appended_line(records: Path, tmp_path: Path) -> None:
    """Appended rightly, as the journal would: only the seal tells."""
    data = copy(records, tmp_path)
    path = data / "run-1" / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    state = chain.verify(lines)
    line = chain.make_line(state, 10**15, *schema.encode(schema.HostObserved("end", "h", {})))
    with path.open("ab") as file:
        file.write(line)
    code, said = kit_audit(data)
    assert code == AuditFailedError.exit_code
    assert f"{path}:{len(lines) + 1}" in said
    assert f"want {len(lines)} lines (from the seal)" in said


def test_deleted_run(records: Path, tmp_path: Path) -> None:
    data = copy(records, tmp_path)
    shutil.rmtree(data / "run-1")
    code, said = kit_audit(data)
    assert code == AuditFailedError.exit_code
    assert f"{data / 'RUNS'}:1: run run-1" in said
    assert "want sha256:" in said


def test_json_names_the_same_places(records: Path, tmp_path: Path) -> None:
    data = copy(records, tmp_path)
    log = next((data / "run-1" / "logs").iterdir())
    log.write_bytes(b"")
    code, said = kit_audit(data, "--json")
    assert code == AuditFailedError.exit_code
    report = json.loads(said)
    finding = next(f for f in report["findings"] if f["code"] == "SEAL02")
    assert finding["where"] == {"file": str(log), "line": 0}
    assert finding["got"].startswith("0 bytes of sha256:")
    assert finding["want"]


def errors(data: Path, checks: Sequence[Check] = ALL) -> list[Any]:
    """The errors of an audit of these records alone."""
    report = audit(data.parent.parent, data, checks)
    return [finding for finding in report.findings if finding.severity == "error"]


def assert_placed(found: list[Any], data: Path, path: Path, line: int) -> None:
    """Some error names the changed file, and where it is a text of lines, the line."""
    shown = path.relative_to(data.parent.parent).as_posix()
    here = [f for f in found if f.where.file == shown]
    assert here, found
    assert any(f.want or f.message for f in here)
    if path.name in ("events.jsonl", "RUNS", "CHECKPOINT"):
        # A line end turned into something else joins a line to its neighbour.
        assert any(abs(f.where.line - line) <= 1 for f in here), (line, here)


def copy(records: Path, tmp_path: Path) -> Path:
    """The records, to be spoilt."""
    data = tmp_path / "data"
    shutil.copytree(records, data)
    return data


def kit_audit(data: Path, *arguments: str) -> tuple[int, str]:
    """Run the command as a user would."""
    done = subprocess.run(
        [sys.executable, "-m", "kit.main", "audit", "--data", str(data), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout
