"""The table of texts and its notes: by made runs, and by what two hosts really answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sealed_run import Shape, make_run, small_plan

from analysis.answers import Answers
from analysis.claiming.reading import Reading, StudyRun, read_study_run
from analysis.claims import claims_of
from analysis.comparing.against_published import published_verdicts
from analysis.comparing.against_runs import compared_verdicts
from analysis.metrics import run_metrics
from analysis.published import load_published
from analysis.reading import Run, read_run
from analysis.report.table_views import Links, table_view
from analysis.streaming import parquet_cache
from analysis.streaming.large_run import read_run_in_batches
from analysis.table import as_object
from analysis.tables import study_tables
from analysis.texts import texts_table
from records.digest import Digest
from records.errors import ClaimError
from records.plan import Plan
from records.run_directory import RunDirectory
from records.schema import WindowRequests
from tests.comparable_runs import Made, l4_plan, made_run

ROOT = Path(__file__).parents[2]
DATA = ROOT / "records" / "data"
SMOKE = DATA / "20261130T115921Z-smoke-cpu-5d0eba"
# One plan on two hosts of one kind; the first was cut off, the second is sealed.
HOST_1 = DATA / "20261130T170838Z-sm90-confounds-70604b"
HOST_2 = DATA / "20261130T172404Z-sm90-confounds-aee89a"
# Boot, window, request -> the text that it is answered with.
Answer = Callable[[str, str, int], str | None]


def fixed(plan: Plan) -> Plan:
    """The same plan with prompts that every window sends alike."""
    windows = (replace(w, prompts=replace(w.prompts, unique=False)) for w in plan.windows)
    return replace(plan, windows=tuple(windows))


def answered(directory: Path, answer: Answer, plan: Plan | None = None) -> RunDirectory:
    def edit(event):
        if not isinstance(event, WindowRequests):
            return event
        texts = [answer(event.boot, event.window, r.index) for r in event.requests]
        requests = (
            replace(r, tokens_digest=Digest.of(text.encode()) if text is not None else None)
            for r, text in zip(event.requests, texts, strict=True)
        )
        return replace(event, requests=tuple(requests))

    return make_run(directory, plan or fixed(small_plan()), Shape(edit=edit))


def table_rows(*runs: Run) -> dict[tuple[str, str], dict[str, object]]:
    metrics = [m for run in runs for m in run_metrics(run)]
    rows = as_object(texts_table(runs, metrics))["rows"]
    return {(row["arm"], row["window"]): row for row in rows}


def cells(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(
        row[name] for name in ("boots", "prompts", "answers", "same", "compared", "reference")
    )


def test_two_hosts_answered_alike_and_two_arms_did_not():
    """As found in the records: eager arithmetic answered 6 of 8 prompts with other tokens."""
    rows = table_rows(*(read_run(RunDirectory(path)) for path in (HOST_1, HOST_2)))
    # Two hosts, one boot of each arm on each, and as many answers as prompts.
    assert cells(rows["draft", "c64"]) == (2, 8, 8, 7, 8, "none")
    assert cells(rows["draft-eager", "c64"])[:3] == (2, 8, 8)
    assert cells(rows["none", "c64"]) == (1, 8, 8, None, None, "-")
    assert cells(rows["ngram", "c64"]) == (1, 8, 8, 8, 8, "none")
    # Six requests send six of the eight prompts.
    assert cells(rows["draft", "c1"]) == (2, 6, 6, 6, 6, "none")
    assert not [window for _, window in rows if window.endswith("plain")]


def test_without_a_plain_arm_the_first_of_the_plan_is_held_against():
    rows = table_rows(read_run(RunDirectory(HOST_2)))
    assert cells(rows["draft", "c64"]) == (1, 8, 8, None, None, "-")
    assert cells(rows["draft-eager", "c64"]) == (1, 8, 8, 2, 8, "draft")
    assert cells(rows["draft-eager", "c1"]) == (1, 6, 6, 1, 6, "draft")


def test_the_claims_print_the_same_numbers():
    run = read_study_run(RunDirectory(HOST_2))
    found = {claim.id: claim for claim in claims_of("s", run.plan) if ".texts." in claim.id}
    values = {
        id_: found[f"s.{id_}"].function(Reading("s", (run,)))
        for id_ in (
            "draft.c64.texts.prompts",
            "draft.c64.texts.distinct",
            "draft-vs-draft-eager.c64.texts.same",
            "draft-vs-draft-eager.c64.texts.other",
        )
    }
    assert list(values.values()) == [8, 8, 2, 6]
    # Neither of windows by other clients, nor of arms that differ in several factors.
    assert not [id_ for id_ in found if "plain" in id_ or "draft-eager-vs-fp8" in id_]


@pytest.mark.parametrize("name", ["dispersion", "latency"])
def test_a_note_stands_below_what_compares_arms(name):
    tables = {table.name: table for table in study_tables([read_run(RunDirectory(HOST_2))])}
    assert tables[name].notes[-1] == (
        "Arms draft and draft-eager answered 5 of 6 prompts (window c1), 6 of 8 prompts "
        "(window c8), 6 of 8 prompts (window c64) with other tokens: "
        "their acceptance and latency are of different texts."
    )
    assert not any("different texts" in note for note in tables["goodput"].notes)


def test_many_pairs_of_arms_are_named_in_one_note(tmp_path):
    plan = fixed(small_plan())
    others = tuple(
        replace(plan.arms[1], id=f"none-{i}", factors={"speculation": f"none {i}"}) for i in "ab"
    )
    plan = replace(plan, arms=(*plan.arms, *others))
    run = read_run(
        answered(tmp_path / "run-1", lambda boot, _window, i: f"{boot[4:]} {i % 4}", plan)
    )
    tables = {table.name: table for table in study_tables([run])}
    (note,) = [note for note in tables["latency"].notes if "different texts" in note]
    assert note.startswith("Compared arms that answered with other tokens, so that their ")
    assert note.count("4 of 4 prompts (window c1), 4 of 4 prompts (window c2)") == 6
    assert "; none-a and none-b 4 of 4 prompts" in note


def test_arms_that_answered_alike_have_no_note(tmp_path):
    run = read_run(answered(tmp_path / "run-1", lambda _boot, _window, i: str(i % 4)))
    tables = {table.name: table for table in study_tables([run])}
    assert not any("different texts" in note for note in tables["latency"].notes)
    rows = table_rows(run)
    assert cells(rows["draft", "c1"]) == (2, 4, 4, 4, 4, "none")


def test_boots_that_answered_otherwise_are_counted(tmp_path):
    def answer(boot: str, _window: str, index: int) -> str:
        # One prompt of four, in the second block, by the arm that drafts.
        return f"{index % 4}{'!' if boot.startswith('b02') and 'draft' in boot else ''}"[:2]

    rows = table_rows(read_run(answered(tmp_path / "run-1", answer)))
    assert cells(rows["draft", "c1"]) == (2, 4, 8, 0, 4, "none")
    assert cells(rows["none", "c1"]) == (2, 4, 4, None, None, "-")


def test_without_token_ids_nothing_is_told(tmp_path):
    def answer(boot: str, window: str, index: int) -> str | None:
        return None if (window, index) == ("c1", 5) and "none" in boot else str(index % 4)

    directory = answered(tmp_path / "run-1", answer)
    rows = table_rows(read_run(directory))
    assert cells(rows["none", "c1"]) == (2, None, None, None, None, "-")
    assert cells(rows["draft", "c1"]) == (2, 4, 4, None, None, "none")
    assert cells(rows["draft", "c2"]) == (2, 4, 4, 4, 4, "none")
    run = read_study_run(directory)
    (claim,) = (c for c in claims_of("s", run.plan) if c.id == "s.none.c1.texts.distinct")
    with pytest.raises(ClaimError, match="do not tell"):
        claim.function(Reading("s", (run,)))


def test_windows_in_which_any_two_answers_differ_are_left_out(tmp_path):
    run = read_run(make_run(tmp_path / "run-1", small_plan(), Shape()))
    table = texts_table([run], run_metrics(run))
    assert table.rows == ()
    assert table.notes[-1] == (
        "Left out: c1 (every request has a prompt of its own), "
        "c2 (every request has a prompt of its own)."
    )
    assert not [c.id for c in claims_of("s", run.started.plan) if ".texts." in c.id]


def test_a_void_window_and_a_failed_boot_have_no_say(tmp_path):
    shape = Shape(void_first_window=True, fail_last=True)
    run = read_run(make_run(tmp_path / "run-1", fixed(small_plan(requests=4)), shape))
    boots = {cell: row["boots"] for cell, row in table_rows(run).items()}
    assert sum(boots.values()) == len(run_metrics(run)) < 8


def test_the_cache_gives_the_same_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_cache, "BATCH_CHUNKS", 20)
    directory = answered(
        tmp_path / "run-1",
        lambda boot, _window, i: None if i == 7 else f"{boot} {i % 5}",
        fixed(small_plan(requests=20)),
    )
    want = [m.answers for m in run_metrics(read_run(directory))]
    for _ in range(2):  # as it is made, and as it is read again
        run = read_run_in_batches(directory, tmp_path / "cache", large_bytes=0)
        assert [m.answers for m in run_metrics(run)] == want
    assert max(len(list(w.source.batches())) for b in run.boots for w in b.windows) > 1


def other_answers(run: StudyRun, run_id: str, arm: str, prompts: int) -> StudyRun:
    """The same run under another name, whose arm answered the first prompts with other tokens."""

    def changed(answers: Answers) -> Answers:
        pairs = list(answers.each())
        pairs[:prompts] = [pair[:-1] + bytes([pair[-1] ^ 1]) for pair in pairs[:prompts]]
        return Answers(b"".join(pairs))

    return replace(
        run,
        started=replace(run.started, run_id=run_id),
        metrics=tuple(
            replace(m, run_id=run_id, answers=changed(m.answers) if m.arm == arm else m.answers)
            for m in run.metrics
        ),
        boots=tuple(replace(boot, run=run_id) for boot in run.boots),
    )


def test_verdicts_of_records_against_records_name_other_texts():
    run = read_study_run(RunDirectory(SMOKE))
    found = {
        verdict.id: verdict.reason
        for verdict in compared_verdicts([run], [other_answers(run, "copy", "draft", 3)])
    }
    told = {id_ for id_, reason in found.items() if "of different texts" in reason}
    assert "smoke-cpu.draft.c8.acceptance" in told
    assert "smoke-cpu.draft.c8.step-gap.p95" in told
    assert "smoke-cpu.draft.c8.throughput" not in told
    assert not [id_ for id_ in told if not id_.startswith("smoke-cpu.draft.")]
    assert found["smoke-cpu.draft.c8.acceptance"].endswith(
        "the two sides answered 3 of 8 prompts with other tokens: "
        "acceptance and latency are of different texts"
    )


def test_a_published_ranking_of_arms_names_other_texts(tmp_path):
    run = made_run(tmp_path / "run-1", fixed(l4_plan(2)), Made())
    published = {
        id_: one for id_, one in load_published(ROOT).items() if one.test == "zero-goodput"
    }
    (alike,) = published_verdicts([run], published)
    (apart,) = published_verdicts([other_answers(run, "run-1", "ngram-bf16-graph", 1)], published)
    assert "different texts" not in alike.reason
    assert (
        "arms ngram-bf16-graph and none-bf16-graph answered 1 of 4 prompts (window c64)"
        in apart.reason
    )
    assert alike.outcome == apart.outcome


def test_the_page_links_a_count_to_the_claim_that_prints_it():
    run = read_run(RunDirectory(HOST_2))
    table = texts_table([run], run_metrics(run))
    links = Links(lambda _row, _table: "", lambda id_: f"#{id_}", "s")
    view = table_view(table, "t", links, ROOT)
    claims = {cell.claim for row in view.rows for cell in row if cell.claim}
    known = {claim.id for claim in claims_of("s", run.started.plan)}
    assert "s.draft-vs-draft-eager.c64.texts.same" in claims
    assert claims <= known
