"""What the hosts' processors are worth: a row for each time that a run had them timed.

Invariant: every figure is that of records/processors.py, from the raw times in host.observed; runs
from before they were timed have no row, and facts of another shape count as none.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.reading import Run
from analysis.table import MISSING, Column, Table, number, words
from records.cpu_list import shown_cpus
from records.decode import from_object
from records.errors import FormatError
from records.processors import SHARED_CORE, Processors

_NAME = "processors"
_NOTES = (
    (
        "A fixed piece of work before anything else ran: on each of the engine's processors alone, "
        "on all of them at once, and on each with each of the client's."
    ),
    (
        "Worth: how many processors' worth of work the engine's do at once, each counting median "
        "time alone over mean time together. Far fewer than there are: they share cores or power, "
        "among themselves or with neighbours, or others take turns on them."
    ),
    (
        f"Slow each other: pairs of which each takes {SHARED_CORE} times as long or longer while "
        "the other works, as two threads of one core do; slowest: the pair that does so most. What "
        "the client does on such a processor, the engine pays for."
    ),
    (
        "Threads a core: what the kernel says; a virtual machine often says 1 whatever its "
        "processors share."
    ),
)


def processors_of(facts: Mapping[str, Any]) -> Processors | None:
    """What a host's facts hold of its processors; None where nothing that can be read."""
    try:
        return from_object(Processors, facts.get(_NAME))
    except FormatError:
        return None


def processor_table(runs: Sequence[Run]) -> tuple[Table, ...]:
    """What the hosts' processors are worth; none where no run had them timed."""
    rows = tuple(row for run in runs for row in _rows(run))
    if not rows:
        return ()
    columns = (
        *words("run", "host", "phase", "engine's", "client's"),
        Column("at once"),
        Column("worth", "processors"),
        Column("alone", "ms"),
        Column("slowest alone", "ms"),
        Column("pairs"),
        Column("slow each other"),
        *words("slowest"),
        Column("times as long"),
        *words("threads a core"),
    )
    return (Table(_NAME, "What the hosts' processors are worth", _NOTES, columns, rows),)


def in_words(found: Processors) -> str:
    """Worth and pairs, in a line."""
    at_once = (
        f"{len(found.together)} of the engine's do the work of {number(found.worth, 1)} at once"
    )
    told, shared = len(found.told_pairs), len(found.shared_pairs)
    if not told:
        return at_once
    return f"{at_once}; {shared} of {told} pairs with the client's slow each other down"


def _rows(run: Run) -> Iterator[tuple[str, ...]]:
    for event in run.hosts:
        found = processors_of(event.facts)
        if found is None:
            continue
        alone_ms = [ns / 1e6 for ns in found.alone_ns]
        slowest = found.slowest_pair
        yield (
            run.run_id,
            event.host_id,
            event.phase,
            shown_cpus(found.engine) or "any",
            shown_cpus(found.client) or "any",
            str(len(found.together)),
            number(found.worth, 2),
            number(statistics.median(alone_ms) if alone_ms else None, 4),
            number(max(alone_ms, default=None), 4),
            str(len(found.told_pairs)),
            str(len(found.shared_pairs)),
            f"{slowest.one} and {slowest.other}" if slowest else MISSING,
            number(slowest.slowdown if slowest else None, 2),
            _threads(found),
        )


def _threads(found: Processors) -> str:
    """The most threads of one core that the kernel tells of, among all processors of the host."""
    told = [place.siblings for place in found.places if place.siblings != "absent"]
    counts = [_length(text) for text in told]
    return str(max(counts)) if counts else MISSING


def _length(text: str) -> int:
    """How many processors a list such as "0,8" or "0-1" holds, whatever else it says."""
    spans = [part.split("-") for part in text.split(",")]
    numbers = [[int(end) for end in span if end.isdecimal()] for span in spans]
    return sum(max(ends) - min(ends) + 1 for ends in numbers if ends)
