"""An audit's report as SARIF 2.1.0, for code hosts and editors that show findings at their lines.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0 (schema sarif-schema-2.1.0.json);
the properties made here are those that its sections 3.13 to 3.49 require, and no more.
"""

from __future__ import annotations

import urllib.parse
from typing import Any

from audit.catalogue import ALL
from audit.finding import Finding
from audit.runner import Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(report: Report) -> dict[str, Any]:
    """The report as one SARIF run, with a rule for every code there is."""
    codes = [(check, code) for check in ALL for code in check.codes]
    places = {code.code: place for place, (_, code) in enumerate(codes)}
    rules = [
        {
            "id": code.code,
            "name": check.topic,
            "shortDescription": {"text": code.title},
            "fullDescription": {"text": code.explanation},
            "help": {"text": code.remedy},
            "defaultConfiguration": {"level": code.severity},
        }
        for check, code in codes
    ]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "kit audit", "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, places[finding.code]) for finding in report.findings],
            }
        ],
    }


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    place: dict[str, Any] = {
        # A URI reference (RFC 3986): relative to the project, absolute only outside it.
        "artifactLocation": {"uri": urllib.parse.quote(finding.where.file)}
    }
    if finding.where.line:
        place["region"] = {"startLine": finding.where.line}
    words = [finding.message]
    words += [f"got: {finding.got}"] if finding.got else []
    words += [f"want: {finding.want}"] if finding.want else []
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": "\n".join(words)},
        "locations": [{"physicalLocation": place}],
    }
