"""in-toto statements and Zenodo metadata: by their specifications, from the records alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sealed_run import Shape, make_run, small_plan

from analysis.exporting.in_toto import Outcome, statement
from analysis.exporting.zenodo import DATA_NAME, SOFTWARE_NAME, deposits
from analysis.reading import read_run
from records.digest import Digest
from records.errors import ExportError

CITATION = (Path(__file__).parents[3] / "CITATION.cff").read_text(encoding="utf-8")
AUDITOR = Digest.of(b"auditor")


def made(tmp_path: Path, *, synthetic: bool = False):
    return read_run(make_run(tmp_path / "run-1", small_plan(blocks=1), Shape(synthetic=synthetic)))


@pytest.mark.parametrize(
    ("warned", "failed", "result"),
    [((), (), "PASSED"), (("harness",), (), "WARNED"), (("harness",), ("chain",), "FAILED")],
)
def test_result_is_the_worst_that_was_found(tmp_path, warned, failed, result):
    outcome = Outcome(("seal",), warned, failed, AUDITOR)
    value = json.loads(statement(made(tmp_path), Digest.of(b"j"), Digest.of(b"s"), outcome))
    assert value["_type"] == "https://in-toto.io/Statement/v1"
    assert value["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert value["predicate"]["result"] == result
    assert value["predicate"]["passedTests"] == ["seal"]
    assert value["predicate"]["warnedTests"] == list(warned)
    assert value["predicate"]["failedTests"] == list(failed)
    for one in (*value["subject"], *value["predicate"]["configuration"]):
        assert one["name"]
        assert set(one["digest"]) == {"sha256"}  # a resource needs a digest, a uri or content


def test_a_synthetic_subject_says_so(tmp_path):
    outcome = Outcome(("seal",), (), (), AUDITOR)
    run = made(tmp_path, synthetic=True)
    for one in json.loads(statement(run, AUDITOR, AUDITOR, outcome))["subject"]:
        assert one["annotations"]["synthetic"] is True


def test_code_and_data_are_two_deposits(tmp_path):
    files = deposits(CITATION, [made(tmp_path)], {"run-1": "sha256:ab"})
    software, data = (json.loads(files[name]) for name in (SOFTWARE_NAME, DATA_NAME))
    assert (software["upload_type"], software["license"]) == ("software", "MIT")
    assert (data["upload_type"], data["license"]) == ("dataset", "CC-BY-4.0")
    for one in (software, data):
        # What Zenodo requires of any deposit, and of an open one.
        assert {"upload_type", "title", "creators", "description", "access_right"} <= one.keys()
        assert all(creator["name"] for creator in one["creators"])
    assert "sha256:ab" in data["description"]


def test_people_are_named_as_zenodo_wants():
    text = CITATION.replace(
        '  - name: "The spec-fp8-reproduction-kit authors"',
        "  - family-names: Doe\n    given-names: Jo\n    orcid: https://orcid.org/0000-0001-2345-6789",
    )
    made = json.loads(deposits(text, [], {})[SOFTWARE_NAME])
    assert made["creators"] == [{"name": "Doe, Jo", "orcid": "0000-0001-2345-6789"}]


def test_synthetic_data_say_so(tmp_path):
    files = deposits(CITATION, [made(tmp_path, synthetic=True)], {"run-1": "sha256:ab"})
    data = json.loads(files[DATA_NAME])
    assert data["title"].startswith("SYNTHETIC")
    assert "SYNTHETIC" in data["description"]


@pytest.mark.parametrize(
    "text",
    [
        "title: x", "title: [", "- a", "", "\x00",
        CITATION.replace("authors:", "authors: us\nothers:"),
        CITATION.replace("authors:", "authors: [us]\nothers:"),
        CITATION.replace("keywords:", "keywords: many\nothers:"),
    ],
)  # fmt: skip
def test_a_citation_that_lacks_something_is_named(text):
    with pytest.raises(ExportError, match=r"CITATION\.cff"):
        deposits(text, [], {})
