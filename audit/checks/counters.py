"""A window's counters are those of its kept /metrics pages, and agree with its requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from analysis.acceptance import most_drafted
from audit.counter_page import read_page, read_times
from audit.finding import Check, Code, Finding
from audit.journal_scan import Event, JournalScan, RequestCount
from audit.repository import RepositoryView, RunView
from records.errors import FormatError
from records.plan import Arm
from records.schema import BootEnded, WindowEnded

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
    "Where every request completed, the speculative steps that the server reports of each add up "
    "to its counters of drafts and of accepted tokens. A request whose last chunk held two steps "
    "comes without its list (seen on vLLM 0.29.0): the counters may then be above the sum by what "
    "that request can have drafted and accepted. With a draft model every step drafts: a list, and "
    "what is left for those without one, makes up the tokens after the first, and whoever lacks "
    "its list has more than one token in its last chunk. Prompt tokens must be the same.",
    "restore the run from git or from the host",
)
UNREADABLE = Code(
    "COUNT03",
    "error",
    "a kept /metrics page cannot be read",
    "A page is the gzip of what the server answered: Prometheus text with the engine's families.",
    "restore the run from git or from the host",
)
TOO_FAST = Code(
    "COUNT04",
    "error",
    "requests took less time by the client than by the server's own clock",
    "The kept /metrics pages hold how long the server says its requests took, to the first token "
    "and to the last. The client sends before they arrive and receives after they left: it cannot "
    "have seen less. Times in a journal that were made shorter contradict the pages.",
    "restore the run from git or from the host",
)
TOO_SLOW = Code(
    "COUNT05",
    "warning",
    "requests took much longer by the client than by the server's own clock",
    "Between the server's last token and the client's last chunk lies loopback alone. More than a "
    "quarter of the time, and a tenth of a second a request, is the client's, a proxy's, or was "
    "added to the journal.",
    "look at the client's lag and CPU in the same window; measure again",
)

NO_PAGES = Code(
    "COUNT06",
    "error",
    "a window of a completed boot without its /metrics pages",
    "The page before and the page after a window are the server's own word on it. Only where the "
    "engine answered no more is there none after, and then the boot has failed.",
    "restore the run from git or from the host",
)

# The server's times are of the wall clock, which NTP may slew by 500 ppm (RFC 5905).
_NS_PER_S = 1_000_000_000
_SLACK_PPM, _SLACK_NS = 2_000, 1_000_000
_LONGER_PPM, _LONGER_NS = 250_000, 100_000_000


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Count every window again."""
    for run, scan in repository.readable():
        listing = {boot for (boot, _), count in scan.counts.items() if count.steps}
        completed = {e.value.boot for e in scan.of(BootEnded) if e.value.outcome == "completed"}
        for event in scan.of(WindowEnded):
            moments = {_moment(name) for name in event.value.metrics}
            if event.value.boot in completed and moments != {"before", "after"}:
                shown = repository.show(run.directory.events)
                place = f"boot {event.value.boot}, window {event.value.window}"
                got = ", ".join(sorted(moments)) or "none"
                yield NO_PAGES.at(shown, event.line, f"{place}: {NO_PAGES.title}", got, "both")
            yield from _pages(repository, run, event)
            yield from _requests(repository.show(run.directory.events), scan, event, listing)
            yield from _times(repository, run, scan, event)


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
            read_times(path)  # a time that is none could not be held against the client's
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


def _times(
    repository: RepositoryView, run: RunView, scan: JournalScan, event: Event
) -> Iterator[Finding]:
    """The client's times against the server's, where every request of the window completed."""
    window: WindowEnded = event.value
    count = scan.count_of(window)
    pages = {_moment(name): run.directory.path / name for name in window.metrics}
    if window.report.completed != window.report.planned or set(pages) != {"before", "after"}:
        return
    try:
        before, after = (read_times(pages[moment]) for moment in ("before", "after"))
    except FormatError:
        return  # said of the page itself
    if after.get("requests", 0.0) - before.get("requests", 0.0) != window.report.completed:
        return  # the server counts others among them, or does not count
    shown = repository.show(run.directory.events)
    requests = window.report.completed
    for name, client_ns in (("whole_s", count.whole_ns), ("first_token_s", count.first_ns)):
        server_ns = round((after.get(name, 0.0) - before.get(name, 0.0)) * _NS_PER_S)
        message = f"boot {window.boot}, window {window.window}"
        got = f"{client_ns} ns over {requests} requests, {name.removesuffix('_s')}"
        least = server_ns - server_ns * _SLACK_PPM // 1_000_000 - requests * _SLACK_NS
        most = server_ns + server_ns * _LONGER_PPM // 1_000_000 + requests * _LONGER_NS
        if client_ns < least:
            want = f"{server_ns} ns or more (the server's)"
            yield TOO_FAST.at(shown, event.line, f"{message}: {TOO_FAST.title}", got, want)
        elif client_ns > most and server_ns > 0:
            want = f"about {server_ns} ns (the server's)"
            yield TOO_SLOW.at(shown, event.line, f"{message}: {TOO_SLOW.title}", got, want)


def _moment(name: str) -> str:
    """ "before" or "after", from metrics/<boot>.<window>.before.prom.gz."""
    return name.removesuffix(".prom.gz").rpartition(".")[2]


def _difference(name: str, before: dict[str, int] | None, after: dict[str, int] | None) -> int:
    """-1 where the family, or a page, is not there: nothing was counted."""
    if before is None or after is None or name not in before or name not in after:
        return -1
    return after[name] - before[name]


def _requests(shown: str, scan: JournalScan, event: Event, listing: set[str]) -> Iterator[Finding]:
    """The server's word on each request; `listing`: boots that listed the steps of any."""
    window: WindowEnded = event.value
    count = scan.count_of(window)
    report, counters = window.report, window.counters
    if report.completed != report.planned or report.planned == 0:
        return  # what was cut short is counted by the server alone
    pairs = []
    if count.prompt_tokens >= 0 and counters.preemptions <= 0:  # a preempted prompt counts twice
        pairs.append(("prompt_tokens", counters.prompt_tokens, count.prompt_tokens))
    arm = scan.arm_of(window.boot) if window.boot in listing else None
    if count.steps and not count.unlisted:
        pairs += [
            ("drafts", counters.drafts, count.steps),
            ("accepted_tokens", counters.accepted_tokens, count.accepted),
        ]
    elif arm is not None and -1 not in (counters.drafts, counters.accepted_tokens):
        yield from _unlisted(shown, event, count, arm)
    if arm is not None and _always_drafts(arm):
        yield from _each(shown, event, count, arm)
    if count.cached_tokens > 0 and counters.prefix_cache_hits == 0:
        pairs.append(("prefix_cache_hits", 0, count.cached_tokens))
    for name, said, counted in pairs:
        if said not in (-1, counted):
            message = f"boot {window.boot}, window {window.window}, {name}: {STEPS.title}"
            yield STEPS.at(shown, event.line, message, str(said), f"{counted} (from the requests)")


def _unlisted(shown: str, event: Event, count: RequestCount, arm: Arm) -> Iterator[Finding]:
    """What is left of the counters must be what the requests without a list can have done.

    A step gives its request one token and those accepted; its last may be cut off, by as many
    tokens as a step drafts at most.
    """
    counters = event.value.counters
    drafts, accepted = counters.drafts - count.steps, counters.accepted_tokens - count.accepted
    a_step = most_drafted(arm, counters)
    least = count.unlisted_tokens - max(counters.preemptions, 0) if _always_drafts(arm) else 0
    most = count.unlisted_tokens + a_step * count.unlisted
    if (
        0 <= drafts <= count.unlisted_tokens
        and 0 <= accepted <= a_step * drafts
        and least <= drafts + accepted <= most
    ):
        return
    place = f"boot {event.value.boot}, window {event.value.window}"
    got = f"{drafts} drafts and {accepted} accepted tokens of {count.unlisted} requests unlisted"
    want = (
        f"0 up, {count.unlisted_tokens} drafts at most, {a_step} accepted tokens a draft at most, "
        f"{max(least, 0)} to {most} together"
    )
    yield STEPS.at(shown, event.line, f"{place}: {STEPS.title}", got, want)


def _each(shown: str, event: Event, count: RequestCount, arm: Arm) -> Iterator[Finding]:
    """Where every step drafts, a list makes up its request's tokens, and is not lost at will."""
    counters = event.value.counters
    place = f"boot {event.value.boot}, window {event.value.window}"
    # A preempted request is taken up again by a step without a draft.
    least, most = -max(counters.preemptions, 0), most_drafted(arm, counters)
    if count.over_least < least or count.over_most > most:
        got = f"{count.over_least} to {count.over_most} over a request's tokens after the first"
        yield STEPS.at(
            shown, event.line, f"{place}, lists: {STEPS.title}", got, f"{least} to {most}"
        )
    if count.unlisted_alone:
        got = f"{count.unlisted_alone} requests without a list, whose last chunk held one token"
        yield STEPS.at(shown, event.line, f"{place}, lists: {STEPS.title}", got, "two or more")


def _always_drafts(arm: Arm) -> bool:
    """Whether each step of a request drafts: with a draft model, and not where it looks n-grams up.

    So it was in every list of the records of vLLM 0.29.0 (its arms "draft" and "ngram").
    """
    config = json.loads(arm.speculative_config) if arm.speculative_config else {}
    return isinstance(config, dict) and config.get("method") == "draft_model"


CHECK = Check(
    "counters",
    "A window's counters are those of its kept /metrics pages, and agree with its requests.",
    (PAGES, STEPS, UNREADABLE, TOO_FAST, TOO_SLOW, NO_PAGES),
    check,
    scope="meaning",
    kind="integrity",
)
