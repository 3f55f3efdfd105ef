"""A request's chunks held against the server's own list of its steps.

Invariant: of a request with a list nothing is left to guess: what its last chunk lost is the list's
last word less what came, and a list that says otherwise of any chunk is not of these chunks.
"""

from __future__ import annotations

from collections.abc import Sequence


def cut_off(chunk_tokens: Sequence[int], step_accepted: Sequence[int]) -> int | None:
    """Accepted tokens that the request's limit cut off its last chunk; None: not its chunks.

    A chunk after the first holds a step: one token and those accepted (analysis/acceptance.py). A
    step without a draft is a chunk of one token and, with an n-gram drafter or after a preemption,
    not in the list: so a list is its chunks in order, those of one token left out where it is
    shorter, and position by position where it is as long. So it was of every list in the records of
    vLLM 0.29.0.
    """
    later = chunk_tokens[1:]
    if _are_steps(later, step_accepted):
        return 0
    if not later or not step_accepted or not _are_steps(later[:-1], step_accepted[:-1]):
        return None
    cut = step_accepted[-1] - (later[-1] - 1)
    return cut if 0 < cut <= step_accepted[-1] else None


def _are_steps(chunk_tokens: Sequence[int], step_accepted: Sequence[int]) -> bool:
    """Whether the list is these chunks in order, but for chunks of one token."""
    at = 0
    for tokens in chunk_tokens:
        if at < len(step_accepted) and step_accepted[at] == tokens - 1:
            at += 1
        elif tokens != 1:
            return False
    return at == len(step_accepted)
