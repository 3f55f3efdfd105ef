"""A healthy project gives no finding, and every code has a mutation that provokes it."""

from __future__ import annotations

import ast
from pathlib import Path

from files_below import files_below

from audit.catalogue import ALL
from audit.report import as_object, as_text, checks_document
from audit.runner import audit, explain

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def test_healthy_project_has_no_findings(project):
    report = audit(project.root, project.data)
    assert report.findings == ()
    assert (report.sealed, report.open) == (2, 0)
    assert "ok: 0 errors, 0 warnings" in as_text(report)
    assert as_object(report)["findings"] == []


def test_audit_changes_nothing(project):
    before = files_below(project.root)
    audit(project.root, project.data)
    assert files_below(project.root) == before


def test_empty_records_are_healthy(tmp_path):
    (tmp_path / "records" / "data").mkdir(parents=True)
    report = audit(tmp_path, tmp_path / "records" / "data")
    assert report.findings == ()


def test_codes_are_unique_and_explained():
    codes = [code for check in ALL for code in check.codes]
    assert len({code.code for code in codes}) == len(codes)
    assert all(code.explanation and code.remedy for code in codes)
    for code in codes:
        assert explain(code.code.lower())[1] is code


def test_checks_document_is_current():
    assert (ROOT / "audit" / "CHECKS.md").read_text() == checks_document()


def test_every_code_has_a_mutation():
    """Each code stands in a test module of this folder, as what some mutation must give."""
    named = set()
    for path in (*HERE.glob("test_*.py"), *HERE.glob("tamper/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.add(node.value)
    assert {code.code for check in ALL for code in check.codes} - named == set()
