"""Verified runs as they are read: what is flagged, what is left out, what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from sealed_run import DRAFTED, Shape, make_run, request, small_plan

from analysis.acceptance import acceptance, tally
from analysis.metrics import run_metrics
from analysis.one_kind import require_one_kind
from analysis.reading import Run, read_run
from analysis.requests import RequestGatherer
from records.decode import to_object
from records.errors import ChainError, FormatError
from records.measurement import Request
from records.schema import Counters, WindowRequests

CAPTURES = Path(__file__).parent.parent / "fixtures" / "vllm-0.29.0" / "cpu" / "http"


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with an interrupted boot, a failed one and a void window in a completed one."""
    shape = Shape(interrupt_first=True, fail_last=True, void_first_window=True)
    return read_run(make_run(tmp_path_factory.mktemp("runs") / "run-1", small_plan(), shape))


def columns(requests: list[Request]):
    gatherer = RequestGatherer()
    gatherer.add([to_object(r) for r in requests])
    return gatherer.columns()


def counters(drafts: int, accepted: int, tokens: int) -> Counters:
    return Counters(drafts, drafts * DRAFTED, accepted, tokens, 0, 0, 0)


def test_boots_that_failed_or_were_interrupted_are_there(eventful):
    outcomes = sorted(boot.outcome for boot in eventful.boots)
    assert outcomes == ["completed"] * 4 + ["failed", "interrupted"]
    assert [b.started.boot for b in eventful.boots if not b.planned] == ["prime-draft"]
    (failed,) = (boot for boot in eventful.boots if boot.outcome == "failed")
    assert failed.ended.cause == "the engine ran out of memory"


def test_void_and_unfinished_windows_are_flagged_and_not_used(eventful):
    windows = [(boot, window) for boot in eventful.boots for window in boot.windows]
    void = [(boot, window) for boot, window in windows if window.void]
    assert len(void) == 3
    assert not any(window in boot.usable_windows for boot, window in void)
    assert sum("unfinished" in " ".join(window.void) for _, window in void) == 1
    used = {(b.started.boot, w.window.id) for b, w in windows if w in b.usable_windows}
    assert used == {(m.boot, m.window) for m in run_metrics(eventful)}
    assert len(used) == len(windows) - len(void)


def test_how_a_run_ended(eventful):
    assert (eventful.run_id, eventful.sealed) == ("run-1", True)
    assert (len(eventful.resumed), eventful.started.synthetic) == (1, False)
    assert (eventful.ended.completed, eventful.ended.failed) == (3, 1)


def test_a_window_holds_every_request(eventful):
    boot = next(b for b in eventful.boots if b.usable_windows)
    requests = boot.usable_windows[1].requests
    assert requests.scalars["index"].tolist() == list(range(6))
    assert requests.ramp.tolist() == [True, False, False, False, False, False]
    assert set(requests.chunks.output_tokens().tolist()) == {16}


def test_chunk_times_count_from_the_start_of_the_window():
    one = columns([request(0, 1, 0), request(1, 1, 0)])
    second = one.chunks.chunk_ns[one.chunks.request_offsets[1]]
    assert second == request(1, 1, 0).sent_ns + request(1, 1, 0).chunk_ns[0]


def test_ramp_is_left_out_of_latency_only():
    made = columns([request(i, 3, DRAFTED) for i in range(5)])
    assert made.for_latency.requests == 3
    assert made.for_goodput.requests == 5
    assert len(made) == 5


def test_failed_requests_keep_their_tokens_in_throughput_only(tmp_path):
    def edit(event):
        if isinstance(event, WindowRequests) and event.requests[0].index == 0:
            first = event.requests[0]
            cut = replace(
                first,
                outcome="failed",
                error="reset",
                chunk_ns=first.chunk_ns[:2],
                chunk_tokens=first.chunk_tokens[:2],
                step_accepted=(),
            )
            return replace(event, requests=(cut, *event.requests[1:]))
        return event

    run = read_run(make_run(tmp_path / "run-1", small_plan(), Shape(edit=edit)))
    one = next(m for m in run_metrics(run) if m.arm == "none" and m.window == "c1")
    assert one.latency_requests == 5
    assert one.output_tokens_per_s == pytest.approx((5 * 16 + 2) / (one.wall_ns / 1e9))
    assert one.goodput[0].requests == 5


def test_unknown_key_in_a_request_is_refused():
    value = to_object(request(0, 1, 0))
    with pytest.raises(FormatError, match="colour"):
        RequestGatherer().add([{**value, "colour": "red"}])


def test_nothing_is_read_from_a_changed_run(tmp_path):
    run = make_run(tmp_path / "run-1", small_plan(), Shape())
    data = run.events.read_bytes()
    run.events.write_bytes(data.replace(b'"completed"', b'"cancelled"', 1))
    with pytest.raises(ChainError):
        read_run(run)


def test_synthetic_and_real_runs_do_not_mix(tmp_path, eventful):
    made = read_run(make_run(tmp_path / "run-s", small_plan(), Shape(synthetic=True)))
    with pytest.raises(FormatError, match="run-s"):
        require_one_kind([eventful, made])


def test_open_run_can_be_read(tmp_path):
    run = read_run(make_run(tmp_path / "run-1", small_plan(), Shape(seal=False)))
    assert not run.sealed
    assert run.ended is None


class TestAcceptance:
    """Server counters against chunks, by the identity in analysis/acceptance.py."""

    def test_equal_counts_are_exact(self):
        made = columns([request(i, 1, DRAFTED) for i in range(4)])
        steps, accepted = made.steps.size, int(made.steps.sum())
        cut = int((made.steps.sum() + made.chunks.chunk_tokens.size) - 64)
        found = acceptance(tally(made, DRAFTED), counters(steps, accepted, 64))
        assert found.verdict == "exact"
        assert found.truncation_bound == cut
        assert found.server_length == 1 + accepted / steps

    def test_a_capture_of_the_real_engine(self):
        """A real response whose usage chunk tells its steps; max_tokens cut the last one."""
        raw = (CAPTURES / "completions-usage.http").read_bytes()
        chunks = [json.loads(ids) for ids in re.findall(rb'"token_ids":(\[[0-9,]*\])', raw)]
        steps = json.loads(re.search(rb'"per_step_accepted":(\[[0-9,]*\])', raw)[1])
        tokens = tuple(len(ids) for ids in chunks)
        one = replace(
            request(0, 1, DRAFTED),
            chunk_ns=tuple(range(len(tokens))),
            chunk_tokens=tokens,
            step_accepted=tuple(steps),
        )
        server = counters(len(steps), sum(steps), sum(tokens))
        found = acceptance(tally(columns([one]), DRAFTED), server)
        assert found.verdict == "exact"
        assert found.accepted_server - found.accepted_client == found.truncation_bound == 1
        assert found.undrafted_chunks == 0
        without = acceptance(tally(columns([replace(one, step_accepted=())]), DRAFTED), server)
        assert without.verdict == "within truncation"

    def test_steps_without_a_draft(self):
        """An n-gram drafter that found nothing: chunks of one token that no counter knows."""
        plain = replace(request(0, 1, DRAFTED), step_accepted=())
        extra = replace(
            plain,
            chunk_ns=(*plain.chunk_ns, plain.chunk_ns[-1] + 1),
            chunk_tokens=(*plain.chunk_tokens, 1),
        )
        accepted = sum(plain.chunk_tokens) - len(plain.chunk_tokens)
        drafts = len(plain.chunk_tokens) - 1
        found = acceptance(tally(columns([extra]), DRAFTED), counters(drafts, accepted, 17))
        assert (found.verdict, found.undrafted_chunks) == ("exact", 1)
        assert found.client_length == found.server_length

    def test_two_steps_in_a_last_chunk_without_a_list(self):
        """As vLLM 0.29.0 sends the end of some requests: the list of their steps is lost."""
        plain = replace(request(0, 1, DRAFTED), step_accepted=())
        joined = replace(plain, chunk_ns=plain.chunk_ns[:-1], chunk_tokens=(
            *plain.chunk_tokens[:-2], plain.chunk_tokens[-2] + plain.chunk_tokens[-1]
        ))  # fmt: skip
        accepted = sum(plain.chunk_tokens) - len(plain.chunk_tokens)
        server = counters(len(plain.chunk_tokens) - 1, accepted, 17)
        found = acceptance(tally(columns([joined]), DRAFTED), server)
        assert found.verdict == "within last chunks"
        listed = replace(joined, step_accepted=(0,) * (len(joined.chunk_tokens) - 1))
        assert acceptance(tally(columns([listed]), DRAFTED), server).verdict == "disagree"

    def test_merged_steps_disagree(self):
        """The server put three steps into one chunk: chunks are no longer steps."""
        plain = replace(request(0, 1, DRAFTED), step_accepted=())
        accepted, drafts = sum(plain.chunk_tokens) - len(plain.chunk_tokens), 6
        one, two, three, *rest = plain.chunk_tokens
        tokens = (one + two + three, *rest)
        merged = replace(plain, chunk_ns=plain.chunk_ns[2:], chunk_tokens=tokens)
        found = acceptance(tally(columns([merged]), DRAFTED), counters(drafts, accepted, 16))
        assert found.verdict == "disagree"

    def test_more_accepted_than_could_be_cut_disagrees(self):
        plain = replace(request(0, 1, DRAFTED), step_accepted=())
        found = acceptance(tally(columns([plain]), DRAFTED), counters(6, 40, 16))
        assert found.verdict == "disagree"

    def test_cancelled_requests_cannot_be_compared(self):
        left = replace(request(0, 1, DRAFTED), outcome="cancelled", error="x", step_accepted=())
        found = acceptance(tally(columns([left]), DRAFTED), counters(9, 40, 30))
        assert found.verdict == "not comparable"

    def test_no_speculation(self):
        found = acceptance(tally(columns([request(0, 1, 0)]), 0), Counters(*[-1] * 7))
        assert (found.verdict, found.server_length) == ("no speculation", None)
        assert found.tokens_per_chunk == 1.0

    def test_per_position(self):
        made = columns([replace(request(0, 1, DRAFTED), step_accepted=(0, 1, 2, 4))])
        found = acceptance(tally(made, DRAFTED), counters(4, 7, 16))
        assert found.per_position_ppm == (750_000, 500_000, 250_000, 250_000)
