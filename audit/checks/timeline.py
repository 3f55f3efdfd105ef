"""No run was measured while another was under way on the same host, and none is there twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView, RunView
from records import canonical, schema
from records.chain import MAX_LINE_BYTES
from records.errors import FormatError

OVERLAP = Code(
    "TIME01",
    "error",
    "two runs were under way at once on one host",
    "Times are CLOCK_MONOTONIC, and run.started names the boot of the host, so that runs of one "
    "boot have an order. Two that overlap disturbed each other, or are one run under two names.",
    "keep the records; claim nothing from either run, and measure again",
)

STILL_THERE = Code(
    "TIME02",
    "warning",
    "the host of a closed run measured another run afterwards",
    "run.started names the boot of the host. That boot was still up when a later run began on it: "
    "the host was not gone when the closed run stopped, which could have been resumed and was "
    "given up. Boots could have been left out by choice.",
    "look at why it was given up; the later run carries the missing blocks out",
)

_TAIL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class _Span:
    run: RunView
    start_ns: int
    end_ns: int


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Compare the spans of all sealed runs, host boot by host boot.

    A run that was resumed after the host had restarted has no one span and is left out.
    """
    by_boot: dict[str, list[_Span]] = {}
    for run in repository.runs:
        ends = _ends(repository, run) if run.is_sealed else None
        if ends is not None and ends[0].host_boot == ends[1].host_boot:
            span = _Span(run, ends[0].monotonic_ns, ends[1].monotonic_ns)
            by_boot.setdefault(ends[0].host_boot, []).append(span)
    for spans in by_boot.values():
        spans.sort(key=lambda span: (span.start_ns, span.run.name))
        latest = spans[0]
        for span in spans[1:]:
            if span.start_ns <= latest.end_ns:
                yield OVERLAP.at(
                    repository.show(span.run.directory.events),
                    1,
                    "",
                    f"{span.run.name} began at {span.start_ns}",
                    f"after {latest.run.name} ended, {latest.end_ns}",
                )
            latest = max(latest, span, key=lambda one: one.end_ns)
    yield from _after_closed(repository)


def _after_closed(repository: RepositoryView) -> Iterator[Finding]:
    """The runs, open ones too, that began on the same boot of a host after a closed run."""
    for run in repository.runs:
        if run.directory.closed is None:
            continue
        last = _closed_at(repository, run)
        for other in repository.runs:
            begun = _clock(_first_line(other.directory.events))
            if last is None or begun is None or begun.host_boot != last.host_boot:
                continue
            if begun.monotonic_ns > last.monotonic_ns:
                yield STILL_THERE.at(
                    repository.show(run.directory.events),
                    0,
                    f"run {run.name}: {STILL_THERE.title}",
                    f"{other.name} began at {begun.monotonic_ns}",
                    f"none on this boot of the host after {last.monotonic_ns}",
                )


def _ends(repository: RepositoryView, run: RunView) -> tuple[schema.Clock, schema.Clock] | None:
    """The clocks of the first and the last line; None where the checks of events find fault."""
    first = _clock(_first_line(run.directory.events))
    if run.directory.closed is not None:
        last = _closed_at(repository, run)
    else:
        last = _clock(_last_line(run.directory.events))
    return (first, last) if first and last else None


def _closed_at(repository: RepositoryView, run: RunView) -> schema.Clock | None:
    """When the last event came home, on the boot of the host that the last clock names."""
    scan = repository.scan(run)
    clocks = [getattr(event.value, "clock", None) for event in scan.events]
    known = [clock for clock in clocks if isinstance(clock, schema.Clock)]
    if not known:
        return None
    return replace(known[-1], monotonic_ns=scan.events[-1].envelope.t_ns)


def _clock(line: bytes) -> schema.Clock | None:
    try:
        event = schema.decode(canonical.decode(line.rstrip(b"\n"))).event
    except FormatError:
        return None
    ends = isinstance(event, (schema.RunStarted, schema.RunEnded))
    return event.clock if ends else None


def _first_line(path: Path) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.readline(MAX_LINE_BYTES)


def _last_line(path: Path) -> bytes:
    """The last line, which run.ended makes a short one; what is longer is not read whole."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL_BYTES))
        return file.read().rstrip(b"\n").rpartition(b"\n")[2]


CHECK = Check(
    "timeline",
    "No run was measured while another was under way on the same host, and none is there twice.",
    (OVERLAP, STILL_THERE),
    check,
    kind="conduct",
)
