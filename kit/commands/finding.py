"""`kit finding new|retract`: findings in their form, with numbers that are never reused."""

from __future__ import annotations

from pathlib import Path

import click

from analysis import findings
from analysis.claiming.documents import FINDINGS
from analysis.claiming.evidence import load_evidence
from audit.git import Git
from kit.home import Home
from kit.options import find_records, home, named_run
from kit.output import echo, say
from kit.parts import Parts
from records.digest import Digest
from records.errors import FindingError, FormatError


def _title(_ctx: click.Context, _param: click.Parameter, text: str) -> str:
    """Told before a number is taken."""
    try:
        return findings.sound_title(text)
    except FormatError as error:
        raise click.BadParameter(error.message) from error


def _named_runs(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(named_run(ctx, param, word) for word in words)


_title_argument = click.argument("title", callback=_title)
_run_option = click.option(
    "--run", "runs", multiple=True, metavar="RUN", callback=_named_runs,
    help="Evidence; default: all studies.",
)  # fmt: skip


@click.group(cls=Parts)
def command() -> None:
    """Write findings: one file each, with what it does not establish.

    \b
    Example:
      kit finding new "Acceptance does not differ between boots" --run RUN
      kit finding retract F003 "Boots were not alike after all" --run RUN
    """


@command.command("new")
@_title_argument
@_run_option
def new(title: str, runs: tuple[str, ...]) -> None:
    """Begin a finding under the next number, with its evidence bound by digest.

    \b
    Example:
      kit finding new "Acceptance does not differ between boots" --run 20261130T115921Z
    """
    echo(begin(home(), title, runs))
    say("now write the finding, and what it does not establish; then kit audit")


@command.command("retract")
@click.argument("finding_id", metavar="FINDING")
@_title_argument
@_run_option
def retract(finding_id: str, title: str, runs: tuple[str, ...]) -> None:
    """Retract a finding by a new one, and link both.

    \b
    Example:
      kit finding retract F003 "Boots were not alike after all" --run 20261130T115921Z
    """
    echo(withdraw(home(), finding_id, title, runs))
    say("now write why, and what that does not establish; then kit audit")


def begin(here: Home, title: str, runs: tuple[str, ...]) -> Path:
    """Write the form of a new finding. FindingError, UnknownRunError, ClaimError: nothing is."""
    number = _next_number(here)
    return _write(here, number, findings.new(number, title, _evidence(here, runs)))


def withdraw(here: Home, finding_id: str, title: str, runs: tuple[str, ...]) -> Path:
    """Write the form of a retraction, then mark what it retracts. Errors as `begin`."""
    path = here.root / FINDINGS / f"{finding_id}.md"
    try:
        old = findings.parse(path.read_text(encoding="utf-8"))
        number = _next_number(here)
        marked = findings.retracted(old, f"F{number:03d}")
        text = findings.new(number, title, _evidence(here, runs), (old.id,))
    except FileNotFoundError:
        raise FindingError(f"no finding {finding_id}", remedy=f"ls {FINDINGS}") from None
    except FormatError as error:
        raise FindingError(error.message, remedy="kit audit") from error
    written = _write(here, number, text)
    path.write_text(findings.render(marked), encoding="utf-8")
    return written


def _next_number(here: Home) -> int:
    """Past every number that the folder has, or that git remembers."""
    folder = here.root / FINDINGS
    folder.mkdir(parents=True, exist_ok=True)
    names = [path.name for path in folder.glob("*.md")]
    git = Git.find(here.root)
    if git is not None:
        names += [change.path for change in git.changes(folder)]
    return findings.next_number(names)


def _evidence(here: Home, runs: tuple[str, ...]) -> tuple[Digest, ...]:
    if runs:
        return tuple(find_records(here, run).seal_digest for run in runs)
    studies = load_evidence(here.root).values()
    return tuple(sorted({seal for study in studies for seal in study.runs.values()}))


def _write(here: Home, number: int, text: str) -> Path:
    path = here.root / FINDINGS / f"F{number:03d}.md"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise FindingError(f"{path} is there already", remedy="try again") from None
    return path
