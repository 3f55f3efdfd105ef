"""An audit's report as JUnit XML, for continuous integration that knows nothing but tests.

One suite a check, one case a code; an error is a failure, a warning is said in `system-out` and
fails nothing. Source: the common form that Jenkins and GitLab read (testsuites, testsuite,
testcase, failure), https://github.com/testmoapp/junitxml.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from audit.catalogue import ALL
from audit.finding import Check, Code, Finding
from audit.runner import Report

# Characters that XML 1.0 (section 2.2) has no way to write; findings may quote damaged bytes.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(report: Report) -> str:
    """The report as one XML document."""
    by_code: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_code.setdefault(finding.code, []).append(finding)
    suites = [_suite(check, by_code) for check in ALL if check.topic in report.checks]
    tests = sum(len(suite) for suite in suites)
    failures = sum(int(suite.get("failures", "0")) for suite in suites)
    top = ET.Element("testsuites", name="kit audit", tests=str(tests), failures=str(failures))
    top.extend(suites)
    ET.indent(top)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(top, "unicode") + "\n"


def _suite(check: Check, by_code: dict[str, list[Finding]]) -> ET.Element:
    cases = [_case(check, code, by_code.get(code.code, [])) for code in check.codes]
    failures = sum(case.find("failure") is not None for case in cases)
    suite = ET.Element(
        "testsuite",
        name=check.topic,
        tests=str(len(cases)),
        failures=str(failures),
        errors="0",
        skipped="0",
    )
    suite.extend(cases)
    return suite


def _case(check: Check, code: Code, findings: list[Finding]) -> ET.Element:
    case = ET.Element(
        "testcase", classname=f"audit.{check.topic}", name=f"{code.code} {code.title}"
    )
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        message = f"{len(errors)} times: {code.title}"
        failure = ET.SubElement(case, "failure", type=code.code, message=message)
        failure.text = _clean("\n".join(map(_line, errors)) + f"\ntry: {code.remedy}")
    warnings = [finding for finding in findings if finding.severity == "warning"]
    if warnings:
        ET.SubElement(case, "system-out").text = _clean("\n".join(map(_line, warnings)))
    return case


def _line(finding: Finding) -> str:
    text = f"{finding.where}: {finding.message}"
    text += f"; got {finding.got}" if finding.got else ""
    return text + (f"; want {finding.want}" if finding.want else "")


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
