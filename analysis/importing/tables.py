"""Tables over a file of another tool: what it holds, and every definition that it allows.

Invariant: every title says that the run is foreign; a definition that the file cannot give is a row
with the reason, and no number.
"""

from __future__ import annotations

from analysis.definitions import DEFINITIONS, Definition, Summary
from analysis.importing.foreign import ForeignRun
from analysis.importing.needs import columns, lacking, unsaid
from analysis.streaming.summariser import Summariser
from analysis.table import MISSING, Column, Table, number, words

_FOREIGN = (
    "FOREIGN: measured by another tool; no record of this kit, not calibrated, not bound to an "
    "engine, and nothing in it can be verified."
)


def contents_table(run: ForeignRun) -> Table:
    """What the file holds, and of how many completed requests it does not say something."""
    completed = run.completed
    rows = [
        ("requests", str(len(run.requests))),
        ("completed", str(len(completed))),
        ("failed", str(len(run.requests) - len(completed))),
        ("left out: the tool's own warm-up", str(run.left_out)),
        ("chunks of completed requests", str(sum(len(r.chunk_ns) for r in completed))),
        ("completed, output tokens unsaid", str(unsaid("output tokens", run))),
        ("completed, tokens of each chunk unsaid", str(unsaid("tokens of each chunk", run))),
        ("completed, scheduled time unsaid", str(unsaid("scheduled time", run))),
    ]
    return Table(
        "contents",
        _title(run, "what the file holds"),
        (_FOREIGN, *run.notes),
        (*words("what"), Column("number")),
        tuple(rows),
    )


def foreign_definitions_table(run: ForeignRun) -> Table:
    """Every tool's latency quantities over the completed requests; what is lacking, where it is."""
    lacks = {one.id: lacking(one, run) for one in DEFINITIONS}
    possible = [one for one in DEFINITIONS if not lacks[one.id]]
    summariser, only = Summariser(possible), columns(run)
    summariser.see(only)
    found = {summary.id: summary for summary in summariser.summaries(lambda: [only])}
    return Table(
        "definitions",
        _title(run, "what each tool would report"),
        (
            _FOREIGN,
            *run.notes,
            "Missing: what the definition needs and the file does not say of every request.",
        ),
        (
            *words("tool", "quantity", "unit"),
            *[Column(name) for name in ("p50", "p95", "p99", "values", "without")],
            *words("missing", "rule", "id"),
        ),
        tuple(_row(one, found.get(one.id), ", ".join(lacks[one.id])) for one in DEFINITIONS),
    )


def _row(one: Definition, summary: Summary | None, lacks: str) -> tuple[str, ...]:
    head, tail = (one.tool, one.quantity, one.unit), (lacks or MISSING, one.rule, one.id)
    if summary is None:
        return (*head, *[MISSING] * 5, *tail)
    points = [number(point, 2) for point in (summary.p50, summary.p95, summary.p99)]
    return (*head, *points, str(summary.count), str(summary.excluded), *tail)


def _title(run: ForeignRun, what: str) -> str:
    return f"FOREIGN, {run.tool}, {run.file}: {what}"
