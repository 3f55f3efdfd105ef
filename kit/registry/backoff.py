"""When to ask a registry again: pure arithmetic over attempts and the Retry-After header.

Invariant: a wait never exceeds `LONGEST_S`, and the number of attempts is bounded.
"""

from __future__ import annotations

import datetime
from email.utils import parsedate_to_datetime

ATTEMPTS = 6
FIRST_S = 1.0
LONGEST_S = 120.0


def wait_s(attempt: int, retry_after: str, now: datetime.datetime) -> float:
    """Seconds before attempt `attempt` + 1: what the registry says, else 1, 2, 4 … (RFC 9110).

    Retry-After is a number of seconds or an HTTP date; one that is neither counts as absent, since
    waiting by our own rule is then right too.
    """
    text = retry_after.strip()
    if text.isdecimal():
        return min(float(text), LONGEST_S)
    if text:
        try:
            then = parsedate_to_datetime(text)
        except ValueError:
            then = None
        if then is not None:
            if then.tzinfo is None:
                then = then.replace(tzinfo=datetime.timezone.utc)
            return min(max(0.0, (then - now).total_seconds()), LONGEST_S)
    return min(FIRST_S * (1 << (attempt - 1)), LONGEST_S)
