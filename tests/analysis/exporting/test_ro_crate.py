"""Crates of sealed runs: valid by the community's validator, whole, the same bytes always."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest
from crate_validator import fill_cache, issues
from sealed_run import Shape, make_run, small_plan

from analysis.exporting.crate_files import write_crate
from analysis.exporting.ro_crate import METADATA_NAME, Agent
from analysis.reading import read_run
from records.errors import ExportError
from records.run_directory import RunDirectory

EVENTFUL = Shape(interrupt_first=True, fail_last=True)
UNIVERSITY = Agent("Example University", "https://ror.org/03f0f6041")
# Recommendations that a crate of records cannot follow. The validator wants http, the profile an
# absolute URI; a thing that is known by its digest alone has one by RFC 6920. Nobody is to be
# written to: the records name no person.
NOT_FOLLOWED = {
    "The SoftwareApplication id SHOULD be an absolute URI",
    "An Organization's contactPoint SHOULD reference a ContactPoint contextual entity",
    "At least one author or publisher Person/Organization SHOULD have a contactPoint property",
}
NO_INSTRUMENT = "The Action MUST have an instrument property that references the executed tool"
UNSAID_AGENT = {
    "The Root Data Entity SHOULD have a `publisher` property (Organization or Person)",
    "The Action SHOULD have an agent that is a Person or Organization",
}
# A boot that left no log, and one whose host's clock may have begun anew before its end.
EVENTFUL_BOOTS = {
    "The Action SHOULD have a result",
    "The Action SHOULD have an endTime in ISO 8601 format",
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return make_run(tmp_path_factory.mktemp("runs") / "run-1", small_plan(blocks=1), EVENTFUL)


def graph(crate: Path) -> dict[str, dict]:
    found = json.loads((crate / METADATA_NAME).read_text())["@graph"]
    assert len({entity["@id"] for entity in found}) == len(found)
    return {entity["@id"]: entity for entity in found}


@pytest.mark.parametrize("profile", ["ro-crate-1.2", "process-run-crate-0.5"])
def test_valid(directory, tmp_path, profile):
    cache = fill_cache(tmp_path)
    crate, _ = write_crate([(directory, read_run(directory))], tmp_path / "crate", UNIVERSITY)
    found = issues(crate, profile, cache)
    assert {message for severity, message in found if severity == "REQUIRED"} == set()
    assert {message for _, message in found} <= NOT_FOLLOWED | EVENTFUL_BOOTS


def test_the_validator_is_awake(directory, tmp_path):
    """It finds what is missing, so that finding nothing says something."""
    cache = fill_cache(tmp_path)
    crate, _ = write_crate([(directory, read_run(directory))], tmp_path / "crate")
    file = crate / METADATA_NAME
    value = json.loads(file.read_text())
    action = next(e for e in value["@graph"] if e["@type"] == "CreateAction")
    del action["instrument"]
    file.write_text(json.dumps(value))
    found = issues(crate, "process-run-crate-0.5", cache)
    assert ("REQUIRED", NO_INSTRUMENT) in found
    assert {message for severity, message in found if severity != "REQUIRED"} <= (
        NOT_FOLLOWED | EVENTFUL_BOOTS | UNSAID_AGENT
    )


def test_every_file_is_described_by_its_digest(directory, tmp_path):
    crate, count = write_crate([(directory, read_run(directory))], tmp_path / "crate")
    entities = graph(crate)
    files = sorted(path for path in crate.rglob("*") if path.is_file())
    assert len(files) == count
    for path in files:
        name = path.relative_to(crate).as_posix()
        if name != METADATA_NAME:
            assert entities[name]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
            assert entities[name]["contentSize"] == str(path.stat().st_size)
    plan = read_run(directory).started.plan_digest
    assert any(entity.get("sha256") == plan.hex for entity in entities.values())


def test_every_boot_is_an_action_with_its_end(directory, tmp_path):
    run = read_run(directory)
    crate, _ = write_crate([(directory, run)], tmp_path / "crate")
    entities = graph(crate)
    for boot in run.boots:
        action = entities[f"#boot-run-1-{boot.started.boot}"]
        completed = action["actionStatus"] == "http://schema.org/CompletedActionStatus"
        assert completed == (boot.outcome == "completed")
        assert ("error" in action) == (boot.outcome != "completed")
        if boot.outcome != "interrupted":
            assert action["startTime"] < action["endTime"]
    mentioned = {ref["@id"] for ref in entities["./"]["mentions"]}
    assert mentioned == {
        i for i, e in entities.items() if e["@type"] in ("CreateAction", "ActivateAction")
    }


def test_an_archive_has_the_same_bytes_anywhere(directory, tmp_path):
    run = read_run(directory)
    one, _ = write_crate([(directory, run)], tmp_path / "one.zip")
    directory.events.touch()
    two, _ = write_crate([(directory, run)], tmp_path / "deep" / "two.zip")
    assert one.read_bytes() == two.read_bytes()
    flat, _ = write_crate([(directory, run)], tmp_path / "flat")
    with zipfile.ZipFile(one) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            assert archive.read(name) == (flat / name).read_bytes()


def test_several_runs_share_a_crate(directory, tmp_path):
    other = make_run(tmp_path / "run-2", small_plan(blocks=1), Shape())
    runs = [(one, read_run(one)) for one in (other, directory)]
    crate, _ = write_crate(runs, tmp_path / "crate")
    parts = [ref["@id"] for ref in graph(crate)["./"]["hasPart"]]
    assert parts[:2] == ["run-1/", "run-2/"]
    assert len(parts) == 3  # one plan for both


def test_synthetic_is_said(tmp_path):
    made = make_run(tmp_path / "run-s", small_plan(blocks=1), Shape(synthetic=True))
    crate, _ = write_crate([(made, read_run(made))], tmp_path / "crate")
    entities = graph(crate)
    assert entities["./"]["name"].startswith("SYNTHETIC")
    assert "SYNTHETIC" in entities["run-s/"]["description"]
    engines = {
        entities[e["instrument"]["@id"]]["name"]
        for i, e in entities.items()
        if i.startswith("#boot")
    }
    assert engines == {"reference server (SYNTHETIC, no engine)"}


def test_nothing_is_written_of_a_run_that_is_not_what_its_seal_says(directory, tmp_path):
    made = make_run(tmp_path / "run-1", small_plan(blocks=1), Shape())
    run = read_run(made)
    log = next((made.path / "logs").iterdir())
    log.write_bytes(log.read_bytes() + b" ")
    with pytest.raises(ExportError, match=r"log\.gz"):
        write_crate([(made, run)], tmp_path / "crate")
    assert not (tmp_path / "crate").exists()


def test_an_open_run_is_refused(tmp_path):
    made = make_run(tmp_path / "run-1", small_plan(blocks=1), Shape(seal=False))
    with pytest.raises(ExportError, match="not sealed"):
        write_crate([(made, read_run(made))], tmp_path / "crate")


def test_what_is_there_is_never_overwritten(directory, tmp_path):
    (tmp_path / "crate").mkdir()
    (tmp_path / "crate" / "mine").touch()
    (tmp_path / "crate.zip").touch()
    run = read_run(directory)
    for name in ("crate", "crate.zip"):
        with pytest.raises(ExportError, match="already"):
            write_crate([(directory, run)], tmp_path / name)
