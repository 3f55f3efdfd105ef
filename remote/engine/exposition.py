"""Parse the Prometheus text exposition format, strictly.

Invariant: every line is a comment, empty, or one well-formed sample of a series not seen before;
anything else raises FormatError with its line number. Values stay decimal text, so that no reader
rounds them. Source: prometheus.io/docs/instrumenting/exposition_formats, text format 0.0.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from records.errors import FormatError

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>(?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?"
    r"[ \t]+(?P<value>\S+)(?:[ \t]+(?P<stamp>-?\d+))?[ \t]*"
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?Inf|NaN")
_TYPES = ("counter", "gauge", "histogram", "summary", "untyped", "unknown", "info", "stateset")
_ESCAPED = re.compile(r'\\(["\\n])')


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: labels sorted by name; the value as decimal text; the line it stood on."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: str
    line: int

    def label(self, name: str) -> str:
        """The value of a label; FormatError if the sample has none of that name."""
        for key, value in self.labels:
            if key == name:
                return value
        raise FormatError(f"line {self.line}: {self.name} has no label {name!r}")

    def integer(self) -> int:
        """The value as an integer ("123.0" and "1.5e+03" are); FormatError if it is not one."""
        number = Decimal(self.value)
        if not number.is_finite() or number != number.to_integral_value():
            raise FormatError(f"line {self.line}: {self.name} is not an integer: {self.value}")
        return int(number)


def parse(text: bytes | str) -> tuple[Sample, ...]:
    """The samples of an exposition, in order. FormatError names the line that is wrong."""
    decoded = _decode(text) if isinstance(text, bytes) else text
    samples: list[Sample] = []
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for number, line in enumerate(decoded.split("\n"), start=1):
        stripped = line.strip(" \t\r")
        if not stripped:
            continue
        if stripped.startswith("#"):
            _check_comment(stripped, number)
            continue
        sample = _sample(stripped, number)
        series = (sample.name, sample.labels)
        if series in seen:
            raise FormatError(f"line {number}: {sample.name} with the same labels a second time")
        seen.add(series)
        samples.append(sample)
    return tuple(samples)


def family(samples: Iterable[Sample], name: str) -> tuple[Sample, ...]:
    """The samples of exactly this name; empty if the server exposes none."""
    return tuple(sample for sample in samples if sample.name == name)


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"line {line}: not UTF-8: {error.reason}") from error


def _check_comment(line: str, number: int) -> None:
    words = line.split(None, 3)
    if len(words) < 2 or words[1] not in ("HELP", "TYPE"):
        return
    if len(words) < 3 or not _NAME.fullmatch(words[2]):
        raise FormatError(f"line {number}: {words[1]} without a metric name: {line!r}")
    if words[1] == "TYPE" and (len(words) < 4 or words[3] not in _TYPES):
        raise FormatError(f"line {number}: unknown metric type: {line!r}")


def _sample(line: str, number: int) -> Sample:
    match = _SAMPLE.fullmatch(line)
    if match is None or not _NUMBER.fullmatch(match["value"]):
        raise FormatError(f"line {number}: not a sample of the Prometheus text format: {line!r}")
    labels = _labels(match["labels"] or "", number)
    return Sample(match["name"], labels, match["value"], number)


def _labels(text: str, number: int) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            raise FormatError(f"line {number}: bad label at {text[at:]!r}")
        if match[1] in found:
            raise FormatError(f"line {number}: label {match[1]!r} twice")
        found[match[1]] = _ESCAPED.sub(lambda m: "\n" if m[1] == "n" else m[1], match[2])
        at = match.end()
    return tuple(sorted(found.items()))
