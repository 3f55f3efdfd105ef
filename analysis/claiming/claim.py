"""What a claim is, and what it comes to over verified records.

Invariant: a claim names all that decides its printed text: the study whose runs it reads, the
function, the unit and the number of decimals. A value names every window and line it was made of.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.claiming.common_blocks import Abreast
from analysis.claiming.comparison import Comparison
from analysis.claiming.leading import Lead, Verge
from analysis.claiming.reading import Line, Reading, WindowUse
from analysis.table import number
from records.errors import ClaimError

Result = float | int | str
Function = Callable[[Reading], Result]

ID = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Claim:
    """One number or word of the paper: `text` says in words what it is.

    `digits`: decimals printed, 0 for whole numbers and words. `study`: a key of
    paper/evidence.toml, which names the runs.
    """

    id: str
    text: str
    study: str
    function: Function
    unit: str
    digits: int

    def __post_init__(self) -> None:
        if not ID.fullmatch(self.id):
            raise ClaimError(f"claim id {self.id!r}: want words of a-z and 0-9 joined by . or -")

    def printed(self, value: Result) -> str:
        """The value as paper and findings must show it, unit included."""
        text = value if isinstance(value, str) else number(value, self.digits)
        return f"{text} {self.unit}" if self.unit else text


@dataclass(frozen=True, slots=True)
class Value:
    """What a claim comes to, and all that it was made of.

    `measured`: windows whose requests or counters entered the value. `lines`: the journal lines
    read, by run. `comparisons`: which arms were held against each other, in which factor.
    `ranked`: arms put in order without a cause being named; `leads`: who is said to be ahead of
    whom; `verges`: requests on which alone it turns whether an objective is met. `abreast`: within
    which blocks arms were set side by side.
    """

    claim: Claim
    value: Result
    printed: str
    runs: tuple[str, ...]
    measured: tuple[WindowUse, ...]
    lines: tuple[Line, ...]
    comparisons: tuple[Comparison, ...]
    ranked: tuple[str, ...]
    leads: tuple[Lead, ...] = ()
    verges: tuple[Verge, ...] = ()
    abreast: tuple[Abreast, ...] = ()

    @property
    def blocks_told(self) -> tuple[str, ...]:
        """Which blocks counted, in words, where an arm was measured in others, too."""
        return tuple(dict.fromkeys(one.told for one in self.abreast if one.told))

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms whose windows were measured, in order of name."""
        return tuple(sorted({use.arm for use in self.measured}))


def evaluate(claim: Claim, reading: Reading) -> Value:
    """Call the claim's function. ClaimError: the records do not hold what it asks for."""
    try:
        value = claim.function(reading)
    except ZeroDivisionError as error:  # of an arm without any token, or any draft
        raise ClaimError(f"{claim.id}: undefined, as it would divide by nothing") from error
    lines = reading.lines
    return Value(
        claim,
        value,
        claim.printed(value),
        tuple(sorted({line.run for line in lines})),
        reading.measured,
        lines,
        reading.comparisons,
        reading.ranked,
        reading.led,
        reading.on_verge,
        reading.abreast,
    )


def described(function: Any) -> str:
    """A function with what was bound to it: `mean(throughput, 'draft', 'c8')`."""
    if isinstance(function, functools.partial):
        parts = [described(part) for part in function.args]
        parts += [f"{name}={described(part)}" for name, part in function.keywords.items()]
        return f"{described(function.func)}({', '.join(parts)})"
    return function.__name__ if callable(function) else repr(function)


def where_defined(function: Any, root: Path) -> str:
    """file:line of the function itself, beneath what was bound to it; relative to `root`."""
    while isinstance(function, functools.partial):
        function = function.func
    return _where_defined(function, root)


@functools.cache
def _where_defined(function: Callable[..., Any], root: Path) -> str:
    path = Path(inspect.getsourcefile(function) or "")
    shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    return f"{shown}:{inspect.getsourcelines(function)[1]}"
