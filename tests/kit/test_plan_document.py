"""kit/plans/README.md is held to the dataclasses that decode a plan."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from kit.planning.plan_file import parse_plan
from records.digest import Digest
from records.plan import Plan
from remote.validity import RULES

DOCUMENT = Path(__file__).parents[2] / "kit" / "plans" / "README.md"
NAMES = {int: "integer", str: "string", bool: "boolean", Decimal: "decimal", Digest: "digest"}
# A table is taken too, and turned into the string; the default is computed from the file.
OTHERWISE = {
    "arms.speculative_config": ("string or table", "needed"),
    "windows.prompts.digest": ("digest or null", "of the file"),
}


def type_name(hint: Any) -> str:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return f"list of {type_name(args[0])}"
    if origin is dict:
        return f"map to {type_name(args[1])}"
    if origin is types.UnionType:
        return f"{type_name(args[0])} or null"
    return NAMES[hint]


def keys(cls: Any, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """(key, type, default) of every leaf."""
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        hint, name = hints[field.name], f"{prefix}{field.name}"
        (item, *_) = typing.get_args(hint) or (None,)
        inner = next((one for one in (hint, item) if dataclasses.is_dataclass(one)), None)
        if inner is not None and inner is not Digest:
            yield from keys(inner, f"{name}.")
            continue
        default = "needed" if field.default is dataclasses.MISSING else str(field.default)
        yield (name, *OTHERWISE.get(name, (type_name(hint), default or '`""`')))


def test_every_key_is_told_with_its_type_and_default() -> None:
    text = DOCUMENT.read_text("utf-8")
    told = re.findall(r"^\| `([a-z0-9_.]+)` \| ([^|]+) \| ([^|]+) \| [^|]+ \|$", text, re.MULTILINE)
    assert sorted(told) == sorted(keys(Plan))


def test_the_minimal_plan_is_one() -> None:
    (toml,) = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert parse_plan(toml, "minimal.toml").id == "minimal"


def test_every_reason_that_voids_is_told() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert [rule for rule in RULES if f"`{rule}`" not in text] == []
