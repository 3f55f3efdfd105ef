"""The client's times against the server's own clock, by arm, window and quantity.

Invariant: one value a boot; a boot whose pages do not tell of exactly the window's requests is left
out, counted and told why.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from analysis.plan_order import by_arm
from analysis.server_clock import QUANTITIES, Means, WindowClock
from analysis.table import MISSING, Column, Table, number, words

_DIGITS = 3
_ENDS = ("median", "least", "greatest")


def server_clock_table(clocks: Sequence[WindowClock]) -> Table:
    """The table over these windows, those of other clients too."""
    cells: dict[tuple[str, str, str], list[WindowClock]] = {}
    for one in sorted(clocks, key=by_arm):
        cells.setdefault((one.arm, one.window, one.client), []).append(one)
    rows = [
        (
            *cell,
            quantity.name,
            quantity.unit,
            *_row([one.means[quantity.id] for one in found]),
        )
        for cell, found in cells.items()
        for quantity in QUANTITIES
    ]
    return Table(
        "server-clock",
        "The client's times against the server's own clock",
        (
            (
                "Server: its mean over the window's requests, from the /metrics pages before and "
                "after. Over the server's: the client's mean over the same requests minus it: what "
                "client and HTTP front end add. Median, least and greatest over boots."
            ),
            (
                "The server's clock starts when it begins to tokenise a request and ends when the "
                "API server has the token from the engine. Outside of it lie sending, parsing and "
                "waiting for the API server before the stamp; detokenising, sending and receipt "
                "after it."
            ),
            (
                "Ramp requests count on both sides, since the server counts them: these means are "
                "not those of the latency table. TPOT(n-1): the server's is the engine core's own."
            ),
            (
                "Left out: boots whose pages do not tell of exactly the window's requests, and "
                "why; a mean of others would be compared with these."
            ),
        ),
        (
            *words("arm", "window", "client", "quantity", "unit"),
            Column("boots"),
            *[Column(f"server, {end}") for end in _ENDS],
            *[Column(f"over the server's, {end}") for end in _ENDS],
            *words("left out"),
        ),
        tuple(rows),
    )


def _row(found: Sequence[Means]) -> tuple[str, ...]:
    server = [one.server_ms for one in found if one.server_ms is not None]
    over = [one.over_server_ms for one in found if one.over_server_ms is not None]
    reasons = Counter(one.why for one in found if one.why)
    return (
        str(len(over)),
        *_over_boots(server),
        *_over_boots(over),
        "; ".join(f"{count}: {why}" for why, count in sorted(reasons.items())) or MISSING,
    )


def _over_boots(values: Sequence[float]) -> tuple[str, ...]:
    if not values:
        return (MISSING,) * len(_ENDS)
    found = (statistics.median(values), min(values), max(values))
    return tuple(number(value, _DIGITS) for value in found)
