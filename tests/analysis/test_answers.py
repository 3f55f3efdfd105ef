"""Answers to prompts: the same in any batches, counted as a plain loop counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed_run import request, small_plan

from analysis.answers import Agreement, Answers, agreement, answers_of, together, why_untold
from analysis.requests import RequestColumns, RequestGatherer, put_together
from records.decode import to_object
from records.digest import Digest
from records.errors import FormatError

PROMPTS = 3
# A request's outcome, and which text it was answered with; None: a chunk came without token ids.
Sent = tuple[str, int | None]
SENT = st.lists(
    st.tuples(st.sampled_from(["completed", "completed", "failed"]), st.none() | st.integers(0, 2)),
    max_size=12,
)
TOLD = st.lists(st.tuples(st.just("completed"), st.integers(0, 2)), max_size=12)


def columns(sent: Sequence[Sent], first: int = 0) -> RequestColumns:
    gatherer = RequestGatherer()
    for index, (outcome, text) in enumerate(sent, first):
        digest = None if text is None else Digest.of(b"text %d" % text)
        made = replace(
            request(index, 1, 0),
            outcome=outcome,
            error="" if outcome == "completed" else "reset",
            tokens_digest=digest,
        )
        gatherer.add([to_object(made)])
    return gatherer.columns()


def answers(sent: Sequence[Sent]) -> Answers:
    return answers_of(columns(sent), PROMPTS)


def plain(sent: Sequence[Sent]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for index, (outcome, text) in enumerate(sent):
        if outcome == "completed" and text is not None:
            found.setdefault(index % PROMPTS, set()).add(text)
    return found


@given(SENT, st.integers(0, 12))
def test_batches_change_nothing(sent, cut):
    parts = [columns(sent[:cut]), columns(sent[cut:], min(cut, len(sent)))]
    assert together(answers_of(part, PROMPTS) for part in parts) == answers(sent)
    assert answers_of(put_together(parts), PROMPTS) == answers(sent)


@given(SENT)
def test_counts_are_those_of_a_plain_loop(sent):
    found, want = answers(sent), plain(sent)
    assert found.prompts == len(want)
    assert found.distinct == sum(map(len, want.values()))
    assert found.told == all(text is not None for how, text in sent if how == "completed")


@given(TOLD, TOLD)
def test_two_sides_agree_where_all_their_answers_are_one(one, two):
    first, second = plain(one), plain(two)
    both = first.keys() & second.keys()
    want = Agreement(sum(len(first[p] | second[p]) == 1 for p in both), len(both))
    assert agreement(answers(one), answers(two)) == want
    assert agreement(answers(two), answers(one)) == want
    assert want.same + want.other == want.compared


@given(TOLD)
def test_a_side_agrees_with_itself_where_it_always_answered_alike(sent):
    found = answers(sent)
    alike = agreement(found, found)
    assert alike is not None
    assert alike.compared == found.prompts
    assert (alike.other == 0) == (found.distinct == found.prompts)


def test_what_is_not_told_agrees_with_nothing():
    known, unknown = answers([("completed", 0)]), answers([("completed", None)])
    assert agreement(known, unknown) is agreement(unknown, known) is agreement(None, known) is None
    assert answers([("failed", None)]).told


def test_only_fixed_prompts_under_greedy_sampling_are_looked_at():
    unique = small_plan().windows[0]
    fixed = replace(unique, prompts=replace(unique.prompts, unique=False))
    drawn = replace(fixed, sampling=replace(fixed.sampling, temperature=Decimal("0.7")))
    assert why_untold(unique) == "every request has a prompt of its own"
    assert why_untold(fixed) == ""
    assert why_untold(drawn) == "tokens are drawn at random"


def test_a_digest_that_is_none_is_refused():
    value = {**to_object(request(0, 1, 0)), "tokens_digest": "sha256:abc"}
    with pytest.raises(FormatError, match="not a digest"):
        RequestGatherer().add([value])
