"""`kit compare`: records against the published study, or against other records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from analysis.claiming.reading import StudyRun
from analysis.comparing.against_published import published_verdicts
from analysis.comparing.against_runs import DEFAULT_MARGIN, Rule, compared_verdicts
from analysis.comparing.tables import as_objects, counted, verdicts_table
from analysis.comparing.verdict import Outcome, Verdict
from analysis.published import PUBLISHED, load_published
from analysis.study import closed_note
from analysis.table import markdown
from kit.commands.named_runs import named_runs, read_all, read_real, sealed_here, without
from kit.commands.verdict_text import verdict_lines
from kit.heartbeat import heartbeat
from kit.home import Home
from kit.options import home, json_option
from kit.output import echo, print_json, say
from kit.outside_records import require_outside_records
from records.errors import (
    ClaimError,
    ContradictedError,
    InconclusiveError,
    KitError,
    NotComparableError,
    UnknownRunError,
)

# By gravity: of several failures the first one is the exit code.
_FAILURES: dict[Outcome, type[KitError]] = {
    "contradicted": ContradictedError,
    "inconclusive": InconclusiveError,
    "not applicable": NotComparableError,
}


def _outcomes(_ctx: click.Context, _param: click.Parameter, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    found = [word.strip().replace("-", " ") for word in text.split(",") if word.strip()]
    unknown = [word for word in found if word not in _FAILURES]
    if unknown:
        known = ", ".join(name.replace(" ", "-") for name in _FAILURES)
        raise click.BadParameter(f"{unknown[0]!r} is none of {known}")
    return tuple(found)


def _margins(
    _ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[str, float], ...]:
    found = []
    for text in texts:
        quantity, _, share = text.rpartition("=")
        try:
            margin = float(share)
        except ValueError:
            margin = -1.0
        if not 0 < margin < 1:
            raise click.BadParameter(f"{text!r}: want a fraction between 0 and 1, as in 0.05")
        found.append((quantity, margin))
    return tuple(found)


@click.command()
@click.argument("names", nargs=-1, metavar="[RUN|DIR]...")
@click.option(
    "--with",
    "others",
    multiple=True,
    metavar="RUN|DIR",
    help="Other records: a run, or all in DIR; can be repeated.",
)
@click.option(
    "--baseline",
    metavar="RUN|DIR",
    help="As --with, for CI: fails where contradicted, or as --fail-on says.",
)
@click.option(
    "--fail-on",
    callback=_outcomes,
    metavar="OUTCOMES",
    help="Exit on these with codes of their own: contradicted,inconclusive,not-applicable.",
)
@click.option(
    "--margin",
    "margins",
    multiple=True,
    callback=_margins,
    metavar="[QUANTITY=]SHARE",
    help=f"How far apart is still the same; default {DEFAULT_MARGIN:g}. Fix it before you look.",
)
@click.option(
    "--threshold",
    "threshold_ms",
    type=click.IntRange(min=0),
    metavar="MS",
    help="The plan's threshold at which goodput is compared; default: the middle one.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="PART",
    help="Only verdicts whose name contains PART; fewer tests decide with fewer boots.",
)
@click.option(
    "--markdown",
    "document",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the verdicts as Markdown, too.",
)
@json_option
def command(
    names: tuple[str, ...],
    others: tuple[str, ...],
    baseline: str | None,
    fail_on: tuple[str, ...],
    margins: tuple[tuple[str, float], ...],
    threshold_ms: int | None,
    only: tuple[str, ...],
    document: Path | None,
    as_json: bool,
) -> None:
    """Hold sealed runs against the published study, or against other sealed runs.

    Each verdict is reproduced, contradicted, inconclusive or not applicable, with its interval and
    why. What may not be compared (another GPU, driver, engine, plan, backend) is named, and never
    enters a verdict. Without --with or --baseline: against paper/published.toml, where margins and
    tests were fixed beforehand.

    RUN is a run's id or its beginning, or a path; DIR holds runs, or is another copy of this
    project. Default: every sealed run here that is not synthetic; with --with, the newest.

    \b
    Example:
      kit compare
      kit compare 20261130T115921Z --with ../theirs --margin 0.05
      kit compare --baseline ci/baseline --only throughput --fail-on contradicted,inconclusive
    """
    here = home()
    if document is not None:
        require_outside_records(document, here)
    against = (*others, *((baseline,) if baseline else ()))
    if not against and (margins or threshold_ms is not None):
        raise click.UsageError(f"--margin and --threshold are for --with: {PUBLISHED} has its own")
    if against:
        title, verdicts = _compared(here, names, against, _rule(margins, threshold_ms, only))
    else:
        title, verdicts = _published(here, names, only)
    if not verdicts:
        raise ClaimError("no verdict of that name", "kit compare without --only lists them")
    table = verdicts_table(verdicts, title)
    if document is not None:
        document.parent.mkdir(parents=True, exist_ok=True)
        document.write_text(f"{markdown(table)}\n{counted(verdicts)}.\n", "utf-8")
        say(f"written: {document}")
    if as_json:
        print_json({"title": title, "verdicts": as_objects(verdicts)})
    else:
        # Held against records a quantity is a ratio, which the head of its column does not say.
        told = f"{title}; measured: the ratio to it" if against else title
        echo("\n".join(verdict_lines(told, verdicts)))
    _fail(verdicts, fail_on or (("contradicted",) if baseline else ()))
    if baseline and all(verdict.outcome == "not applicable" for verdict in verdicts):
        raise NotComparableError(
            f"nothing here is comparable with {baseline}: {verdicts[0].reason}",
            "name a baseline of the same plan, GPU and driver",
        )


def _published(
    here: Home, names: Sequence[str], only: Sequence[str]
) -> tuple[str, tuple[Verdict, ...]]:
    published = load_published(here.root)
    if not published:
        raise ClaimError(f"no {PUBLISHED} in {here.root}", "kit compare RUN --with RUN")
    wanted = {id_: one for id_, one in published.items() if _named(id_, only)}
    with heartbeat(say, "reading the records"):
        mine = _read_own(here, names)
    title = _titled(f"{_shown(mine)} against the published study", mine)
    return title, published_verdicts(mine, wanted)


def _read_own(here: Home, names: Sequence[str]) -> list[StudyRun]:
    """The runs that are named, synthetic or not; else every real one here."""
    if names:
        return read_all(here, named_runs(here, names))
    return read_real(here, sealed_here(here))


def _compared(
    here: Home, names: Sequence[str], against: Sequence[str], rule: Rule
) -> tuple[str, tuple[Verdict, ...]]:
    other = named_runs(here, against)
    if names:
        own = named_runs(here, names)
    else:
        # One run to compare with is not meant itself; of several the newest may be among them.
        named = set(other) if len(other) == 1 else set()
        newest = [name for name in sealed_here(here) if name not in named][-1:]
        own = named_runs(here, newest)
    if not own:
        raise UnknownRunError(f"no sealed run in {here.data}", "kit reproduce makes one")
    other = without(other, own)
    if not other:
        raise UnknownRunError(
            "there is no other run to compare with", "a run is not held against itself: --with RUN"
        )
    with heartbeat(say, "reading the records"):
        mine, theirs = read_all(here, own), read_all(here, other)
    title = _titled(f"{_shown(mine)} against {_shown(theirs)}", (*mine, *theirs))
    return title, compared_verdicts(mine, theirs, rule)


def _rule(
    margins: Sequence[tuple[str, float]], threshold_ms: int | None, only: tuple[str, ...]
) -> Rule:
    whole = [margin for quantity, margin in margins if not quantity]
    return Rule(
        whole[-1] if whole else DEFAULT_MARGIN,
        {quantity: margin for quantity, margin in margins if quantity},
        threshold_ms,
        only,
    )


def _named(id_: str, only: Sequence[str]) -> bool:
    return not only or any(part in id_ for part in only)


def _shown(runs: Sequence[StudyRun]) -> str:
    if len(runs) == 1:
        return runs[0].run_id
    return f"{len(runs)} runs" if runs else "no run"


def _titled(title: str, runs: Sequence[StudyRun]) -> str:
    """The reference server's numbers say nothing of any engine, and must not look as if; and who
    reads a verdict that rests on a closed run has to know it.
    """
    title = f"{title} (SYNTHETIC)" if any(run.started.synthetic for run in runs) else title
    return f"{title}{closed_note(run.run_id for run in runs if run.closed)}"


def _fail(verdicts: Sequence[Verdict], outcomes: Sequence[str]) -> None:
    """The gravest outcome that is not to be."""
    for outcome, error in _FAILURES.items():
        found = [verdict for verdict in verdicts if verdict.outcome == outcome]
        if outcome in outcomes and found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            raise error(f"{outcome}: {found[0].id}{more}: {found[0].reason}")
