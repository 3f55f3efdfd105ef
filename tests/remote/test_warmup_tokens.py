"""How much a warm-up generates is the plan's to say; the server's own counter tells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from audit.counter_page import read_page
from records.load import Load
from tests.remote.void_runs import TOKENS, WIDE, carry_out, plan, window


@pytest.mark.parametrize(("asked", "generated"), [(0, TOKENS), (4, 4), (10 * TOKENS, TOKENS)])
def test_requests_of_the_warm_up_are_as_long_as_the_plan_says(
    tmp_path: Path, asked: int, generated: int
) -> None:
    what = plan({"only": ()}, WIDE, [window(Load("closed", 1, requests=2))])
    what = replace(what, warmup=replace(what.warmup, output_tokens=asked))
    (seen,) = carry_out(tmp_path, what).values()
    (before,) = [name for name in seen.ended.metrics if ".before." in name]
    assert read_page(tmp_path / "r" / before)["generation_tokens"] == generated
    assert [r.completion_tokens for r in seen.requests] == [TOKENS, TOKENS]
