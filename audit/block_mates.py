"""Arms that a claim, or a text, sets side by side although they were not measured in one block.

Invariant: told from the boots that the claim says it measured and from the plan's own numbers of
blocks, by nothing of what chose those boots (analysis/claiming/common_blocks.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations

from analysis.claiming.claim import Value
from analysis.claiming.documents import Citation
from analysis.claiming.quantities import other_answers, same_answers
from analysis.claiming.reading import StudyRun
from audit.paper import PaperView
from audit.side_by_side import cited_in, passages

# Which token is the likeliest does not turn on how fast a host is in one block or another.
_OF_TOKENS = (same_answers, other_answers)
# Units of what does.
_OF_SPEED = ("tok/s", "req/s", "ms", "ms/token")


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


def cited_across(view: PaperView) -> Iterator[tuple[Citation, Value, str]]:
    """What one finding, or one paragraph, cites of the speed of two arms that share no block.

    Of one study and window, each two arms once a document, at the place that names the second.
    """
    blocks = {(run.run_id, boot.started.boot): boot.planned.block
              for run in view.evaluation.runs.values() for boot in run.boots}  # fmt: skip
    for document in view.documents:
        told = set()
        for passage in passages(document, cited_in(view, document)):
            seen: dict[tuple[str, str], dict[str, tuple[Citation, Value]]] = {}
            for at, value in passage:
                if value.claim.unit in _OF_SPEED and len(value.arms) == 1:
                    for window in sorted({use.window for use in value.measured}):
                        of = seen.setdefault((value.claim.study, window), {})
                        of.setdefault(value.arms[0], (at, value))
            for (study, window), of in sorted(seen.items()):
                for one, two in combinations(sorted(of), 2):
                    held = [
                        {
                            (use.run, blocks.get((use.run, use.boot), 0))
                            for use in of[arm][1].measured
                            if use.window == window
                        }
                        for arm in (one, two)
                    ]
                    if held[0] & held[1] or (study, window, one, two) in told:
                        continue
                    told.add((study, window, one, two))
                    at, value = max(of[one], of[two], key=lambda found: found[0].line)
                    yield at, value, f"window {window}: arms {one} and {two} share no block"
