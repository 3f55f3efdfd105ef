"""The error tree: documented classes, one exit code each, and the README's table of them."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import Counter
from pathlib import Path

import pytest

from records.errors import KitError

ROOT = Path(__file__).parents[1]
PACKAGES = ("analysis", "audit", "kit", "records", "remote")
BEGIN, END = "<!-- exit codes -->", "<!-- /exit codes -->"
# What a shell or the interpreter itself ends a process with.
RESERVED = {0, 2, *range(126, 256)}


def _every_class() -> list[type[KitError]]:
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for found in pkgutil.walk_packages(path, f"{package}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    seen: list[type[KitError]] = [KitError]
    for cls in seen:
        seen.extend(sub for sub in cls.__subclasses__() if sub.__module__.split(".")[0] in PACKAGES)
    return seen


@pytest.fixture(scope="module")
def classes() -> list[type[KitError]]:
    """Every error class of the kit."""
    return _every_class()


def expected_table(classes: list[type[KitError]]) -> str:
    """The table as README.md must hold it between its markers."""
    rows = ["| code | error | meaning |", "|---|---|---|", "| 0 | - | Done. |"]
    own = [cls for cls in classes if "exit_code" in vars(cls)]
    for cls in sorted(own, key=lambda cls: cls.exit_code):
        meaning = " ".join((cls.__doc__ or "").split("\n\n")[0].split())
        rows.append(f"| {cls.exit_code} | `{cls.__name__}` | {meaning} |")
    return "\n".join(rows)


def test_every_class_says_what_it_means(classes: list[type[KitError]]) -> None:
    for cls in classes:
        assert (cls.__doc__ or "").strip(), f"{cls.__module__}.{cls.__name__} has no docstring"


def test_exit_codes_are_unique(classes: list[type[KitError]]) -> None:
    own = [cls for cls in classes if "exit_code" in vars(cls)]
    counts = Counter(cls.exit_code for cls in own)
    twice = [f"{cls.__name__}: {cls.exit_code}" for cls in own if counts[cls.exit_code] > 1]
    assert not twice, f"two errors share an exit code: {', '.join(twice)}"
    for cls in own:
        assert 0 < cls.exit_code < 126, f"{cls.__name__}: {cls.exit_code} is out of range"
        assert cls.exit_code not in RESERVED, f"{cls.__name__}: {cls.exit_code} is click's or sh's"


def test_codes_are_given_in_one_place_and_inherited_elsewhere(
    classes: list[type[KitError]],
) -> None:
    """A class outside records.errors narrows one inside and keeps its code, so one list is all."""
    for cls in classes:
        if cls.__module__ == "records.errors":
            assert "exit_code" in vars(cls), f"{cls.__name__} has no exit code of its own"
        else:
            place = f"{cls.__module__}.{cls.__name__}"
            assert "exit_code" not in vars(cls), f"{place}: give the code in records/errors.py"
            assert cls.exit_code != KitError.exit_code, f"{place} narrows no error with a code"


def test_an_error_keeps_its_message_and_remedy(classes: list[type[KitError]]) -> None:
    for cls in (c for c in classes if c.__module__ == "records.errors"):
        error = cls("cause", remedy="kit doctor")
        assert (str(error), error.message, error.remedy) == ("cause", "cause", "kit doctor")
        assert cls("cause").remedy == ""


def test_the_readme_lists_the_codes(classes: list[type[KitError]]) -> None:
    want = expected_table(classes)
    readme = ROOT / "README.md"
    text = readme.read_text("utf-8") if readme.exists() else ""
    match = re.search(f"{re.escape(BEGIN)}\n(.*?)\n{re.escape(END)}", text, re.DOTALL)
    assert match, f"README.md: put this between {BEGIN} and {END}:\n\n{want}"
    assert match[1].strip() == want, f"README.md: between {BEGIN} and {END} want:\n\n{want}"
