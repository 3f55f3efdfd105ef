"""Allocations of a scheduler in the record: sound ones are silent, wherever the run was resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.checks import scheduler
from audit.runner import audit
from tests.audit.tamper.healthy import Repository, build, copy_of
from tests.audit.tamper.of_meaning import scheduled


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return build(tmp_path_factory.mktemp("scheduled"))


def codes(template: Repository, tmp_path: Path, **changed: object) -> set[str]:
    """run-2 was interrupted and resumed once; its last observation is that of the end."""
    repository = copy_of(template, tmp_path / "copy")
    repository.cover_up(scheduled(**changed), "run-2")
    report = audit(repository.root, repository.data, (scheduler.CHECK,))
    return {finding.code for finding in report.findings}


@pytest.mark.parametrize(
    ("changed", "want"),
    [
        ({}, set()),
        ({"node": "fedcba987654"}, {"SCHED02"}),
        ({"job": "99"}, {"SCHED02"}),
        ({"restarts": 3}, set()),
        ({"restarts": -1}, set()),
        ({"node": "gpu-node-17"}, {"SCHED02", "SCHED03"}),
        ({"phase": "start"}, {"SCHED01"}),
    ],
)
def test_an_allocation(template, tmp_path, changed, want):
    assert codes(template, tmp_path, **changed) == want
