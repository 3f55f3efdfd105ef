"""How a reader checks the page: what to type, and what that shows.

Invariant: each command works as it stands from the project's root, or, where the records lie out of
it, from above them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.reading import Run
from analysis.report.model import ClaimView, Command
from analysis.trace import RunTrace


def commands(
    runs: Sequence[Run],
    traces: Mapping[str, RunTrace],
    claims: Sequence[ClaimView],
    places: Mapping[str, str],
) -> tuple[Command, ...]:
    """The commands, from the widest to the narrowest. `places`: run id -> its directory."""
    first = runs[0].run_id
    where = places[first]
    seal = traces[first].seal.partition(":")[2]
    synthetic = runs[0].started.synthetic
    found = [
        Command(
            f"kit report {where if synthetic else first}",
            "makes this page again from the records, with the same libraries byte for byte",
        ),
        Command(
            f"sha256sum {where}/seal.json",
            f"prints {seal}, the digest that names this run in every claim on it",
        ),
        Command(
            f"sed -n 1p {where}/events.jsonl",
            "prints one line of the journal; traces name lines as file:line",
        ),
    ]
    if not synthetic:
        found = [
            Command(
                "make audit",
                "holds every chain, seal, binding, table, claim and finding to account; writes "
                "nothing",
            ),
            *found,
            Command("kit compare", "comes to the verdicts again, with the tests behind them"),
            Command(
                "make reproduce HOST=user@gpu",
                "measures again, on a machine of yours; its records then stand beside these",
            ),
        ]
    if claims:
        found.append(
            Command(f"kit trace {claims[0].id}", "walks one number down to lines and digests")
        )
    return tuple(found)
