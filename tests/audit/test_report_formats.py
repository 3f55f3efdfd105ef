"""The report as text, SARIF and JUnit; exit codes by class."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from audit.catalogue import ALL
from audit.finding import Finding, Where
from audit.junit import as_junit
from audit.report import KINDS, as_text, failure
from audit.runner import Report
from audit.sarif import as_sarif
from records.errors import AuditConductError, AuditDerivedError, AuditFailedError, AuditHygieneError
from tests.audit.tamper.healthy import build

BAD = "a\x00b\x1b[31m\ud800"


def report(*codes: str) -> Report:
    severities = {code.code: code.severity for check in ALL for code in check.codes}
    findings = tuple(
        Finding(
            code, severities[code], Where("records/data/a b/x", 3), f"says {BAD}", "1", "2", "go"
        )
        for code in codes
    )
    return Report("records/data", 1, 0, tuple(check.topic for check in ALL), findings)


def test_sarif_has_what_the_schema_requires() -> None:
    """sarif-schema-2.1.0: required members, and the values that its enumerations allow."""
    made = as_sarif(report("CHAIN01", "HIST03"))
    assert made["version"] == "2.1.0"
    assert set(made) <= {"$schema", "version", "runs"}
    (run,) = made["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    rules = driver["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in rules)
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    for result, level in zip(run["results"], ("error", "warning"), strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] == level
        assert result["message"]["text"]
        (place,) = result["locations"]
        physical = place["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == "records/data/a%20b/x"
        assert physical["region"]["startLine"] == 3
    json.dumps(made)


def test_sarif_leaves_out_a_region_without_a_line() -> None:
    finding = Finding("SEAL02", "error", Where("x"), "m")
    made = as_sarif(Report("d", 1, 0, (), (finding,)))
    assert "region" not in made["runs"][0]["results"][0]["locations"][0]["physicalLocation"]


def test_junit_counts_what_it_holds() -> None:
    top = ET.fromstring(as_junit(report("CHAIN01", "CHAIN01", "HIST03")))  # noqa: S314 - our own
    assert top.tag == "testsuites"
    cases = top.findall("testsuite/testcase")
    assert int(top.attrib["tests"]) == len(cases) == sum(len(check.codes) for check in ALL)
    assert int(top.attrib["failures"]) == len(top.findall(".//failure")) == 1
    for suite in top:
        assert int(suite.attrib["tests"]) == len(suite)
        assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
    assert all(case.attrib["name"] and case.attrib["classname"] for case in cases)
    failure_text = top.find(".//failure")
    assert failure_text is not None
    assert (failure_text.text or "").count("records/data/a b/x:3") == 2
    assert len(top.findall(".//system-out")) == 1


@pytest.mark.parametrize(
    ("codes", "error"),
    [
        ((), None),
        (("HIST03",), None),
        (("HYGIENE01",), AuditHygieneError),
        (("TABLE01", "HYGIENE01"), AuditDerivedError),
        (("TABLE01", "PLAN01"), AuditConductError),
        (("TABLE01", "CHAIN01", "PLAN01"), AuditFailedError),
    ],
)
def test_the_exit_code_is_that_of_the_first_class(
    codes: tuple[str, ...], error: type[AuditFailedError] | None
) -> None:
    assert type(failure(report(*codes))) is (error or type(None))


def test_every_check_has_a_class_with_an_exit_code() -> None:
    assert {check.kind for check in ALL} == set(KINDS)
    assert len({code for code, _ in KINDS.values()}) == len(KINDS)


def test_text_puts_errors_first_and_names_the_next_command() -> None:
    text = as_text(report("HIST03", "CHAIN01"))
    assert text.index("CHAIN01 error (chain)") < text.index("HIST03 warning (history)")
    assert "  try: go" in text
    assert text.rstrip().endswith("kit audit --explain CHAIN01 says what a code means")


def test_text_does_not_drown_in_one_code() -> None:
    text = as_text(report(*["CHAIN01"] * 50))
    assert text.count("says") == 20 + 1
    assert "and 30 more" in text


def test_the_command_writes_all_forms_at_once(tmp_path: Path) -> None:
    data = tmp_path / "records" / "data"
    (data / "run-1").mkdir(parents=True)
    sarif_file, junit_file = tmp_path / "out" / "a.sarif", tmp_path / "out" / "a.xml"
    files = ["--sarif", str(sarif_file), "--junit", str(junit_file)]
    done = subprocess.run(
        [sys.executable, "-m", "kit.main", "audit", "--json", "--data", str(data), *files],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    assert done.returncode == AuditFailedError.exit_code, done.stderr
    codes = {finding["code"] for finding in json.loads(done.stdout)["findings"]}
    assert "CHAIN02" in codes
    sarif = json.loads(sarif_file.read_text())
    assert {result["ruleId"] for result in sarif["runs"][0]["results"]} == codes
    assert ET.parse(junit_file).getroot().tag == "testsuites"  # noqa: S314


def test_words_of_a_record_steer_no_terminal() -> None:
    made = report("CHAIN01")
    (found,) = made.findings
    hostile = replace(found, got="\x1b[2J\x1b[Hok: 0 errors\u202e\x9b31m\r" + "x" * 9999)
    text = as_text(replace(made, findings=(hostile,)))
    assert text.replace("\n", "").isprintable()
    assert "\\x1b[2J" in text
    assert max(map(len, text.splitlines())) < 600


def test_another_copy_is_audited_by_this_one(tmp_path: Path) -> None:
    """Their clone's sources are not asked: what they would say of themselves does not count."""
    theirs = build(tmp_path)
    arguments = [sys.executable, "-m", "kit.main", "audit", "--project", str(theirs.root)]
    (theirs.root / "audit").mkdir()
    (theirs.root / "audit" / "catalogue.py").write_text("ALL = ()\n")
    sound = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert sound.returncode == 0, sound.stdout
    main = theirs.root / "paper" / "main.tex"
    main.write_text(main.read_text() + "It was 17 percent faster.\n")
    spoilt = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert spoilt.returncode == AuditDerivedError.exit_code
    assert "NUM01" in spoilt.stdout
