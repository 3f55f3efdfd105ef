"""A bundle is what its manifest says, part by part and file by file, or it is refused."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.bundle.cut import Packed, cut
from records import bundle
from records.bundle import Content, Manifest, Part, Pin, Target, read_manifest
from records.bundle_stream import (
    read_contents,
    require_files,
    require_parts,
    verify_contents,
)
from records.digest import Digest
from records.errors import BundleDamagedError, BundleIncompleteError, FormatError


def made(directory: Path, files: dict[str, bytes], part_bytes: int) -> Manifest:
    """A bundle of these files in `directory`."""
    directory.mkdir(exist_ok=True)
    packed = []
    for number, (path, data) in enumerate(files.items()):
        source = directory.parent / f"source-{number}"
        source.write_bytes(data)
        packed.append(Packed(Content(path, len(data), Digest.of(data)), source))
    parts = cut(packed, part_bytes, directory, lambda _line: None)
    small = b"the harness"
    (directory / bundle.HARNESS).write_bytes(small)
    manifest = Manifest(
        format=1,
        plan="p",
        plan_digest=Digest.of(b"plan"),
        lock="",
        lock_digest=None,
        target=Target("3.12", "x86_64", "2.31"),
        relies_on=(Pin("numpy", "2.0"),),
        files={bundle.HARNESS: Digest.of(small)},
        parts=parts,
        content=tuple(one.content for one in packed),
    )
    (directory / bundle.MANIFEST).write_bytes(manifest.encode())
    return manifest


def contents(directory: Path, manifest: Manifest) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    read_contents(directory, manifest, lambda want, file: found.update({want.path: file.read()}))
    return found


@given(
    st.lists(st.binary(max_size=3000), max_size=4),
    st.integers(min_value=1000, max_value=6000),
)
def test_what_is_cut_is_read_back_whatever_the_sizes(
    tmp_path_factory: pytest.TempPathFactory, data: list[bytes], part_bytes: int
) -> None:
    directory = tmp_path_factory.mktemp("bundle") / "parts"
    files = {f"wheels/{number}-{'n' * 120}": one for number, one in enumerate(data)}
    manifest = made(directory, files, part_bytes)
    require_files(directory, manifest)
    require_parts(directory, manifest)
    assert contents(directory, manifest) == files
    verify_contents(directory, manifest)
    assert all(part.size_bytes == part_bytes for part in manifest.parts[:-1])
    assert read_manifest(directory) == manifest


def test_the_parts_in_order_are_a_tar_archive(tmp_path: Path) -> None:
    files = {"wheels/a.whl": b"a" * 5000, "models/m/config.json": b"{}"}
    manifest = made(tmp_path / "parts", files, 1500)
    assert len(manifest.parts) > 3
    joined = b"".join((tmp_path / "parts" / part.name).read_bytes() for part in manifest.parts)
    with tarfile.open(fileobj=io.BytesIO(joined)) as archive:
        members = archive.getmembers()
        assert {m.name: m.size for m in members} == {n: len(d) for n, d in files.items()}
        assert {(m.mtime, m.uid, m.gid, m.uname, m.mode) for m in members} == {(0, 0, 0, "", 0o644)}


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A bundle of six parts."""
    made(tmp_path / "parts", {"a": b"a" * 3000, "b": b"b" * 1000}, 1200)
    return tmp_path / "parts"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "part\0"])
def test_a_part_has_the_name_of_a_file(parts: Path, name: str) -> None:
    manifest = read_manifest(parts)
    with pytest.raises(FormatError, match="is not the name of a file"):
        replace(manifest, parts=(replace(manifest.parts[0], name=name), *manifest.parts[1:]))


def test_missing_parts_are_all_named(parts: Path) -> None:
    (parts / "part-001").unlink()
    (parts / "part-003").unlink()
    with pytest.raises(BundleIncompleteError, match="missing: part-001, part-003") as caught:
        require_parts(parts, read_manifest(parts))
    assert "of 6 parts are here and verified" in caught.value.message


def test_a_flipped_bit_is_told_with_got_and_want_before_what_is_missing(parts: Path) -> None:
    manifest = read_manifest(parts)
    (parts / "part-000").unlink()
    data = bytearray((parts / "part-002").read_bytes())
    data[7] ^= 1
    (parts / "part-002").write_bytes(data)
    with pytest.raises(BundleDamagedError) as caught:
        require_parts(parts, manifest)
    want = manifest.parts[2].digest
    assert f"part-002: got 1200 bytes, {Digest.of(bytes(data))}, want" in caught.value.message
    assert str(want) in caught.value.message
    assert "carry part-002 anew" in caught.value.remedy


def test_a_part_cut_short_is_damaged(parts: Path) -> None:
    data = (parts / "part-001").read_bytes()
    (parts / "part-001").write_bytes(data[:100])
    with pytest.raises(BundleDamagedError, match="part-001: got 100 bytes"):
        require_parts(parts, read_manifest(parts))


def test_a_small_file_is_held_against_the_manifest(parts: Path) -> None:
    manifest = read_manifest(parts)
    (parts / bundle.HARNESS).write_bytes(b"another")
    with pytest.raises(BundleDamagedError, match=r"harness\.pyz: got sha256:.* want sha256:"):
        require_files(parts, manifest)
    (parts / bundle.HARNESS).unlink()
    with pytest.raises(BundleIncompleteError, match=r"harness\.pyz"):
        require_files(parts, manifest)


def test_a_manifest_that_tells_of_other_files_is_refused(parts: Path) -> None:
    manifest = read_manifest(parts)
    first, second = manifest.content
    for content, words in (
        ((second, first), "holds 'a'"),
        ((first,), "nothing more"),
        ((first, second, second), "ends before b"),
        ((first, replace(second, digest=first.digest)), "b: got"),
    ):
        with pytest.raises(BundleDamagedError, match=words):
            verify_contents(parts, replace(manifest, content=content))


def test_parts_that_are_no_tar_stream_are_told_as_such(tmp_path: Path) -> None:
    data = b"x" * 2048
    (tmp_path / "part-000").write_bytes(data)
    manifest = made(tmp_path / "parts", {"a": b"a"}, 5000)
    manifest = replace(manifest, parts=(Part("part-000", len(data), Digest.of(data)),))
    require_parts(tmp_path, manifest)
    with pytest.raises(BundleDamagedError, match="no tar stream"):
        verify_contents(tmp_path, manifest)


@pytest.mark.parametrize(
    "path", ["../up", "/etc/passwd", "a/../../b", "a//b", "./a", "", ".", "..", "a/\0"]
)
def test_no_file_leads_out_of_the_root(parts: Path, path: str) -> None:
    manifest = read_manifest(parts)
    with pytest.raises(FormatError, match="is no path below the root"):
        replace(manifest, content=(Content(path, 1, Digest.of(b"")),))
    with pytest.raises(FormatError, match="not the name of a file"):
        replace(manifest, parts=(Part("../p", 1, Digest.of(b"")),))


def test_a_manifest_that_is_missing_or_damaged_is_told(parts: Path) -> None:
    data = (parts / bundle.MANIFEST).read_bytes()
    (parts / bundle.MANIFEST).write_bytes(data.replace(b'"format":1', b'"format":2'))
    with pytest.raises(BundleDamagedError, match="bundle of format 2"):
        read_manifest(parts)
    (parts / bundle.MANIFEST).write_bytes(data[:-3])
    with pytest.raises(BundleDamagedError, match="not JSON"):
        read_manifest(parts)
    (parts / bundle.MANIFEST).unlink()
    with pytest.raises(BundleDamagedError, match=r"manifest\.json"):
        read_manifest(parts)
