"""Code and data each have their licence, and each folder of data says which."""

from __future__ import annotations

from collections.abc import Iterator

from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView

MISSING = Code(
    "LICENCE01",
    "error",
    "a licence is missing or is not the one that is stated",
    "LICENSE holds for the code, LICENSE-DATA for measurements, findings and paper, each with its "
    "SPDX name. Without both nobody knows what may be reused.",
    "restore the file from git",
)
UNCLEAR = Code(
    "LICENCE02",
    "error",
    "LICENSE-DATA does not name a folder that it is for",
    "Which licence holds for a folder must not be a guess.",
    "name the folder in LICENSE-DATA",
)

_LICENCES = {
    "LICENSE": ("MIT License",),
    "LICENSE-DATA": ("SPDX-License-Identifier: CC-BY-4.0",),
}
_DATA_FOLDERS = ("records/data/", "paper/")


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Read both licences, where there is anything that they would be for."""
    if not (repository.root / "paper").is_dir() and not repository.runs:
        return
    if not repository.data.is_relative_to(repository.root):
        return  # records from elsewhere bring their own
    for name, marks in _LICENCES.items():
        path = repository.root / name
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        for mark in marks:
            if mark not in text:
                got = "another text" if text else "no such file"
                yield MISSING.at(repository.show(path), 0, "", got, mark)
        if name == "LICENSE-DATA" and text:
            for folder in _DATA_FOLDERS:
                if folder not in text:
                    yield UNCLEAR.at(repository.show(path), 0, "", "not named", folder)


CHECK = Check(
    "licences",
    "Code and data each have their licence, and each folder of data says which.",
    (MISSING, UNCLEAR),
    check,
    kind="hygiene",
)
