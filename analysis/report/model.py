"""What the report page shows, as plain values: the page is a function of this and nothing else.

Invariant: every text here is plain text, to be escaped by the page, but for `Html`, which
analysis/report/prose.py makes of findings; every anchor that is named exists on the page.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

Html = Markup


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. `anchor`: the trace that its number opens, "" for none; `claim`: its claim's id."""

    text: str
    numeric: bool
    anchor: str = ""
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """The head of a column."""

    name: str
    unit: str
    numeric: bool


@dataclass(frozen=True, slots=True)
class TableView:
    """One table. `shared`: what would stand alike in every row, so that no column is spent on it.

    `function`, `defined`: what made it, and where that stands. `folded`: shown when asked for.
    """

    anchor: str
    title: str
    notes: tuple[str, ...]
    shared: tuple[tuple[str, str], ...]
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Cell, ...], ...]
    function: str
    defined: str
    folded: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """Journal lines of one boot, window or run that a number rests on: `30, 33-36` of `file`."""

    label: str
    file: str
    lines: str


@dataclass(frozen=True, slots=True)
class Source:
    """A set of journal lines that numbers rest on. `runs`: run ids, whose digests stand once."""

    anchor: str
    title: str
    origins: tuple[Origin, ...]
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim with its value, and the source it was computed from.

    `number`: its endnote on paper; 0 where only a table prints it. `spread`: of its boots, by arm,
    below the blocks that they are of where arms were measured in others, too.
    """

    number: int
    anchor: str
    id: str
    printed: str
    text: str
    study: str
    function: str
    defined: str
    cited: tuple[str, ...]
    source: str
    spread: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Strip:
    """An interval against its bounds, drawn from 0 to 100 with one decimal; `text` in words.

    `low` to `high`: the interval found. `near` to `far`: the bounds fixed beforehand.
    """

    low: str
    width: str
    near: str
    span: str
    text: str


@dataclass(frozen=True, slots=True)
class VerdictView:
    """One published claim and what these records say to it. `kind`: the verdict as one word.

    `published`, `found`: with their units, "" where there is none. `source`: anchor of its trace.
    `group`: the records that it is of, by the letter of `VerdictGroup` and in a word; "" for none.
    `interval`: of what was found, with its level; `boots`: how many it is of; "" for none.
    """

    kind: str
    claim: str
    text: str
    published: str
    found: str
    source: str
    group: str
    interval: str
    boots: str
    reason: str
    facts: tuple[tuple[str, str], ...]
    strip: Strip | None


@dataclass(frozen=True, slots=True)
class VerdictGroup:
    """Records that verdicts are of. `name`: its letter, where there are several, and accelerator.

    `told`: what else its runs share.
    """

    name: str
    told: str
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """Verdicts that are not applicable for one reason."""

    anchor: str
    reason: str
    verdicts: tuple[VerdictView, ...]


@dataclass(frozen=True, slots=True)
class FigureView:
    """One figure. `image`: a data URI of an SVG, "" where `absent` says why there is none.

    `alt`: what it shows, for who does not see it.
    """

    anchor: str
    title: str
    caption: str
    alt: str
    image: str
    absent: str
    data: TableView


@dataclass(frozen=True, slots=True)
class UnusedView:
    """A boot that did not complete or a window that is void. `detail`: what its log ended with."""

    run: str
    boot: str
    arm: str
    window: str
    kind: str
    reason: str
    detail: str
    anchor: str


@dataclass(frozen=True, slots=True)
class RunView:
    """One run: what it is bound to and where it was made."""

    anchor: str
    id: str
    plan: str
    title: str
    begun: str
    ended: str
    outcome: str
    host: str
    stratum: tuple[tuple[str, str], ...]
    machine: tuple[tuple[str, str], ...]
    digests: tuple[tuple[str, str], ...]
    calibrated: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StratumView:
    """Runs that may be pooled, and the tables over them."""

    anchor: str
    title: str
    runs: tuple[str, ...]
    tables: tuple[TableView, ...]


@dataclass(frozen=True, slots=True)
class FindingView:
    """One finding as the project states it."""

    id: str
    title: str
    status: str
    retracts: tuple[str, ...]
    retracted_by: tuple[str, ...]
    defect: str
    evidence: tuple[str, ...]
    body: Html
    not_established: Html


@dataclass(frozen=True, slots=True)
class Command:
    """What a reader types, and what it then says."""

    line: str
    says: str


@dataclass(frozen=True, slots=True)
class Report:
    """The whole page. `verdicts`: those with an answer; the others by their reason."""

    title: str
    subject: str
    synthetic: bool
    summary: tuple[tuple[str, str], ...]
    outcomes: tuple[tuple[str, str], ...]
    groups: tuple[VerdictGroup, ...]
    verdicts: tuple[VerdictView, ...]
    not_applicable: tuple[NotApplicable, ...]
    findings: tuple[FindingView, ...]
    figures: tuple[FigureView, ...]
    figures_note: str
    strata: tuple[StratumView, ...]
    unused: tuple[UnusedView, ...]
    not_begun: tuple[str, ...]
    calibrations: tuple[TableView, ...]
    studies: tuple[TableView, ...]
    runs: tuple[RunView, ...]
    commands: tuple[Command, ...]
    claims: tuple[ClaimView, ...]
    sources: tuple[Source, ...]
