"""A window's counters are those of its kept /metrics pages, and agree with its requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from audit.counter_page import read_page
from audit.finding import Check, Code, Finding
from audit.journal_scan import Event, JournalScan, RequestCount
from audit.repository import RepositoryView, RunView
from records.errors import FormatError
from records.schema import WindowEnded

PAGES = Code(
    "COUNT01",
    "error",
    "a window's counters are not the difference of its /metrics pages",
    "The harness keeps the page before and the page after each window, and writes their difference "
    "into window.ended. This check reads the pages again, with a reader of its own.",
    "restore the run from git or from the host",
)
STEPS = Code(
    "COUNT02",
    "error",
    "the server's counters and what it said of each request disagree",
    "Where every request completed and each reports its own speculative steps, their sum is the "
    "counters' number of drafts and of accepted tokens, unless chunks held several steps (VOID03); "
    "the same holds for prompt tokens.",
    "restore the run from git or from the host",
)
UNREADABLE = Code(
    "COUNT03",
    "error",
    "a kept /metrics page cannot be read",
    "A page is the gzip of what the server answered: Prometheus text with the engine's families.",
    "restore the run from git or from the host",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Count every window again."""
    for run, scan in repository.readable():
        for event in scan.of(WindowEnded):
            yield from _pages(repository, run, event)
            yield from _requests(repository.show(run.directory.events), scan, event)


def _pages(repository: RepositoryView, run: RunView, event: Event) -> Iterator[Finding]:
    window: WindowEnded = event.value
    place = f"boot {window.boot}, window {window.window}"
    said = asdict(window.counters)
    pages: dict[str, dict[str, int]] = {}
    for name in window.metrics:
        path = run.directory.path / name
        if not path.is_file():
            return  # the seal's check says so
        try:
            pages[_moment(name)] = read_page(path)
        except FormatError as error:
            yield UNREADABLE.at(repository.show(path), 0, error.message)
            return
    before, after = pages.get("before"), pages.get("after")
    shown = repository.show(run.directory.events)
    for name, value in said.items():
        want = _difference(name, before, after)
        if value != want:
            yield PAGES.at(
                shown,
                event.line,
                f"{place}, {name}: {PAGES.title}",
                str(value),
                f"{want} (from {', '.join(sorted(window.metrics)) or 'no page'})",
            )


def _moment(name: str) -> str:
    """ "before" or "after", from metrics/<boot>.<window>.before.prom.gz."""
    return name.removesuffix(".prom.gz").rpartition(".")[2]


def _difference(name: str, before: dict[str, int] | None, after: dict[str, int] | None) -> int:
    """-1 where the family, or a page, is not there: nothing was counted."""
    if before is None or after is None or name not in before or name not in after:
        return -1
    return after[name] - before[name]


def _requests(shown: str, scan: JournalScan, event: Event) -> Iterator[Finding]:
    window: WindowEnded = event.value
    count = scan.requests.get((window.boot, window.window), RequestCount())
    report, counters = window.report, window.counters
    if report.completed != report.planned or report.planned == 0:
        return  # what was cut short is counted by the server alone
    pairs = []
    if count.prompt_tokens >= 0 and counters.preemptions <= 0:  # a preempted prompt counts twice
        pairs.append(("prompt_tokens", counters.prompt_tokens, count.prompt_tokens))
    # A server that puts several steps into one chunk loses some of its own lists of steps with
    # them (seen on vLLM 0.29.0 under load); VOID03 tells of such a window.
    if count.steps and count.tokens - count.chunks <= counters.accepted_tokens:
        pairs += [
            ("drafts", counters.drafts, count.steps),
            ("accepted_tokens", counters.accepted_tokens, count.accepted),
        ]
    for name, said, counted in pairs:
        if said not in (-1, counted):
            message = f"boot {window.boot}, window {window.window}, {name}: {STEPS.title}"
            yield STEPS.at(shown, event.line, message, str(said), f"{counted} (from the requests)")


CHECK = Check(
    "counters",
    "A window's counters are those of its kept /metrics pages, and agree with its requests.",
    (PAGES, STEPS, UNREADABLE),
    check,
    scope="meaning",
    kind="integrity",
)
