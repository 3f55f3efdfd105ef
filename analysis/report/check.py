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
    ids = [run.run_id for run in runs]
    seals = [traces[id_].seal.partition(":")[2] for id_ in ids]
    synthetic = runs[0].started.synthetic
    one = len(ids) == 1
    found = [
        Command(
            f"kit report {' '.join(places[id_] if synthetic else id_ for id_ in ids)}",
            "makes this page again from the records, with the same libraries byte for byte",
        ),
        Command(
            f"sha256sum {' '.join(f'{places[id_]}/seal.json' for id_ in ids)}",
            f"prints {seals[0]}, the digest that names this run in every claim on it"
            if one
            else f"prints the digests that name these runs in every claim on them: "
            f"{', '.join(seals)}",
        ),
        Command(
            f"head -n 1 {' '.join(f'{places[id_]}/events.jsonl' for id_ in ids)}",
            f"prints the first line of {'the journal' if one else 'each journal'}; traces name "
            "lines as file:line",
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
            Command(
                f"kit compare {' '.join(ids)}",
                "comes to the verdicts again, with the tests behind them",
            ),
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
