"""FORMAT.md is held to the code: its vectors, its shell scripts, its list of events.

`python tests/records/test_format_document.py` rewrites the list of events.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import re
import subprocess
import types
import typing
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from records import chain, checkpoint, merkle, schema
from records.digest import Digest
from records.run_directory import RunDirectory
from records.seal import Seal

DOCUMENT = Path(__file__).parents[2] / "records" / "FORMAT.md"
BEGIN, END = "<!-- events -->\n", "<!-- /events -->\n"
NAMES = {
    int: "integer",
    str: "string",
    bool: "boolean",
    Digest: "digest",
    Decimal: "decimal",
    Any: "any",
}


def _type(hint: Any) -> str:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return f"{_type(args[0])} or null"
    if origin is tuple:
        return f"list of {_type(args[0])}"
    if origin is dict:
        return f"map to {_type(args[1])}"
    if hint in NAMES:
        return NAMES[hint]
    return f"[{hint.__name__}](#{hint.__name__.lower()})"


def _inner(hint: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(hint) and hint not in NAMES:
        yield hint
    for arg in typing.get_args(hint):
        yield from _inner(arg)


def _section(title: str, cls: Any) -> str:
    hints = typing.get_type_hints(cls)
    rows = [f"| `{f.name}` | {_type(hints[f.name])} |" for f in dataclasses.fields(cls)]
    about = inspect.getdoc(cls) or ""
    return "\n".join([f"#### {title}\n", about, "", "| key | type |", "|---|---|", *rows, ""])


def events_text() -> str:
    """The sections on events and values as FORMAT.md must hold them."""
    sections = [_section(f"`{name}`", cls) for name, cls in schema.EVENTS.items()]
    values: list[Any] = [Seal]
    for cls in [*schema.EVENTS.values(), *values]:
        for f in dataclasses.fields(cls):
            values += [v for v in _inner(typing.get_type_hints(cls)[f.name]) if v not in values]
    for cls in values:  # grows as it goes
        for f in dataclasses.fields(cls):
            values += [v for v in _inner(typing.get_type_hints(cls)[f.name]) if v not in values]
    sections.append("### Values\n")
    sections += [_section(cls.__name__, cls) for cls in values]
    return "\n".join(sections)


def _block(kind: str, name: str) -> str:
    pattern = rf"<!-- {kind}: {name} -->\n```(?:sh)?\n(.*?)```\n"
    (found,) = re.findall(pattern, DOCUMENT.read_text("utf-8"), re.DOTALL)
    return str(found)


def _run(shell: str, script: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [shell, "-c", _block("script", script), "verify.sh", *args],
        cwd=cwd,
        capture_output=True,
        text=True,
    )


SHELLS = pytest.mark.parametrize("shell", ["sh", "bash"])


def test_the_events_are_those_of_the_schema() -> None:
    text = DOCUMENT.read_text("utf-8")
    listed = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    assert listed == events_text(), f"run: python {Path(__file__).name}"


def test_the_history_ends_in_the_format_that_is_written() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d{4}-\d\d-\d\d) \| ", DOCUMENT.read_text("utf-8"), re.M)
    assert [int(number) for number, _ in rows] == list(range(1, schema.FORMAT + 1))
    assert re.findall(r"^  (\d+) \((\d{4}-\d\d-\d\d)\):", schema.__doc__ or "", re.M) == rows


def test_constants_in_the_text() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert f"({chain.MAX_LINE_BYTES:,} bytes)" in text
    assert f"origin `{checkpoint.ORIGIN}`" in text


def test_the_journal_vector() -> None:
    lines = _block("vector", "journal").encode().splitlines(keepends=True)
    hashes = [line.split() for line in _block("vector", "hashes").splitlines()]
    assert [(hashlib.sha256(line).hexdigest(), str(len(line))) for line in lines] == [
        (digest, size) for digest, size in hashes
    ]
    assert chain.verify(lines).head.hex == hashes[-1][0]
    state = chain.EMPTY
    for line in lines:
        envelope = schema.decode(chain.canonical.decode(line[:-1]))
        assert chain.make_line(state, envelope.t_ns, *schema.encode(envelope.event)) == line
        state = chain.extend(state, line)


def test_the_checkpoint_vector() -> None:
    leaves = checkpoint.parse_runs(_block("vector", "runs"))
    made = checkpoint.Checkpoint.of(leaves)
    assert str(made) == _block("vector", "checkpoint")
    text = DOCUMENT.read_text("utf-8")
    for digest in (made.root, *(merkle.leaf_hash(str(leaf).encode()) for leaf in leaves)):
        assert f"`{digest.hex}`" in text


@SHELLS
def test_the_shell_confirms_the_journal_vector(shell: str, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(_block("vector", "journal"))
    head = _block("vector", "hashes").splitlines()[-1].split()[0]
    ended = _run(shell, "verify", "events.jsonl", head, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, f"3 lines, head {head}\n"), ended.stderr


@SHELLS
def test_the_shell_confirms_a_real_journal(
    shell: str, tmp_path: Path, make_run: Callable[[Path], RunDirectory]
) -> None:
    run = make_run(tmp_path)
    sealed = run.seal().events
    ended = _run(shell, "verify", str(run.events), sealed.head.hex, cwd=tmp_path)
    assert ended.stdout == f"{sealed.lines} lines, head {sealed.head.hex}\n", ended.stderr


@SHELLS
@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda lines: [lines[0], lines[1].replace(b"true", b"false"), lines[2]], "line 3:"),
        (lambda lines: [lines[0], lines[2]], "line 2:"),
        (lambda lines: [lines[1], lines[0], lines[2]], "line 1:"),
        (lambda lines: [*lines, lines[2]], "line 4:"),
        (lambda lines: [*lines, b"more"], "line 4: torn"),
        (lambda lines: [*lines, b"\n"], "line 4:"),
        (lambda lines: lines[:2], "head: got afb05a"),
        (lambda lines: [*lines[:2], lines[2].replace(b"17", b"18")], "head: got"),
        (lambda lines: [lines[0], lines[1].replace(b"true", b"tr\0ue"), lines[2]], "zero byte"),
        (lambda lines: [lines[0], lines[1].replace(b"true", b"tr\xffue"), lines[2]], "line 3:"),
    ],
)
def test_the_shell_finds_what_was_changed(
    shell: str, tmp_path: Path, edit: Callable[[list[bytes]], list[bytes]], line: str
) -> None:
    lines = _block("vector", "journal").encode().splitlines(keepends=True)
    head = hashlib.sha256(lines[-1]).hexdigest()
    (tmp_path / "events.jsonl").write_bytes(b"".join(edit(lines)))
    ended = _run(shell, "verify", "events.jsonl", head, cwd=tmp_path)
    assert ended.returncode == 1
    assert line in ended.stderr


@SHELLS
def test_the_shell_confirms_the_root(shell: str, tmp_path: Path) -> None:
    for leaf in checkpoint.parse_runs(_block("vector", "runs")):
        checkpoint.add_run(tmp_path, leaf)
    assert (tmp_path / "CHECKPOINT").read_text() == _block("vector", "checkpoint")
    ended = _run(shell, "root", cwd=tmp_path)
    point = checkpoint.read_checkpoint(tmp_path)
    assert point is not None
    assert ended.stdout == f"{point.root.hex}\n", ended.stderr
    (tmp_path / "RUNS").write_text(_block("vector", "runs").replace("20261130-b", "20261130-c"))
    assert _run(shell, "root", cwd=tmp_path).returncode == 1


@SHELLS
@pytest.mark.parametrize("runs", [1, 3, 6, 7])
def test_the_shell_confirms_the_root_of_any_number_of_runs(
    shell: str, runs: int, tmp_path: Path
) -> None:
    for number in range(runs):
        checkpoint.add_run(tmp_path, checkpoint.Leaf(f"run-{number}", Digest.of(b"%d" % number)))
    ended = _run(shell, "root", cwd=tmp_path)
    point = checkpoint.read_checkpoint(tmp_path)
    assert point is not None
    assert ended.stdout == f"{point.root.hex}\n", ended.stderr
    (tmp_path / "RUNS").write_text("".join((tmp_path / "RUNS").read_text().splitlines(True)[:-1]))
    ended = _run(shell, "root", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (1, f"runs: got {runs - 1}\n")


if __name__ == "__main__":
    before = DOCUMENT.read_text("utf-8")
    DOCUMENT.write_text(
        before[: before.index(BEGIN) + len(BEGIN)] + events_text() + before[before.index(END) :],
        "utf-8",
    )
