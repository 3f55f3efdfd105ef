"""What a host has, read from its own list: the form of pip freeze, with three facts in comments.

Invariant: a distribution is known by name and exact version, or it counts as not there and travels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from records.bundle import Target
from records.errors import PlanError

_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;#]+)")
_FACT = re.compile(r"#\s*(python|machine|glibc)\s+(\S+)")
_HOW = "make it on the host: python3 -I -S harness.pyz host --python PYTHON"


@dataclass(frozen=True, slots=True)
class HostList:
    """`have`: version by normalised name."""

    target: Target
    have: dict[str, str]


def read_host_list(path: Path, python: str = "", glibc: str = "") -> HostList:
    """Read the list; `python` and `glibc` stand in for facts that it does not tell.

    PlanError: no such file, no pins in it, or a fact that neither tells.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{path}: {error}", _HOW) from error
    lines = [line.strip() for line in text.splitlines()]
    pins = [match for line in lines if (match := _PIN.match(line))]
    facts = {match[1]: match[2] for line in lines if (match := _FACT.fullmatch(line))}
    facts |= {name: value for name, value in (("python", python), ("glibc", glibc)) if value}
    facts.setdefault("machine", "x86_64")
    if not pins:
        raise PlanError(f"{path} names no distribution as name==version", _HOW)
    for name in ("python", "glibc"):
        if not re.fullmatch(r"\d+\.\d+", facts.get(name, "")):
            raise PlanError(f"{path} does not tell the host's {name}", f"--{name} X.Y, or {_HOW}")
    target = Target(facts["python"], facts["machine"], facts["glibc"])
    return HostList(target, {canonicalize_name(m[1]): m[2] for m in pins})
