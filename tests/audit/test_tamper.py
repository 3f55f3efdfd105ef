"""Every corruption of the corpus is caught by the check that owns it, in full and incrementally."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.catalogue import ALL
from tests.audit.tamper.corruption import Corruption
from tests.audit.tamper.healthy import Repository, build
from tests.audit.tamper.selftest import CORRUPTIONS, healthy_reports, spoil


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, frozenset[str]]:
    """The healthy repository, and what an audit of it leaves for incremental ones."""
    repository = build(tmp_path_factory.mktemp("healthy"))
    full, again = healthy_reports(repository)
    assert full.findings == again.findings == ()
    # The proof below would be of nothing if no run were passed over.
    assert again.known == ("run-1", "run-2", "run-3")
    return repository, frozenset(full.clean)


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=[c.name for c in CORRUPTIONS])
def test_corruption_is_caught(
    healthy: tuple[Repository, frozenset[str]], corruption: Corruption, tmp_path: Path
) -> None:
    repository, clean = healthy
    row = spoil(repository, clean, corruption, tmp_path / "copy")
    assert row.caught, f"want {row.expected}, found {row.found}"
    assert row.incremental_agrees


def test_corpus_is_large_and_distinct() -> None:
    assert len(CORRUPTIONS) >= 60
    assert len({corruption.name for corruption in CORRUPTIONS}) == len(CORRUPTIONS)
    codes = {code.code for check in ALL for code in check.codes}
    assert {corruption.expected for corruption in CORRUPTIONS} <= codes


def test_every_check_of_records_owns_a_corruption() -> None:
    expected = {corruption.expected for corruption in CORRUPTIONS}
    without = [c.topic for c in ALL if not expected & {code.code for code in c.codes}]
    # Claims' basis and altered code are provoked case by case, in tests of their own.
    assert set(without) <= {"basis", "recount"}
