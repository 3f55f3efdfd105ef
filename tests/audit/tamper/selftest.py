"""Spoil a healthy repository in every known way, and see whether the audit notices.

`python -m tests.audit.tamper.selftest` (make audit-selftest) prints a row a corruption and writes
build/audit-selftest.json. Each row is audited twice, in full and incrementally on top of what the
healthy repository left: both must give the same findings.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from audit.runner import Report, audit
from tests.audit.tamper import (
    of_bytes,
    of_closing,
    of_history,
    of_meaning,
    of_order,
    of_text,
    of_windows,
)
from tests.audit.tamper.corruption import Corruption
from tests.audit.tamper.healthy import Repository, build, copy_of

OUTPUT = Path(__file__).parents[3] / "build" / "audit-selftest.json"
CORRUPTIONS: tuple[Corruption, ...] = (
    *of_bytes.ALL,
    *of_closing.ALL,
    *of_history.ALL,
    *of_meaning.ALL,
    *of_order.ALL,
    *of_text.ALL,
    *of_windows.ALL,
)


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one corruption. `known`: runs that the incremental audit passed over."""

    corruption: str
    expected: str
    found: list[str]
    caught: bool
    incremental_agrees: bool
    known: list[str]


def healthy_reports(repository: Repository) -> tuple[Report, Report]:
    """The healthy repository in full, and again on top of that."""
    full = audit(repository.root, repository.data)
    return full, audit(repository.root, repository.data, trusted=frozenset(full.clean))


def spoil(healthy: Repository, clean: frozenset[str], corruption: Corruption, to: Path) -> Row:
    """Apply one corruption to a copy at `to`, and audit it."""
    repository = copy_of(healthy, to)
    corruption.apply(repository)
    full = audit(repository.root, repository.data)
    incremental = audit(repository.root, repository.data, trusted=clean)
    codes = sorted({finding.code for finding in full.findings})
    return Row(
        corruption.name,
        corruption.expected,
        codes,
        corruption.expected in codes,
        incremental.findings == full.findings,
        list(incremental.known),
    )


def rows(top: Path, named: str = "") -> Iterator[Row]:
    """Every corruption whose name holds `named`; first the healthy repository, to be silent."""
    healthy = build(top)
    full, again = healthy_reports(healthy)
    codes = sorted({finding.code for finding in full.findings})
    same = again.findings == full.findings
    yield Row("none: the healthy repository", "", codes, not codes, same, list(again.known))
    for number, corruption in enumerate(c for c in CORRUPTIONS if named in c.name):
        to = top / f"copy-{number}"
        yield spoil(healthy, frozenset(full.clean), corruption, to)


def main(arguments: list[str]) -> int:
    """Print and write the table; 1 where a row is not as it should be. NAME: only such rows."""
    start = time.monotonic()
    table = []
    width = max(len(corruption.name) for corruption in CORRUPTIONS)
    with tempfile.TemporaryDirectory() as name:
        for row in rows(Path(name), " ".join(arguments)):
            table.append(row)
            good = row.caught and row.incremental_agrees
            verdict = "caught" if row.expected else "silent"
            print(
                f"{verdict if good else 'MISSED'}  {row.corruption:{width}}"
                f"  {row.expected or '-':9}  {', '.join(row.found) or '-'}",
                flush=True,
            )
    spoilt = table[1:]
    caught = sum(row.caught for row in spoilt)
    agree = sum(row.incremental_agrees for row in table)
    if not arguments:
        OUTPUT.parent.mkdir(exist_ok=True)
        OUTPUT.write_text(json.dumps([asdict(row) for row in table], indent=1) + "\n")
    print(
        f"{caught} of {len(spoilt)} corruptions caught by the check that owns them; "
        f"{len(table[0].found)} false alarms on the healthy repository; incremental and full agree "
        f"in {agree} of {len(table)} ({time.monotonic() - start:.0f} s)"
    )
    return int(caught < len(spoilt) or agree < len(table) or bool(table[0].found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
