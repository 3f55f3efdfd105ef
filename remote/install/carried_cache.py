"""A warm cache on its way: packed on the host that filled it, put in its place on the next.

Invariant: a cache that was put in its place is, file for file, the one that its listing names, with
the times of change that it had; packing writes the listing last, over files hashed as they were
packed.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from records import canonical
from records.bundle import RUNS, SCRATCH
from records.cache_listing import (
    LISTING,
    WARM,
    CachedFile,
    CacheListing,
    CachePart,
    read_listing,
)
from records.decode import from_object
from records.digest import Digest
from records.errors import BundleDamagedError, BundleIncompleteError, FormatError
from records.parts import PartsWriter, open_parts
from records.run_directory import runs_in
from remote.install.fillings import Filling, filling_of, together
from remote.install.job import jobs_below

# The level at which packing is faster than carrying: objects shrink to a third either way.
_LEVEL = 3
_ANEW = "carry the cache anew, or leave it out: an arm's first boot then fills it"
_SINCE = "install this plan again (bundle_install.py) if another run has used the cache since"

Say = Callable[[str], None]


def pack(root: Path, out: Path, part_bytes: int, say: Say) -> CacheListing:
    """Pack the warm cache that the runs below `root` filled into `out`; OSError.

    FormatError where no warm arm of any run had a whole boot. The listing names the newest run.
    """
    filling = together(filling_of(job) for job in jobs_below(root).values())
    if filling is None or filling.engine is None or not filling.whole:
        raise FormatError(
            f"{root}: no boot of a warm arm has ended yet", "pack after the first boots"
        )
    cache = root / SCRATCH / WARM
    out.mkdir(parents=True, exist_ok=True)
    (out / LISTING).unlink(missing_ok=True)
    writer = PartsWriter(out, "cache", part_bytes)
    with gzip.GzipFile("", "wb", _LEVEL, cast("BinaryIO", writer), mtime=0) as stream:
        files = tuple([_add(stream, cache, path) for path in _files(cache)])
        stream.write(bytes(1024))  # the end of an archive
    parts = tuple(CachePart(*part) for part in writer.finish())
    listing = _listing(root, filling, filling.engine, files, parts)
    _write_listing(out / LISTING, listing)
    packed = sum(part.size_bytes for part in parts)
    say(
        f"cache {listing.digest}: {len(files)} files, {listing.size_bytes / 1e6:.1f} MB, of "
        f"{len(listing.arms)} arms, in {len(parts)} parts of {packed / 1e6:.1f} MB together"
    )
    return listing


def list_standing(root: Path, filling: Filling, say: Say) -> CacheListing:
    """List the warm cache as it stands; a run that begins on it is held against this listing.

    FormatError where its engine was not bound.
    """
    if filling.engine is None:
        raise FormatError(f"run {filling.run} bound no engine", "start it again")
    cache = root / SCRATCH / WARM
    files = tuple([_described(cache, path)[0] for path in _files(cache)])
    listing = _listing(root, filling, filling.engine, files, ())
    _write_listing(_placed(root / SCRATCH), listing)
    say(
        f"cache {listing.digest}, as run {filling.run} left it: {len(files)} files, "
        f"{listing.size_bytes / 1e6:.1f} MB, of {len(listing.arms)} arms"
    )
    return listing


def _listing(
    root: Path,
    filling: Filling,
    engine: Digest,
    files: tuple[CachedFile, ...],
    parts: tuple[CachePart, ...],
) -> CacheListing:
    arms = tuple(sorted(filling.arms, key=str))
    return CacheListing(1, filling.run, engine, str(root), arms, files, parts)


def _write_listing(path: Path, listing: CacheListing) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(listing.encode())
    partial.replace(path)


def require_parts(directory: Path, listing: CacheListing) -> None:
    """BundleIncompleteError, BundleDamagedError unless every part is here with its digest."""
    for part in listing.parts:
        path = directory / part.name
        try:
            with path.open("rb") as file:
                got = Digest.of_file(file)
        except FileNotFoundError as error:
            raise BundleIncompleteError(f"{part.name} is not here", f"carry {part.name}") from error
        if got != part.digest:
            raise BundleDamagedError(f"{part.name}: got {got}, want {part.digest}", _ANEW)


def place(directory: Path, scratch: Path, say: Say) -> CacheListing:
    """Put the carried cache in the place of the warm one, which is removed.

    BundleIncompleteError, BundleDamagedError: a part or a file is not what the listing says.
    """
    listing = read_listing(directory)
    require_parts(directory, listing)
    target = scratch / WARM
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    expected = iter(listing.files)
    with (
        open_parts([directory / part.name for part in listing.parts]) as raw,
        gzip.open(raw, "rb") as stream,
        tarfile.open(fileobj=cast("BinaryIO", stream), mode="r|") as archive,
    ):
        for member in archive:
            want = next(expected, None)
            file = archive.extractfile(member)
            if want is None or file is None or member.name != want.path:
                raise BundleDamagedError(f"cache: {member.name!r} is not in the listing", _ANEW)
            _write(target / want.path, want, cast("BinaryIO", file))
    missing = next(expected, None)
    if missing is not None:
        raise BundleDamagedError(f"cache: the stream ends before {missing.path}", _ANEW)
    _write_listing(_placed(scratch), listing)
    say(f"cache {listing.digest}: {len(listing.files)} files of {len(listing.arms)} arms")
    return listing


def require_placed(scratch: Path, digest: Digest) -> None:
    """BundleDamagedError unless the warm cache is the carried one of this digest, byte for byte.

    To be asked before the first boot only: an engine adds to its cache.
    """
    path = _placed(scratch)
    try:
        listing = from_object(CacheListing, canonical.decode(path.read_bytes()))
    except (OSError, FormatError) as error:
        raise BundleDamagedError(f"the carried cache has no listing: {error}", _ANEW) from error
    if listing.digest != digest:
        raise BundleDamagedError(f"carried cache: got {listing.digest}, want {digest}", _SINCE)
    cache = scratch / WARM
    found = {p.relative_to(cache).as_posix(): p for p in _files(cache)}
    want = {file.path: file for file in listing.files}
    for name in sorted(found.keys() | want.keys()):
        if name not in found or name not in want:
            raise BundleDamagedError(f"carried cache: {name} is there or listed, not both", _SINCE)
        with found[name].open("rb") as stream:
            if Digest.of_file(stream) != want[name].digest:
                raise BundleDamagedError(f"carried cache: {name} has another digest", _SINCE)


def _placed(scratch: Path) -> Path:
    """The listing of the cache that was put in its place."""
    return scratch / "cache" / f"carried-{LISTING}"


def _files(cache: Path) -> Iterator[Path]:
    """Regular files in order of name; locks, which belong to processes, stay behind."""
    for path in sorted(cache.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.suffix != ".lock":
            yield path


def _described(cache: Path, path: Path) -> tuple[CachedFile, bytes]:
    """A file of the cache as a listing names it, with its bytes."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        data = file.read()  # the largest are objects of some MB
    digest = Digest(hashlib.sha256(data).hexdigest())
    executable = bool(status.st_mode & 0o100)
    name = path.relative_to(cache).as_posix()
    return CachedFile(name, len(data), digest, status.st_mtime_ns, executable), data


def _add(stream: gzip.GzipFile, cache: Path, path: Path) -> CachedFile:
    described, data = _described(cache, path)
    info = tarfile.TarInfo(described.path)
    info.size, info.mode = len(data), 0o755 if described.executable else 0o644
    stream.write(info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict"))
    stream.write(data)
    stream.write(bytes(-len(data) % 512))
    return described


def _write(path: Path, want: CachedFile, file: BinaryIO) -> None:
    data = file.read()
    got = Digest(hashlib.sha256(data).hexdigest())
    if got != want.digest:
        raise BundleDamagedError(f"cache: {want.path}: got {got}, want {want.digest}", _ANEW)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o755 if want.executable else 0o644)
    os.utime(path, ns=(want.mtime_ns, want.mtime_ns))


def pack_records(root: Path, out: Path, part_bytes: int, say: Say) -> Sequence[Path]:
    """Every run directory below `root` as a gzip stream of a tar, cut into parts.

    The records verify themselves where they arrive (kit fetch-records --from).
    """
    runs = [run.path for run in runs_in(root / RUNS)]
    out.mkdir(parents=True, exist_ok=True)
    writer = PartsWriter(out, "records", part_bytes)
    with (
        gzip.GzipFile("", "wb", _LEVEL, cast("BinaryIO", writer), mtime=0) as stream,
        tarfile.open(fileobj=cast("BinaryIO", stream), mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        for run in runs:
            for path in sorted(p for p in run.rglob("*") if p.is_file()):
                data = path.read_bytes()  # a journal may grow meanwhile: what is here is a prefix
                info = tarfile.TarInfo(f"{run.name}/{path.relative_to(run).as_posix()}")
                info.size, info.mode = len(data), 0o644
                tar.addfile(info, io.BytesIO(data))
    parts = [out / name for name, _, _ in writer.finish()]
    told = ", ".join(run.name for run in runs) or "no run, since none has begun"
    say(f"records of {told}: {', '.join(path.name for path in parts)}")
    return parts
