"""No numeral stands in paper or findings but through a claim, or with a reason on record."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.claiming.numerals import ALLOWED, Allowed, is_allowed, load_allowed, numerals
from audit.finding import Check, Code, Finding
from audit.paper import paper
from audit.repository import RepositoryView
from records.errors import ClaimError

LOOSE = Code(
    "NUM01",
    "error",
    "a numeral that no claim prints",
    r"In paper/*.tex and paper/findings/ a number comes through \claim or [value](claim:id), so "
    "that it can be computed again. Numerals in names (FP8, F001), keys and lengths are none.",
    "cite a claim, or list value, place, phrase and reason in paper/allowed-numbers.toml",
)
LIST = Code(
    "NUM02",
    "error",
    "paper/allowed-numbers.toml cannot be used",
    "Each entry has value, place, phrase and reason, none of them empty, and the phrase holds the "
    "value: an exception without a reason is none.",
    "complete the entry",
)
UNUSED = Code(
    "NUM03",
    "warning",
    "an allowed number that stands nowhere",
    "An exception that nothing needs any more would cover the next number by accident.",
    "take the entry out of paper/allowed-numbers.toml",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Look for numerals in every document whose numbers must have an origin."""
    entries: tuple[Allowed, ...] = ()
    try:
        entries = load_allowed(repository.root)
    except ClaimError as error:
        yield LIST.at(ALLOWED.as_posix(), 0, error.message)
    used: set[Allowed] = set()
    for document in paper(repository).documents:
        if not document.scanned:
            continue
        for numeral in numerals(document):
            covering = [entry for entry in entries if is_allowed(numeral, entry)]
            used.update(covering)
            if not covering:
                got = f"{numeral.text} in: {numeral.context.strip()[:80]}"
                yield LOOSE.at(numeral.file, numeral.line, "", got)
    for entry in entries:
        if entry not in used:
            message = f"{entry.value} in {entry.place}: {UNUSED.title}"
            yield UNUSED.at(ALLOWED.as_posix(), 0, message, entry.phrase)


CHECK = Check(
    "numerals",
    "No numeral stands in paper or findings but through a claim, or with a reason on record.",
    (LOOSE, LIST, UNUSED),
    check,
)
