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
    not in the list: so the steps that accepted any are held against the chunks of several tokens,
    in order. So it was of every list in the records of vLLM 0.29.0.
    """
    later = chunk_tokens[1:]
    if len(step_accepted) > len(later):
        return None
    listed = [accepted for accepted in step_accepted if accepted]
    came = [tokens - 1 for tokens in later if tokens != 1]
    if listed == came:
        return 0
    last = later[-1] - 1
    before = came[:-1] if last else came
    if not listed or listed[:-1] != before or not 0 <= last < listed[-1]:
        return None
    return listed[-1] - last
