"""Findings as texts: front matter, body, and the section on what is not established.

Invariant: `parse` accepts exactly what `render_head` would write, so that two findings cannot say
the same thing in two ways. Numbers are never reused; a retraction is a finding of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from records.digest import Digest
from records.errors import FormatError
from records.limits import printable

SECTION = "What this does NOT establish"
STATUSES = ("active", "retracted")
PROVENANCES = ("record", "terminal")
FILE_NAME = re.compile(r"F[0-9]{3,}\.md")
_ID = re.compile(r"F[0-9]{3,}")
_KEYS = ("id", "title", "status", "retracts", "retracted-by", "provenance", "evidence", "defect")
_FRONT = re.compile(r"---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# What people write where they have nothing to say.
_PLACEHOLDERS = frozenset(
    {"", "na", "nothing", "none", "nil", "notapplicable", "tbd", "todo", "tobedone", "tobewritten"}
    | {"tobedetermined", "seeabove", "seebelow", "nolimitations", "nolimits", "anything", "other"}
)
_HEADING = re.compile(r"^## (.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `evidence`: digests of the seals it rests on. `defect`: why its provenance is
    deficient, "" for none; `not_established`: the text of the mandatory section."""

    id: str
    title: str
    status: str
    retracts: tuple[str, ...]
    retracted_by: tuple[str, ...]
    provenance: str
    evidence: tuple[Digest, ...]
    defect: str
    body: str

    @property
    def not_established(self) -> str:
        """The text of the mandatory section; "" where it is missing, empty or says nothing."""
        parts = _HEADING.split(_COMMENT.sub("", self.body))
        sections = dict(zip(parts[1::2], parts[2::2], strict=True))
        text = sections.get(SECTION, "").strip()
        return "" if _word(text) in _PLACEHOLDERS else text

    @property
    def number(self) -> int:
        """The number in the id."""
        return int(self.id[1:])


def parse(text: str) -> Finding:
    """Read one finding. FormatError says what is missing, unknown, or out of order."""
    match = _FRONT.match(text)
    if match is None:
        raise FormatError("a finding begins with front matter between two lines of ---")
    head: dict[str, str] = {}
    for number, line in enumerate(match[1].split("\n"), 2):
        key, colon, value = line.partition(": ")
        if not colon or key not in _KEYS or key in head:
            raise FormatError(f"line {number}: not one of {', '.join(_KEYS)}, once each: {line!r}")
        head[key] = value
    missing = [key for key in _KEYS if key not in head and key != "defect"]
    if missing:
        raise FormatError(f"front matter lacks {', '.join(missing)}")
    finding = Finding(
        head["id"],
        head["title"].strip(),
        head["status"],
        _list(head["retracts"]),
        _list(head["retracted-by"]),
        head["provenance"],
        tuple(Digest.parse(one) for one in _list(head["evidence"])),
        head.get("defect", ""),
        match[2],
    )
    _check(finding)
    if render_head(finding) != f"---\n{match[1]}\n---\n":
        raise FormatError(f"front matter not in its one form; want:\n{render_head(finding)}")
    return finding


def _check(finding: Finding) -> None:
    for one in (finding.id, *finding.retracts, *finding.retracted_by):
        if not _ID.fullmatch(one):
            raise FormatError(f"not the id of a finding: {one!r}")
    if finding.status not in STATUSES:
        raise FormatError(f"status {finding.status!r} is none of {', '.join(STATUSES)}")
    if finding.provenance not in PROVENANCES:
        raise FormatError(f"provenance {finding.provenance!r} is none of {', '.join(PROVENANCES)}")
    sound_title(finding.title)


def sound_title(text: str) -> str:
    """The title without outer space. FormatError: there is none, or it is not one line to read.

    A line end would break the front matter; other controls steer a terminal, or show another text
    than the one that stands there.
    """
    title = text.strip()
    if not title:
        raise FormatError("a finding has a title")
    if printable(title) != title:
        raise FormatError(
            f"a title is one line without control or format characters: {printable(title)}"
        )
    return title


def render_head(finding: Finding) -> str:
    """The front matter in its one form."""
    lines = [
        "---",
        f"id: {finding.id}",
        f"title: {finding.title}",
        f"status: {finding.status}",
        f"retracts: [{', '.join(finding.retracts)}]",
        f"retracted-by: [{', '.join(finding.retracted_by)}]",
        f"provenance: {finding.provenance}",
        f"evidence: [{', '.join(map(str, finding.evidence))}]",
    ]
    if finding.defect:
        lines.append(f"defect: {finding.defect}")
    return "\n".join([*lines, "---", ""])


def render(finding: Finding) -> str:
    """The whole text; `parse(render(f)) == f`."""
    return render_head(finding) + finding.body


def new(number: int, title: str, evidence: Sequence[Digest], retracts: Sequence[str] = ()) -> str:
    """The text of a new finding, its two parts still to be written."""
    finding = Finding(
        f"F{number:03d}",
        sound_title(title),
        "active",
        tuple(retracts),
        (),
        "record",
        tuple(evidence),
        "",
        f"\n\n## {SECTION}\n\n",
    )
    _check(finding)
    return render(finding)


def retracted(finding: Finding, by: str) -> Finding:
    """The finding as it stands once `by` retracts it. FormatError where it is retracted already."""
    if finding.status == "retracted":
        raise FormatError(
            f"{finding.id} is retracted already, by {', '.join(finding.retracted_by)}"
        )
    return replace(finding, status="retracted", retracted_by=(*finding.retracted_by, by))


def next_number(paths: Iterable[str]) -> int:
    """One more than the highest number that any of these paths, now or in git, ever had."""
    names = (PurePosixPath(path).name for path in paths)
    return max((int(name[1:-3]) for name in names if FILE_NAME.fullmatch(name)), default=0) + 1


def _word(text: str) -> str:
    """Letters and digits alone, in lower case: what is left of a text without its marks."""
    return "".join(char for char in text.casefold() if char.isalnum())


def _list(text: str) -> tuple[str, ...]:
    if not (text.startswith("[") and text.endswith("]")):
        raise FormatError(f"not a list of the form [a, b]: {text!r}")
    inner = text[1:-1]
    return tuple(inner.split(", ")) if inner else ()
