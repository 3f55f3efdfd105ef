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

from records import canonical, schema
from records.bundle import JOB, SCRATCH
from records.cache_listing import (
    LISTING,
    WARM,
    CachedFile,
    CacheListing,
    CachePart,
    arm_digest,
    read_listing,
)
from records.decode import from_object
from records.digest import Digest
from records.errors import BundleDamagedError, BundleIncompleteError, FormatError
from records.job import Job
from records.parts import PartsWriter, open_parts
from records.run_directory import RunDirectory

# The level at which packing is faster than carrying: objects shrink to a third either way.
_LEVEL = 3
_ANEW = "carry the cache anew, or leave it out: an arm's first boot then fills it"

Say = Callable[[str], None]


def filled_by(job: Job) -> tuple[tuple[Digest, ...], Digest]:
    """The arms whose boots of this run filled the warm cache, and the engine that did.

    FormatError where no warm arm of the run had a whole boot.
    """
    warm = {arm.id: arm for arm in job.plan.arms if arm.cache == "warm"}
    begun: dict[str, str] = {}
    whole: set[str] = set()
    engine: Digest | None = None
    for envelope in RunDirectory(Path(job.run_directory)).read():
        event = envelope.event
        if isinstance(event, schema.EngineBound):
            engine = event.digest
        elif isinstance(event, schema.BootStarted):
            begun[event.boot] = event.arm
        elif isinstance(event, schema.BootEnded) and event.outcome == "completed":
            whole.add(begun.get(event.boot, ""))
    arms = {arm_digest(warm[name]) for name in whole if name in warm}
    if engine is None or not arms:
        raise FormatError(
            f"run {job.run_id}: no boot of a warm arm has ended yet", "pack after the first boots"
        )
    if job.cache is not None:  # what came here goes on
        arms |= set(job.cache.arms)
    return tuple(sorted(arms, key=str)), engine


def pack(root: Path, out: Path, part_bytes: int, say: Say) -> CacheListing:
    """Pack the warm cache below `root` into `out`. FormatError as `filled_by`; OSError."""
    job = from_object(Job, canonical.decode((root / JOB).read_bytes()))
    arms, engine = filled_by(job)
    cache = root / SCRATCH / WARM
    out.mkdir(parents=True, exist_ok=True)
    (out / LISTING).unlink(missing_ok=True)
    writer = PartsWriter(out, "cache", part_bytes)
    with gzip.GzipFile("", "wb", _LEVEL, cast("BinaryIO", writer), mtime=0) as stream:
        files = tuple([_add(stream, cache, path) for path in _files(cache)])
        stream.write(bytes(1024))  # the end of an archive
    parts = tuple(CachePart(*part) for part in writer.finish())
    listing = CacheListing(1, job.run_id, engine, str(root), arms, files, parts)
    partial = out / f"{LISTING}.partial"
    partial.write_bytes(listing.encode())
    partial.replace(out / LISTING)
    packed = sum(part.size_bytes for part in parts)
    say(
        f"cache {listing.digest}: {len(files)} files, {listing.size_bytes / 1e6:.1f} MB, of "
        f"{len(arms)} arms, in {len(parts)} parts of {packed / 1e6:.1f} MB together"
    )
    return listing


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
    shutil.copyfile(directory / LISTING, _placed(scratch))
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
        raise BundleDamagedError(f"carried cache: got {listing.digest}, want {digest}", _ANEW)
    cache = scratch / WARM
    found = {p.relative_to(cache).as_posix(): p for p in _files(cache)}
    want = {file.path: file for file in listing.files}
    for name in sorted(found.keys() | want.keys()):
        if name not in found or name not in want:
            raise BundleDamagedError(f"carried cache: {name} is there or listed, not both", _ANEW)
        with found[name].open("rb") as stream:
            if Digest.of_file(stream) != want[name].digest:
                raise BundleDamagedError(f"carried cache: {name} has another digest", _ANEW)


def _placed(scratch: Path) -> Path:
    """The listing of the cache that was put in its place."""
    return scratch / "cache" / f"carried-{LISTING}"


def _files(cache: Path) -> Iterator[Path]:
    """Regular files in order of name; locks, which belong to processes, stay behind."""
    for path in sorted(cache.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.suffix != ".lock":
            yield path


def _add(stream: gzip.GzipFile, cache: Path, path: Path) -> CachedFile:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        data = file.read()  # the largest are objects of some MB
    name = path.relative_to(cache).as_posix()
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o755 if status.st_mode & 0o100 else 0o644
    stream.write(info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict"))
    stream.write(data)
    stream.write(bytes(-len(data) % 512))
    digest = Digest(hashlib.sha256(data).hexdigest())
    executable = bool(status.st_mode & 0o100)
    return CachedFile(name, len(data), digest, status.st_mtime_ns, executable)


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
    """The run directory of the job below `root` as a gzip stream of a tar, cut into parts.

    The records verify themselves where they arrive (kit fetch-records --from).
    """
    job = from_object(Job, canonical.decode((root / JOB).read_bytes()))
    out.mkdir(parents=True, exist_ok=True)
    writer = PartsWriter(out, "records", part_bytes)
    run = Path(job.run_directory)
    with (
        gzip.GzipFile("", "wb", _LEVEL, cast("BinaryIO", writer), mtime=0) as stream,
        tarfile.open(fileobj=cast("BinaryIO", stream), mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        for path in sorted(p for p in run.rglob("*") if p.is_file()):
            data = path.read_bytes()  # the journal may grow meanwhile: what is here is a prefix
            info = tarfile.TarInfo(f"{run.name}/{path.relative_to(run).as_posix()}")
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    parts = [out / name for name, _, _ in writer.finish()]
    say(f"records of {run.name}: {', '.join(path.name for path in parts)}")
    return parts
