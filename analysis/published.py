"""paper/published.toml: the published figures that a reproduction is held against, and the rules.

Invariant: only what the source states; test and margin are fixed before the data, on a day named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal, get_args

from analysis.claiming.toml_file import toml_text, toml_value
from analysis.goodput import QUANTITIES
from records.errors import ClaimError

PUBLISHED = Path("paper") / "published.toml"
_REQUIRED = {"id", "text", "figure", "unit", "source", "quantity", "test", "fixed", "of"}
_OPTIONAL = {"margin", "boots", "measured", "thresholds_ms", "decided"}
_MARGIN = {"relative", "fixed", "reason"}
_OF = {"engine", "capability", "gpu"}

Test = Literal["cv-margin", "kind", "zero-goodput"]
# Test -> the quantities that it can be made of.
_QUANTITIES: Mapping[Test, tuple[str, ...]] = {
    "cv-margin": ("throughput", "acceptance-length"),
    "kind": ("target-backend", "backends-apart"),
    "zero-goodput": tuple(f"goodput.{quantity}" for quantity in QUANTITIES),
}


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a reproduction may lie from the figure, as a fraction of it, and since when."""

    relative: Decimal
    fixed: str
    reason: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What a claim speaks of: engine with version, compute capability, GPU ("": any of that)."""

    engine: str
    capability: str
    gpu: str = ""

    def __str__(self) -> str:
        return f"{self.gpu or 'any GPU'} (compute capability {self.capability}), {self.engine}"


@dataclass(frozen=True, slots=True)
class Measured:
    """Where a plan measures a claim; `window` "" for what a whole boot decides."""

    plan: str
    arms: tuple[str, ...]
    window: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """One published claim. `figure`: as printed there; `boots`: how many it rests on, 0: unsaid.

    `thresholds_ms`: first and last threshold of a test of goodput, else empty. `decided`: what an
    engine must have decided, by its own log, for an arm to be what the claim speaks of. `fixed`:
    the day on which test, subject and the places in plans were fixed.
    """

    id: str
    text: str
    figure: str
    unit: str
    source: str
    quantity: str
    test: Test
    fixed: str
    of: Subject
    measured: tuple[Measured, ...] = ()
    boots: int = 0
    margin: Margin | None = None
    thresholds_ms: tuple[int, ...] = ()
    decided: Mapping[str, str] = field(default_factory=dict)

    @property
    def printed(self) -> str:
        """Figure and unit, as paper and findings must show them."""
        return f"{self.figure} {self.unit}" if self.unit else self.figure

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Both ends of the margin, in `unit`; None where there is none."""
        if self.margin is None:
            return None
        figure, relative = Decimal(self.figure), self.margin.relative
        return float(figure * (1 - relative)), float(figure * (1 + relative))


def load_published(root: Path) -> dict[str, Published]:
    """The published claims by id; none without the file. ClaimError says what is wrong with it."""
    path = root / PUBLISHED
    return parse_published(toml_text(path)) if path.is_file() else {}


def parse_published(text: str) -> dict[str, Published]:
    """Read the `[[claim]]` entries. ClaimError says which is wrong, and in what."""
    value = toml_value(text, PUBLISHED)
    entries = value.pop("claim", [])
    if value or not isinstance(entries, list):
        raise ClaimError(f"{PUBLISHED}: want nothing but [[claim]] entries")
    found: dict[str, Published] = {}
    for entry in entries:
        one = _published(entry)
        if one.id in found:
            raise ClaimError(f"{PUBLISHED}: {one.id} is there twice")
        found[one.id] = one
    return found


def _published(entry: Any) -> Published:
    name = entry.get("id", "?") if isinstance(entry, dict) else "?"
    _keys(name, entry, _REQUIRED, _OPTIONAL)
    texts = {key: entry[key] for key in sorted(_REQUIRED - {"of"})}
    boots = entry.get("boots", 0)
    if not all(isinstance(text, str) for text in texts.values()) or type(boots) is not int:
        raise ClaimError(f"{PUBLISHED}: {name}: {', '.join(texts)} are texts, boots a number")
    _day(name, texts["fixed"])
    margin = _margin(name, entry["margin"]) if "margin" in entry else None
    thresholds = tuple(entry.get("thresholds_ms", ()))
    _rule(name, texts, margin, thresholds)
    return Published(
        **texts,
        of=_subject(name, entry["of"]),
        measured=_measured(name, entry.get("measured", [])),
        boots=boots,
        margin=margin,
        thresholds_ms=thresholds,
        decided=_decided(name, entry.get("decided", {})),
    )


def _rule(
    name: str, texts: Mapping[str, str], margin: Margin | None, thresholds: tuple[Any, ...]
) -> None:
    """The test fits the quantity, and has what it needs and nothing else."""
    test, quantity, figure = texts["test"], texts["quantity"], texts["figure"]
    if test not in get_args(Test):
        raise ClaimError(f"{PUBLISHED}: {name}: test {test!r} is none of {', '.join(_QUANTITIES)}")
    known = _QUANTITIES[test]  # type: ignore[index]
    if quantity not in known:
        raise ClaimError(
            f"{PUBLISHED}: {name}: {test} is of {', '.join(known)}, not of {quantity!r}"
        )
    if (test == "cv-margin") != (margin is not None):
        raise ClaimError(f"{PUBLISHED}: {name}: a margin belongs to cv-margin, and to that alone")
    if margin is not None and not (_number(name, figure) > 0 and texts["unit"] == "%"):
        raise ClaimError(f"{PUBLISHED}: {name}: a CV is above 0 and in %")
    wanted = 2 if test == "zero-goodput" else 0
    if [type(t) for t in thresholds] != [int] * wanted or list(thresholds) != sorted(thresholds):
        raise ClaimError(
            f"{PUBLISHED}: {name}: thresholds_ms is the first and the last of zero-goodput"
        )


def _subject(name: str, entry: Any) -> Subject:
    _keys(f"{name}: of", entry, _OF - {"gpu"}, {"gpu"})
    if not all(isinstance(value, str) for value in entry.values()):
        raise ClaimError(f"{PUBLISHED}: {name}: of: texts are wanted")
    return Subject(**entry)


def _decided(name: str, entry: Any) -> dict[str, str]:
    if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
        raise ClaimError(f"{PUBLISHED}: {name}: decided: names of decisions, with texts")
    return dict(entry)


def _measured(name: str, entries: Any) -> tuple[Measured, ...]:
    if not isinstance(entries, list):
        raise ClaimError(f"{PUBLISHED}: {name}: measured is a list of tables")
    found: list[Measured] = []
    for entry in entries:
        _keys(f"{name}: measured", entry, {"plan", "arms"}, {"window"})
        arms = entry["arms"]
        if not (isinstance(arms, list) and arms and all(isinstance(arm, str) for arm in arms)):
            raise ClaimError(f"{PUBLISHED}: {name}: measured: arms are names of arms")
        one = Measured(str(entry["plan"]), tuple(arms), str(entry.get("window", "")))
        if one.plan in {other.plan for other in found}:
            raise ClaimError(f"{PUBLISHED}: {name}: plan {one.plan} measures it twice")
        found.append(one)
    return tuple(found)


def _margin(name: str, entry: Any) -> Margin:
    if not isinstance(entry, dict) or set(entry) != _MARGIN:
        raise ClaimError(f"{PUBLISHED}: {name}: a margin has exactly {', '.join(sorted(_MARGIN))}")
    relative = _number(name, entry["relative"])
    if not 0 < relative < 1:
        raise ClaimError(f"{PUBLISHED}: {name}: a margin is between 0 and 1")
    _day(name, entry["fixed"])
    return Margin(relative, entry["fixed"], str(entry["reason"]))


def _keys(name: str, entry: Any, required: set[str], optional: set[str]) -> None:
    keys = set(entry) if isinstance(entry, dict) else set()
    if not required <= keys <= required | optional:
        wrong = ", ".join(sorted((required - keys) | (keys - required - optional)))
        raise ClaimError(f"{PUBLISHED}: {name}: missing or unknown: {wrong}")


def _number(name: str, text: Any) -> Decimal:
    try:
        return Decimal(text)
    except (InvalidOperation, TypeError, ValueError) as error:
        raise ClaimError(f"{PUBLISHED}: {name}: not a number: {text!r}") from error


def _day(name: str, text: Any) -> None:
    try:
        date.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise ClaimError(f"{PUBLISHED}: {name}: fixed on no day: {text!r}") from error
