"""The stream of a bundle: its parts held against the manifest, and the files read back out of it.

Invariant: nothing is taken from a part before every part was verified; what `read_contents` hands
out is refused at the file's end where the bytes are not the manifest's.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from records.bundle import MANIFEST, Content, Manifest, Part
from records.digest import Digest
from records.errors import BundleDamagedError, BundleIncompleteError
from records.parts import open_parts

_SHOWN = 6

# Called with a file of the manifest and its bytes, to be read to the end.
Take = Callable[[Content, BinaryIO], None]


def require_files(directory: Path, manifest: Manifest) -> None:
    """BundleDamagedError unless the small files are there with their digests."""
    for name, want in sorted(manifest.files.items()):
        path = directory / name
        try:
            got = Digest.of(path.read_bytes())
        except OSError as error:
            raise BundleIncompleteError(f"{name}: {error.strerror}", _carry(name)) from error
        if got != want:
            raise BundleDamagedError(f"{name}: got {got}, want {want}", _carry(name))


def require_parts(directory: Path, manifest: Manifest) -> None:
    """Every part, hashed. A part that differs is told before one that is missing.

    BundleDamagedError: got and want of the first parts that differ. BundleIncompleteError: those
    that are not there yet, or not to their end.
    """
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(lambda part: _look(directory, part), manifest.parts))
    damaged = [(part, got) for part, got in zip(manifest.parts, found, strict=True) if got]
    absent = [p.name for p, got in zip(manifest.parts, found, strict=True) if got is None]
    if damaged:
        told = "; ".join(
            f"{part.name}: got {got}, want {part.size_bytes} bytes, {part.digest}"
            for part, got in damaged[:_SHOWN]
        )
        raise BundleDamagedError(told, _carry(*(part.name for part, _ in damaged)))
    if absent:
        here = len(manifest.parts) - len(absent)
        raise BundleIncompleteError(
            f"{here} of {len(manifest.parts)} parts are here and verified; missing: "
            f"{', '.join(absent)}",
            "carry the rest there, then the same command again",
        )


def read_contents(directory: Path, manifest: Manifest, take: Take) -> None:
    """Hand each file of the stream to `take`. BundleDamagedError where stream and manifest differ.

    Call `require_parts` before: this trusts the parts.
    """
    with (
        open_parts([directory / part.name for part in manifest.parts]) as stream,
        _told_as_damage(),
        tarfile.open(fileobj=stream, mode="r|") as archive,
    ):
        expected = iter(manifest.content)
        for member in archive:
            want = next(expected, None)
            if want is None or (member.name, member.size) != (want.path, want.size_bytes):
                raise BundleDamagedError(
                    f"the stream holds {member.name!r} of {member.size} bytes, "
                    f"the manifest {want.path if want else 'nothing more'!r}",
                    "make the bundle again",
                )
            file = archive.extractfile(member)
            if file is None:
                raise BundleDamagedError(f"{member.name} is no regular file", "make it again")
            with file:
                take(want, cast("BinaryIO", file))
        missing = next(expected, None)
        if missing is not None:
            raise BundleDamagedError(f"the stream ends before {missing.path}", "make it again")


def verify_contents(directory: Path, manifest: Manifest) -> None:
    """BundleDamagedError for a file in the stream that is not what the manifest says."""

    def check(want: Content, file: BinaryIO) -> None:
        require_digest(want, Digest.of_file(file))

    read_contents(directory, manifest, check)


def require_digest(want: Content, got: Digest) -> None:
    """BundleDamagedError where `got` is another digest than the manifest's."""
    if got != want.digest:
        raise BundleDamagedError(f"{want.path}: got {got}, want {want.digest}", "make it again")


def _look(directory: Path, part: Part) -> str | None:
    """What is wrong with a part: "" nothing, None that it is not there yet."""
    path = directory / part.name
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = Digest.of_file(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error.strerror)
    if (size, digest) == (part.size_bytes, part.digest):
        return ""
    return f"{size} bytes, {digest}"


def _carry(*names: str) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"carry {shown} anew, then the same command again"


@contextmanager
def _told_as_damage() -> Iterator[None]:
    try:
        yield
    except tarfile.TarError as error:
        raise BundleDamagedError(
            f"the parts are no tar stream: {error}", f"make the bundle again ({MANIFEST} with it)"
        ) from error
