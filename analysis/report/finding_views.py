"""Findings as the page shows them: text, what is not established, and what was retracted by what.

Invariant: a retracted finding is shown, as retracted, with the one that retracts it; none without
its section "What this does NOT establish".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from analysis.findings import SECTION, Finding
from analysis.report.claim_views import ClaimBook
from analysis.report.model import ClaimView, FindingView
from analysis.report.prose import prose

_CITED = re.compile(r"\]\(claim:([^)\s]+)\)")
_NOT_ESTABLISHED = re.compile(rf"^## {re.escape(SECTION)}\s*$.*?(?=^## |\Z)", re.M | re.S)
_LEVEL = 4


def finding_views(
    findings: Sequence[Finding], seals: Mapping[str, str], claims: ClaimBook
) -> tuple[FindingView, ...]:
    """The findings that rest on these runs, and those linked to them by a retraction.

    `seals`: digest of a seal -> the run's id.
    """
    shown = _linked(findings, seals.keys())
    return tuple(_view(one, seals, claims) for one in findings if one.id in shown)


def _linked(findings: Sequence[Finding], seals: Collection[str]) -> set[str]:
    shown = {one.id for one in findings if any(str(seal) in seals for seal in one.evidence)}
    for one in findings:
        if one.id in shown:
            shown = shown | {*one.retracts, *one.retracted_by}
    return shown


def _view(finding: Finding, seals: Mapping[str, str], claims: ClaimBook) -> FindingView:
    cited: dict[str, ClaimView] = {}
    for id_ in _CITED.findall(finding.body):
        view = claims.noted(id_)
        if view is not None:
            cited[id_] = view
    return FindingView(
        finding.id,
        finding.title,
        finding.status,
        finding.retracts,
        finding.retracted_by,
        finding.defect,
        tuple(seals.get(str(seal), str(seal)) for seal in finding.evidence),
        prose(_NOT_ESTABLISHED.sub("", finding.body), cited, _LEVEL),
        prose(finding.not_established, cited, _LEVEL),
    )
