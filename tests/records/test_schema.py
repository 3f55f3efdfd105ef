"""Every event survives its encoding; nothing that is not in the schema is read."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from records import canonical, chain, schema
from records.digest import Digest
from records.errors import FormatError


def _line(event: Any) -> dict[str, Any]:
    value = canonical.decode(chain.make_line(chain.EMPTY, 5, *schema.encode(event))[:-1])
    assert isinstance(value, dict)
    return value


def test_the_sample_holds_every_event_type(events: list[Any]) -> None:
    assert {e.TYPE for e in events} == set(schema.EVENTS)


def test_every_event_survives_its_line(events: list[Any]) -> None:
    for event in events:
        assert schema.decode(_line(event)) == schema.Envelope(0, 5, event)


def test_unknown_and_missing_keys_are_refused_in_every_event(events: list[Any]) -> None:
    for event in events:
        line = _line(event)
        with pytest.raises(FormatError, match="unknown key 'extra'"):
            schema.decode(line | {"value": line["value"] | {"extra": 1}}, "here")
        for key in line["value"]:
            rest = {k: v for k, v in line["value"].items() if k != key}
            with pytest.raises(FormatError, match=f"here: missing key '{key}'"):
                schema.decode(line | {"value": rest}, "here")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"type": "run.begun"}, "unknown event type 'run.begun'"),
        ({"type": ["run.ended"]}, "unknown event type"),
        ({"type": None}, "unknown event type"),
        ({"t_ns": True}, "t_ns is not an integer"),
        ({"t_ns": "5"}, "t_ns is not an integer"),
        ({"seq": None}, "seq is not an integer"),
        ({"extra": 1}, "exactly prev, seq, t_ns, type and value"),
        ({"value": []}, "expected an object"),
    ],
)
def test_a_wrong_envelope_is_refused(events: list[Any], change: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        schema.decode(_line(events[0]) | change)


@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_only_an_object_is_an_event(value: Any) -> None:
    with pytest.raises(FormatError, match="exactly"):
        schema.decode(value)


def test_no_field_of_any_event_is_a_float() -> None:
    seen: set[Any] = set()

    def walk(cls: Any) -> None:
        if cls in seen:
            return
        seen.add(cls)
        for field in fields(cls):
            assert "float" not in str(field.type), f"{cls.__name__}.{field.name}"
            for name in str(field.type).replace("[", " ").replace("]", " ").split():
                target = getattr(schema, name, None)
                if isinstance(target, type) and is_dataclass(target) and target is not Digest:
                    walk(target)

    for event in schema.EVENTS.values():
        walk(event)
    assert len(seen) > len(schema.EVENTS)
