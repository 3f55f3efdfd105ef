"""What a record's free facts hold, read by the shape that a reader needs.

Invariant: facts are what a host said, in whatever form; a value of another shape counts as one that
is not there, and stops nobody from reading the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def part(facts: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object of this name; an empty one where there is none."""
    value = facts.get(name)
    return value if isinstance(value, dict) else {}


def parts(facts: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects in the list of this name, in their order."""
    value = facts.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def integers(facts: Mapping[str, Any], name: str) -> list[int]:
    """The whole numbers in the list of this name, in their order."""
    value = facts.get(name)
    # `is`: True is no number.
    return [one for one in value if type(one) is int] if isinstance(value, list) else []


def integer(facts: Mapping[str, Any], name: str) -> int | None:
    """The whole number of this name."""
    value = facts.get(name)
    return value if type(value) is int else None


def pace_ms(facts: Mapping[str, Any]) -> tuple[float, ...]:
    """The times of the fixed piece of work in a window's facts (remote/host/pace.py), in order.

    Empty in older records.
    """
    return tuple(ns / 1e6 for ns in integers(part(facts, "host"), "pace_ns") if ns > 0)
