"""Claims against the server's clock are counted a second time, and an altered function is told."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from sealed_run import Shape, make_run, small_plan

from analysis import server_clock
from analysis.claiming import gpu_quantities
from analysis.claiming.evaluation import evaluate_project
from audit.checks import recount
from audit.counted import count_run
from audit.recount import value_of
from audit.repository import RepositoryView
from records.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]
DATA = ROOT / "records" / "data"
RUN = "20261130T172404Z-sm90-confounds-aee89a"
OVER = (
    "h.plain-client.draft.whole.over-server",
    "h.plain-client.draft.ttft.sent.over-server",
    "h.over-server.draft.kit.whole",
    "h.over-server.draft.plain.ttft.sent",
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that claims from a real run, in its README, what its two clients differ by."""
    seal = RunDirectory(DATA / RUN).seal_digest
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "evidence.toml").write_text(
        f'[study.h]\nplan = "sm90-confounds"\n[study.h.runs]\n"{RUN}" = "{seal}"\n'
    )
    return tmp_path


def cite(project: Path) -> None:
    """Write into the README what the claims come to."""
    values = evaluate_project(project, DATA, frozenset(OVER)).values
    lines = [f"[{values[id_].printed}](claim:{id_})" for id_ in OVER]
    (project / "README.md").write_text("\n\n".join(lines) + "\n")


def codes(project: Path) -> set[str]:
    return {finding.code for finding in recount.check(RepositoryView(project, DATA))}


def test_both_computations_come_to_one_value_over_real_records(project):
    values = evaluate_project(project, DATA, frozenset(OVER)).values
    counted = [count_run(DATA / RUN / "events.jsonl")]
    again = [value_of(id_, "h", counted) for id_ in OVER]
    assert again == pytest.approx([values[id_].value for id_ in OVER], rel=1e-9)
    # Boot b02-2-draft is the only one of its arm: 14.424 - 11.630 ms, and so on.
    assert again == pytest.approx([2.794, 2.813, 11.630, 17.395], abs=1e-3)
    cite(project)
    assert codes(project) == set()


def test_a_named_claim_is_counted_too():
    counted = [count_run(DATA / RUN / "events.jsonl")]
    named = value_of("sm90.plain-client.draft.whole.over-server", "sm90-confounds", counted)
    assert named == value_of(OVER[0], "h", counted)
    assert value_of("sm90.backend.draft", "sm90-confounds", counted) == "FLASH_ATTN"


@pytest.mark.parametrize("name", ["peer_over_server_ms", "over_server_ms"])
def test_a_function_that_was_altered_is_told(project, monkeypatch, name):
    real = getattr(gpu_quantities, name)
    monkeypatch.setattr(gpu_quantities, name, lambda *args: real(*args) + 0.5)
    cite(project)
    assert codes(project) == {"RECOUNT01"}


def test_a_page_that_was_read_otherwise_is_told(project, monkeypatch):
    """There are two readers of pages: a sum that one takes for another is not on both sides."""
    real = server_clock.totals

    def off(text: str) -> dict[str, float]:
        return {k: v * (1.001 if k.endswith("_sum") else 1) for k, v in real(text).items()}

    monkeypatch.setattr(server_clock, "totals", off)
    cite(project)
    assert codes(project) == {"RECOUNT01"}


def test_what_the_pages_do_not_tell_is_not_counted(tmp_path):
    clocked = make_run(tmp_path / "run-1", small_plan(1), Shape(clocked=True))
    bare = make_run(tmp_path / "run-2", small_plan(1))
    counted, without = (count_run(run.path / "events.jsonl") for run in (clocked, bare))
    for window in counted.windows:
        assert window.over_server_ms("whole") == pytest.approx(2)
        assert window.over_server_ms("ttft.sent") == pytest.approx(1)
    assert all(math.isnan(window.over_server_ms("whole")) for window in without.windows)
    assert value_of("h.over-server.draft.kit.whole", "h", [without]) is None
