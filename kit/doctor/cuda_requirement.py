"""Decide NVIDIA_REQUIRE_CUDA as the container toolkit does, before anything is pulled.

Invariant: pure. Grammar (nvidia-container-toolkit, internal/config/image, "requirements"): blanks
separate alternatives, commas separate conditions of one; a condition is property, operator, value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from records.errors import FormatError

_CONDITION = re.compile(r"(cuda|driver|brand|arch)(>=|<=|!=|=|>|<)([A-Za-z0-9._-]+)")


@dataclass(frozen=True, slots=True)
class Properties:
    """What the host offers: versions as the driver tells them, the brand in lower case."""

    cuda: str
    driver: str
    brand: str
    arch: str


def cuda_of_wheels(lock: str) -> str:
    """What a wheel lock requires of the driver, in the same grammar; "" of wheels without CUDA.

    CUDA's own wheels are named by its major version, within which every driver of that version runs
    them (CUDA compatibility guide, 2.2, minor version compatibility).
    """
    majors = re.findall(r"^nvidia-\S+-cu(\d+)==", lock, re.MULTILINE)
    return f"cuda>={max(map(int, majors))}.0" if majors else ""


def unmet(requirement: str, properties: Properties) -> str:
    """The requirement's alternatives that all fail, or "" where one of them holds.

    FormatError where a condition cannot be read.
    """
    alternatives = [[_condition(part) for part in a.split(",")] for a in requirement.split()]
    if not alternatives or any(
        all(_holds(name, operator, value, properties) for name, operator, value in conditions)
        for conditions in alternatives
    ):
        return ""
    return " or ".join(requirement.split())


def _condition(text: str) -> tuple[str, str, str]:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise FormatError(f"NVIDIA_REQUIRE_CUDA: cannot read the condition {text!r}")
    return match[1], match[2], match[3]


def _holds(name: str, operator: str, value: str, properties: Properties) -> bool:
    have = str(getattr(properties, name))
    if name == "brand":
        return (have == value.lower()) == (operator == "=")
    got, want = _version(have), _version(value)
    width = max(len(got), len(want))
    got, want = got + (0,) * (width - len(got)), want + (0,) * (width - len(want))
    return {
        ">=": got >= want,
        "<=": got <= want,
        ">": got > want,
        "<": got < want,
        "=": got == want,
        "!=": got != want,
    }[operator]


def _version(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(?:\.\d+)*", text):
        raise FormatError(f"not a version: {text!r}")
    return tuple(int(part) for part in text.split("."))
