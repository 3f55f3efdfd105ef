"""Arms that a claim sets side by side although a block that it read holds only some of them.

Invariant: told from the boots that the claim says it measured and from the plan's own numbers of
blocks, by nothing of what chose those boots (analysis/claiming/common_blocks.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from analysis.claiming.claim import Value
from analysis.claiming.quantities import other_answers, same_answers
from analysis.claiming.reading import StudyRun

# Which token is the likeliest does not turn on how fast a host is in one block or another.
_OF_TOKENS = (same_answers, other_answers)


def across_blocks(value: Value, runs: Sequence[StudyRun]) -> Iterator[str]:
    """Each window in which arms were not measured in the same blocks of a run, in words."""
    function = value.claim.function
    if isinstance(function, partial) and function.func in _OF_TOKENS:
        return
    blocks = {(run.run_id, boot.started.boot): boot.planned.block
              for run in runs for boot in run.boots}  # fmt: skip
    beside = {(made.first, made.second) for made in value.comparisons} | {value.ranked}
    for arms in sorted(beside):
        for window in sorted({use.window for use in value.measured if use.arm in arms}):
            held: dict[str, set[tuple[str, int]]] = {arm: set() for arm in arms}
            for use in value.measured:
                if use.window == window and use.arm in held:
                    held[use.arm].add((use.run, blocks.get((use.run, use.boot), 0)))
            lacking = {
                arm: set[tuple[str, int]]().union(*held.values()) - some
                for arm, some in held.items()
            }
            for arm, missing in lacking.items():
                if missing:
                    run, block = min(missing)
                    yield f"window {window}: block {block} of {run} was read, without arm {arm}"
