"""A plan as a person writes it: TOML in, `records.plan.Plan` out, with the line of every mistake.

Invariant: nothing is converted but decimal numbers for Decimal fields and a speculative_config
table into the engine's JSON; every other value must have the type of its field. A prompt file that
a window names is bound by the digest it has when the plan is read.

`[arm_defaults]` and `[window_defaults]` are merged under each arm and window: tables key by key;
`args` of the defaults come before the arm's own; everything else is replaced.
"""

from __future__ import annotations

import codecs
import dataclasses
import json
import re
import string
import typing
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any

import tomllib

from kit.planning.prompt_files import with_prompt_digests
from kit.planning.toml_lines import key_lines, line_of_most, paths_around
from kit.regular_file import open_regular
from records import canonical
from records.decode import DecodeError, from_object
from records.errors import FormatError, PlanError
from records.plan import Plan

DEFAULTS = {"arms": "arm_defaults", "windows": "window_defaults"}
# The longest plan of this kit has 5 KB; lines and tables of a larger file are not worth the memory.
MAX_PLAN_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_DOTS = 4000
MAX_DECIMAL_PLACES = 60
_NESTING = "[{."
_HOW = "correct it; kit/plans/README.md tells how a plan is written"
_AT_LINE = re.compile(r"at line (\d+)")


def load_plan(path: Path) -> Plan:
    """Read a plan file. PlanError names file and line, and for a wrong key the nearest known."""
    try:
        with open_regular(path) as file:
            data = file.read(MAX_PLAN_BYTES + 1)
    except FileNotFoundError:
        raise PlanError(
            f"no plan file {path}", remedy="list the plans with: kit plan list"
        ) from None
    except OSError as error:
        raise PlanError(
            f"{path}: cannot be read: {error}",
            "name a TOML file, or list plans with: kit plan list",
        ) from error
    if len(data) > MAX_PLAN_BYTES:
        raise PlanError(f"{path}: more than {MAX_PLAN_BYTES} bytes; no plan is that long", _HOW)
    data = data.removeprefix(codecs.BOM_UTF8)  # some editors put one in front
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PlanError(f"{path}:{line}: not UTF-8: {error.reason}", _HOW) from error
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return parse_plan(text, str(path), path.parent)


def parse_plan(text: str, name: str, base: Path = Path()) -> Plan:
    """Decode the text of a plan; `name` stands for the file in errors, `base` for its directory."""
    dotted = line_of_most(text, ".")
    # tomllib takes time by the square of a key's parts.
    if text.split("\n")[dotted - 1].count(".") > MAX_DOTS:
        raise PlanError(f"{name}:{dotted}: more than {MAX_DOTS} dots; no key is that long", _HOW)
    try:
        document = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        match = _AT_LINE.search(str(error))
        line = int(match[1]) if match else text.count("\n") + 1
        raise PlanError(f"{name}:{line}: not TOML: {error}", _HOW) from error
    except ValueError as error:  # int() reads no more than 4,300 digits
        line = line_of_most(text, string.digits)
        raise PlanError(f"{name}:{line}: an integer beyond 63 bits", _HOW) from error
    except InvalidOperation as error:
        line = line_of_most(text, string.digits)
        raise PlanError(f"{name}:{line}: a number that cannot be held", _HOW) from error
    except RecursionError as error:
        raise PlanError(f"{name}:{line_of_most(text, _NESTING)}: nested too deep", _HOW) from error
    if _is_deeper(document, MAX_DEPTH):
        raise PlanError(f"{name}:{line_of_most(text, _NESTING)}: nested too deep", _HOW)
    lines = key_lines(text)
    try:
        _check_numbers(document, "$")
        whole = with_prompt_digests(_with_defaults(document), base)
        plan = from_object(Plan, _shaped(Plan, whole, "$"))
        _check_factors(plan)
    except DecodeError as error:
        where = f"{error.path}.{error.key}" if error.key else error.path
        raise _plan_error(name, _line(lines, where), error) from error
    except FormatError as error:
        raise PlanError(f"{name}:1: {error.message}", error.remedy or _HOW) from error
    return plan


def _is_deeper(document: Any, depth: int) -> bool:
    """Whether tables and arrays stand in each other more than `depth` deep; without recursion."""
    level = [document]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def _check_numbers(value: Any, path: str) -> None:
    """DecodeError for a number that has no place in records or would fill a request with digits."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_numbers(item, f"{path}.{key}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _check_numbers(item, f"{path}[{i}]")
    elif isinstance(value, int):
        if not -canonical.MAX_INT <= value <= canonical.MAX_INT:
            raise DecodeError(path, "integer beyond 63 bits")
    elif isinstance(value, Decimal):
        if not value.is_finite():
            raise DecodeError(path, f"not a finite number: {value}")
        _, digits, exponent = value.as_tuple()
        if len(digits) + abs(int(exponent)) > MAX_DECIMAL_PLACES:
            raise DecodeError(path, f"a number of more than {MAX_DECIMAL_PLACES} places")


def _plan_error(name: str, line: int, error: DecodeError) -> PlanError:
    message = error.message.replace("$.", "").replace("$: ", "").replace("got Decimal", "got float")
    return PlanError(f"{name}:{line}: {message}", error.remedy or _HOW)


def _in_defaults(path: str) -> str:
    """The path under the defaults from which a missing `path` was filled."""
    match = re.match(r"\$\.(arms|windows)\[\d+\](.*)$", path)
    return f"$.{DEFAULTS[match[1]]}{match[2]}" if match else path


def _line(lines: dict[str, int], path: str) -> int:
    """The line of `path`, of its place in the defaults, or of the nearest key around either."""
    for around in paths_around(path):
        for place in (around, _in_defaults(around)):
            if place in lines:
                return lines[place]
    return 1


def _with_defaults(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the defaults merged in, and without the tables that held them."""
    merged = {key: value for key, value in document.items() if key not in DEFAULTS.values()}
    for key, defaults_key in DEFAULTS.items():
        defaults = document.get(defaults_key, {})
        if not isinstance(defaults, dict):
            raise DecodeError(f"$.{defaults_key}", "expected a table", defaults_key)
        items = merged.get(key)
        if isinstance(items, list):
            merged[key] = [_merge(defaults, item) for item in items]
    return merged


def _merge(defaults: Any, own: Any) -> Any:
    if not isinstance(defaults, dict) or not isinstance(own, dict):
        return own
    merged = dict(defaults)
    for key, value in own.items():
        base = merged.get(key)
        if key == "args" and isinstance(base, list) and isinstance(value, list):
            merged[key] = [*base, *value]
        else:
            merged[key] = _merge(base, value)
    return merged


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _shaped(hint: Any, value: Any, path: str) -> Any:
    """Decimal fields as decimal strings; what does not fit is left for the decoder to refuse."""
    if hint is Decimal:
        if isinstance(value, Decimal) or type(value) is int:
            return str(value)
        raise DecodeError(path, f"expected a number, got {type(value).__name__} {value!r}")
    if typing.get_origin(hint) is tuple and isinstance(value, list):
        item = typing.get_args(hint)[0]
        return [_shaped(item, one, f"{path}[{i}]") for i, one in enumerate(value)]
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        hints = _hints(typing.cast("Any", hint))
        return {key: _field(hints, key, item, f"{path}.{key}") for key, item in value.items()}
    return value


def _field(hints: dict[str, Any], key: str, value: Any, path: str) -> Any:
    if key == "speculative_config" and isinstance(value, dict):
        return json.dumps(
            value,
            sort_keys=True,
            separators=(",", ":"),
            default=lambda one: _json_number(one, path),
        )
    return _shaped(hints.get(key), value, path)


def _json_number(value: Any, path: str) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise DecodeError(path, f"JSON has no {type(value).__name__}: {value}")


def _check_factors(plan: Plan) -> None:
    """Arms may be compared only when all declare the same factors."""
    first = plan.arms[0]
    for i, arm in enumerate(plan.arms):
        if set(arm.factors) != set(first.factors):
            raise DecodeError(
                f"$.arms[{i}].factors",
                f"arm {arm.id} declares {sorted(arm.factors)}, "
                f"arm {first.id} declares {sorted(first.factors)}",
                remedy="give every arm the same factors",
            )
