"""A list of steps is held against its request's chunks, and against no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.own_steps import cut_off

DATA = Path(__file__).parents[2] / "records" / "data"
_STEPS = st.lists(st.integers(0, 4), min_size=1, max_size=20)


@given(_STEPS, st.integers(0, 4))
def test_what_the_end_cut_off_is_told_to_the_token(steps: list[int], cut: int) -> None:
    cut = min(cut, steps[-1])
    chunks = [1, *(1 + accepted for accepted in steps)]
    chunks[-1] -= cut
    assert cut_off(chunks, steps) == cut


@given(_STEPS, st.data())
def test_a_token_in_another_chunk_is_told(steps: list[int], data: st.DataObject) -> None:
    chunks = [1, *(1 + accepted for accepted in steps), 1]
    at = data.draw(st.integers(1, len(steps)))
    to = data.draw(st.integers(1, len(steps)).filter(lambda i: i != at)) if len(steps) > 1 else at
    if at == to or chunks[at] < 2:
        return
    chunks[at], chunks[to] = chunks[at] - 1, chunks[to] + 1
    assert cut_off(chunks, [*steps, 0]) is None


@given(_STEPS, st.data())
def test_a_step_that_changed_its_place_is_told(steps: list[int], data: st.DataObject) -> None:
    chunks = [1, *(1 + accepted for accepted in steps), 1]
    moved = data.draw(st.permutations(steps))
    assert cut_off(chunks, [*moved, 0]) == (0 if moved == steps else None)


@given(_STEPS, st.data())
def test_chunks_of_one_token_may_be_of_no_step(steps: list[int], data: st.DataObject) -> None:
    chunks = [1 + accepted for accepted in steps]
    for at in data.draw(st.lists(st.integers(0, len(chunks)), max_size=5)):
        chunks.insert(at, 1)
    assert cut_off([1, *chunks], steps) == 0


@pytest.mark.parametrize(
    ("chunks", "steps", "cut"),
    [
        ((1, 3, 1, 2), (2, 1), 0),  # a step that drafted nothing is not in the list
        ((1, 3, 1, 1, 1, 1), (2,), 0),
        ((1, 1, 3, 1), (2, 3), 3),  # all that the last step accepted lay beyond the limit
        ((1, 1, 1, 4), (3, 0, 0), None),  # as long as the chunks, and in another order
        ((1, 3, 1, 2), (0, 0, 1), None),
        ((1, 1, 3, 2), (2, 0, 1), None),
        ((1, 1, 3, 1, 3), (2, 0, 0), None),
        ((1, 3, 1, 2, 1), (2, 0, 0, 1), None),
        ((1, 3, 2, 1, 1), (2, 0, 1), None),  # shorter: drafted, and nothing accepted, in between
        ((1, 3, 1, 2), (3, 0, 1), None),  # only the last chunk is cut off
        ((1, 3, 4), (2, 1, 1), None),  # two steps in one chunk
        ((1, 3, 4), (2, 2), None),  # more in the last chunk than its step gave
        ((1,), (2,), None),  # no step came
    ],
)
def test_lists_and_chunks(chunks: tuple[int, ...], steps: tuple[int, ...], cut: int | None) -> None:
    assert cut_off(chunks, steps) == cut


def test_every_list_of_the_shipped_records_is_of_its_requests_chunks() -> None:
    told = 0
    for journal in sorted(DATA.glob("*/events.jsonl")):
        for line in journal.read_bytes().splitlines():
            if b'"type":"window.requests"' not in line:
                continue
            for request in json.loads(line)["value"]["requests"]:
                if steps := request["step_accepted"]:
                    assert cut_off(request["chunk_tokens"], steps) is not None
                    told += 1
    assert told > 1_000
