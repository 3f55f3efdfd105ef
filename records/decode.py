"""Strict decoding of plain JSON values into frozen dataclasses, and back.

Invariant: every key is known, every required key is there, every value has exactly its declared
type. Nothing is converted, guessed or dropped.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, TypeVar

from records.digest import Digest
from records.errors import FormatError
from records.limits import FieldError

T = TypeVar("T")


class DecodeError(FormatError):
    """A value that does not fit: `path` says where, `key` is the offending key, if it is one."""

    def __init__(self, path: str, problem: str, key: str = "", remedy: str = "") -> None:
        super().__init__(f"{path}: {problem}", remedy)
        self.path = path
        self.key = key


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def from_object(cls: type[T], value: Any, path: str = "$") -> T:
    """Build the dataclass `cls` from a decoded JSON object; DecodeError says what does not fit."""
    if not isinstance(value, dict):
        raise DecodeError(path, f"expected an object, got {_name(value)}")
    target: Any = cls
    fields = {f.name: f for f in dataclasses.fields(target)}
    for key in value:
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1, cutoff=0.4)
            hint = f"; nearest known key: {near[0]!r}" if near else ""
            raise DecodeError(path, f"unknown key {key!r}{hint}", key)
    hints = _hints(target)
    decoded = {}
    for name, field in fields.items():
        if name in value:
            decoded[name] = _value(hints[name], value[name], f"{path}.{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise DecodeError(path, f"missing key {name!r}", name)
    try:
        return cls(**decoded)
    except FormatError as error:
        if isinstance(error, DecodeError):
            raise
        key = error.key if isinstance(error, FieldError) else ""
        raise DecodeError(path, error.message, key, error.remedy) from error


def to_object(value: Any) -> Any:
    """The plain JSON value of a dataclass (or of what one may hold); inverse of `from_object`.

    A field that a later version added (metadata "since", with a default) is left out where it has
    its default: what was written, and digested, before that version keeps its bytes.
    """
    if isinstance(value, (Digest, Decimal)):
        return str(value)
    if dataclasses.is_dataclass(value):
        return {
            f.name: to_object(getattr(value, f.name))
            for f in dataclasses.fields(value)
            if not ("since" in f.metadata and getattr(value, f.name) == f.default)
        }
    if isinstance(value, dict):
        return {key: to_object(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        if all(type(item) is int for item in value):
            return list(value)
        return [to_object(item) for item in value]
    return value


def _value(hint: Any, value: Any, path: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        options = [o for o in typing.get_args(hint) if o is not type(None)]
        return None if value is None else _value(options[0], value, path)
    if origin is tuple:
        return _tuple(typing.get_args(hint)[0], value, path)
    if origin is dict:
        if not isinstance(value, dict):
            raise DecodeError(path, f"expected an object, got {_name(value)}")
        item = typing.get_args(hint)[1]
        return {key: _value(item, v, f"{path}.{key}") for key, v in value.items()}
    if hint is Any:
        return value
    if hint is Digest:
        return _parsed(Digest.parse, value, path)
    if hint is Decimal:
        return _parsed(_decimal, value, path)
    if dataclasses.is_dataclass(hint):
        return from_object(typing.cast("type[Any]", hint), value, path)
    if type(value) is not hint:  # `is`: True must not pass for an int
        raise DecodeError(path, f"expected {hint.__name__}, got {_name(value)}")
    return value


def _tuple(item: Any, value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise DecodeError(path, f"expected a list, got {_name(value)}")
    if item is int and all(type(v) is int for v in value):  # the long arrays of a request
        return tuple(value)
    return tuple(_value(item, v, f"{path}[{i}]") for i, v in enumerate(value))


def _parsed(parse: Any, value: Any, path: str) -> Any:
    if not isinstance(value, str):
        raise DecodeError(path, f"expected a string, got {_name(value)}")
    try:
        return parse(value)
    except FormatError as error:
        raise DecodeError(path, error.message) from error


def _decimal(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise FormatError(f"not a decimal number: {text!r}") from None
    if not number.is_finite():
        raise FormatError(f"not a finite number: {text!r}")
    if str(number) != text:  # Decimal also reads " 1 ", "1_0" and the digits of other scripts
        raise FormatError(f"not in plain decimal form: {text!r}; write {number}")
    return number


def _name(value: Any) -> str:
    return "null" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"
