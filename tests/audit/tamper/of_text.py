"""Corruptions of what was derived from records: tables, paper, claims and findings."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.audit.tamper.corruption import Corruption
from tests.audit.tamper.healthy import CLAIM, OTHER, Repository


def _text(name: str, change: Callable[[str], str]) -> Callable[[Repository], None]:
    def apply(repository: Repository) -> None:
        path = repository.root / "paper" / name
        path.write_text(change(path.read_text()))

    return apply


def _last_digit(text: str) -> str:
    """The last digit of the first printed decimal number, one further."""
    return re.sub(r"(\d+\.\d*)(\d)", lambda m: f"{m[1]}{(int(m[2]) + 1) % 10}", text, count=1)


def _last_digit_of_claim(text: str) -> str:
    return re.sub(r"(\[\d+\.\d*)(\d)", lambda m: f"{m[1]}{(int(m[2]) + 1) % 10}", text, count=1)


def _table_digit(repository: Repository) -> None:
    path = repository.root / "paper" / "tables" / "run-1" / "by-boot.csv"
    path.write_text(_last_digit(path.read_text()))


def _row_gone(repository: Repository) -> None:
    path = repository.root / "paper" / "tables" / "run-1" / "boots.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def _finding(name: str) -> Callable[[Repository], Path]:
    return lambda repository: repository.root / "paper" / "findings" / name


def _undo_retraction(repository: Repository) -> None:
    """F002 active again, and its retraction gone with all that pointed to it."""
    path = _finding("F002.md")(repository)
    text = path.read_text().replace("status: retracted", "status: active")
    path.write_text(text.replace("retracted-by: [F003]", "retracted-by: []"))
    third = _finding("F003.md")(repository)
    third.write_text(third.read_text().replace("retracts: [F002]", "retracts: []"))


def _reuse(repository: Repository) -> None:
    path = _finding("F003.md")(repository)
    path.write_text(path.read_text().replace("title: Not equal", "title: Something new"))


def _emptied(text: str) -> str:
    head, _, _ = text.partition("## What this does NOT establish")
    return head + "## What this does NOT establish\n"


ALL = (
    Corruption("a number in a table, its last digit by one", "TABLE01", _table_digit),
    Corruption("a row of a table taken out", "TABLE01", _row_gone),
    Corruption(
        "a table deleted", "TABLE02", lambda r: (r.root / "paper/tables/run-1/goodput.tex").unlink()
    ),
    Corruption(
        "a table added", "TABLE03", lambda r: (r.root / "paper/tables/run-1/best.tex").touch()
    ),
    Corruption(
        "tables over records that do not hold",
        "TABLE04",
        lambda r: (r.run("run-1") / "seal.json").write_bytes(b""),
    ),
    Corruption(
        "a cited number by one in its last digit",
        "CLAIM02",
        _text("findings/F001.md", _last_digit_of_claim),
    ),
    Corruption(
        "a claim that nothing defines",
        "CLAIM01",
        _text("main.tex", lambda t: t.replace(CLAIM, "invented")),
    ),
    Corruption(
        "a claim of an arm that there is not",
        "CLAIM01",
        _text("main.tex", lambda t: t.replace(".draft.", ".best.")),
    ),
    Corruption(
        "claims resting on another run's seal",
        "CLAIM05",
        _text("evidence.toml", lambda t: re.sub("sha256:[0-9a-f]+", str(OTHER), t)),
    ),
    Corruption(
        "a number typed into the paper",
        "NUM01",
        _text("main.tex", lambda t: t + "It was 17 percent faster.\n"),
    ),
    Corruption("a retraction quietly undone", "FIND12", _undo_retraction),
    Corruption("a finding removed", "FIND11", lambda r: _finding("F003.md")(r).unlink()),
    Corruption("a finding's number reused", "FIND10", _reuse),
    Corruption(
        "half of a retraction taken back",
        "FIND06",
        _text("findings/F003.md", lambda t: t.replace("retracts: [F002]", "retracts: []")),
    ),
    Corruption("a finding without its limits", "FIND03", _text("findings/F001.md", _emptied)),
    Corruption(
        "a finding resting on no run here",
        "FIND05",
        _text("findings/F002.md", lambda t: re.sub("sha256:[0-9a-f]+", str(OTHER), t)),
    ),
    Corruption(
        "a finding turned into terminal output",
        "FIND07",
        _text(
            "findings/F001.md", lambda t: t.replace("provenance: record", "provenance: terminal")
        ),
    ),
    Corruption(
        "an e-mail address in the paper",
        "HYGIENE03",
        _text("main.tex", lambda t: t + "someone@lab.university.edu\n"),
    ),
)
