"""The seal: names every file of its run, once, and is never written twice."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import chain
from records.digest import Digest
from records.errors import ForeignDirectoryError, FormatError
from records.run_directory import RunDirectory
from records.seal import Events, File, Seal, write_seal

MakeRun = Callable[[Path], RunDirectory]
SEAL = Seal(1, "run", Events(3, 900, Digest.of(b"h")), {"logs/a.gz": File(5, Digest.of(b"a"))})


def test_a_seal_names_every_file(tmp_path: Path, make_run: MakeRun) -> None:
    run = make_run(tmp_path)
    seal = run.seal()
    assert set(seal.files) == {"logs/engine.log.gz", "metrics/after.prom.gz"}
    for name, file in seal.files.items():
        data = (run.path / name).read_bytes()
        assert file == File(len(data), Digest.of(data))
    whole = run.events.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    assert seal.events == Events(whole.count(b"\n"), len(whole), Digest.of(last))
    assert run.seal_digest == Digest.of(seal.encode())


def test_the_bytes_of_a_seal() -> None:
    h, a = Digest.of(b"h").hex, Digest.of(b"a").hex
    assert SEAL.encode().decode() == (
        f'{{"events":{{"bytes":900,"head":"sha256:{h}","lines":3}},'
        f'"files":{{"logs/a.gz":{{"bytes":5,"digest":"sha256:{a}"}}}},"format":1,"run_id":"run"}}\n'
    )
    assert Seal.parse(SEAL.encode()) == SEAL


def test_a_second_seal_is_refused(tmp_path: Path, make_run: MakeRun) -> None:
    run = make_run(tmp_path)
    before = (run.path / "seal.json").read_bytes()
    with pytest.raises(ForeignDirectoryError, match="sealed already"):
        write_seal(run.path, "other", chain.EMPTY)
    assert (run.path / "seal.json").read_bytes() == before


def test_what_a_stopped_sealing_left_is_no_part_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"")
    (tmp_path / ".seal.json.new").write_bytes(b'{"events":')
    assert write_seal(tmp_path, "run", chain.EMPTY).files == {}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["events.jsonl", "seal.json"]
    assert list(RunDirectory(tmp_path).verify_files()) == []


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo"])
def test_a_run_with_anything_but_files_is_not_sealed(tmp_path: Path, kind: str) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"")
    odd = tmp_path / "odd"
    if kind == "fifo":
        os.mkfifo(odd)
    else:
        odd.symlink_to("events.jsonl" if kind == "link" else "nowhere")
    with pytest.raises(ForeignDirectoryError, match="odd is neither"):
        write_seal(tmp_path, "run", chain.EMPTY)
    assert not (tmp_path / "seal.json").exists()


@given(st.data())
def test_a_changed_byte_is_refused_or_another_seal(data: st.DataObject) -> None:
    changed = bytearray(SEAL.encode())
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        parsed = Seal.parse(bytes(changed))
    except FormatError:
        return
    assert parsed != SEAL
    assert parsed.encode() == bytes(changed)


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "events.jsonl"]
)
def test_a_seal_names_only_files_of_its_run(name: str) -> None:
    with pytest.raises(FormatError, match="not the name of a file"):
        replace(SEAL, files={name: File(1, Digest.of(b""))})


def test_another_format_is_refused() -> None:
    with pytest.raises(FormatError, match="format 2; this kit reads 1"):
        Seal.parse(replace(SEAL, format=2).encode())
    with pytest.raises(FormatError, match="no line end"):
        Seal.parse(SEAL.encode()[:-1])
