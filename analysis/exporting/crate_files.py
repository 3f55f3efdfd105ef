"""An RO-Crate of sealed runs as a directory or a ZIP archive.

Invariant: nothing is written before every byte of every run was held against its seal; the files of
a run are copied as they are. An archive holds its files in order of name, uncompressed and without
dates, so that it has the same bytes wherever it is made.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

from analysis.exporting.ro_crate import (
    METADATA_NAME,
    Agent,
    CratedRun,
    metadata,
    plan_bytes,
    plan_path,
)
from analysis.reading import Run
from analysis.whole import STAGE_NAME, require_place, whole_directory, whole_file
from records.digest import Digest
from records.errors import ExportError
from records.run_directory import RunDirectory
from records.seal import SEAL_NAME, File

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that ZIP can say
_REGULAR_FILE_0644 = 0o100644 << 16
_UNIX = 3


def write_crate(
    runs: Sequence[tuple[RunDirectory, Run]], out: Path, agent: Agent | None = None
) -> tuple[Path, int]:
    """Write the crate to `out`, an archive where the name ends in .zip; the path, how many files.

    ExportError: a run is open, is not what its seal says, or `out` holds something already or
    cannot be written. DiskFullError: no space; nothing is left of the crate.
    """
    ordered = sorted(runs, key=lambda one: one[1].run_id)
    crated = [_crated(directory, run) for directory, run in ordered]
    made = {METADATA_NAME: metadata(crated, agent)}
    made |= {plan_path(run): plan_bytes(run) for _, run in ordered}
    copied = {
        f"{run.run_id}/{name}": directory.path / name
        for (directory, run), one in zip(ordered, crated, strict=True)
        for name in one.files
    }
    require_free(out)
    names = sorted(made.keys() | copied.keys())
    if out.suffix == ".zip":
        with whole_file(out) as fresh:
            _fill(fresh, names, made, copied)
    else:
        _write_directory(out, names, made, copied)
    return out, len(names)


def _crated(directory: RunDirectory, run: Run) -> CratedRun:
    if not directory.is_sealed:
        raise ExportError(
            f"run {run.run_id} is not sealed: it may still grow",
            f"kit reproduce --run {run.run_id} brings it to its end",
        )
    for fault in directory.verify_files():
        raise ExportError(fault.message, "kit audit")
    return CratedRun(
        run, directory.seal(), _file(directory.events), _file(directory.path / SEAL_NAME)
    )


def _file(path: Path) -> File:
    with path.open("rb") as file:
        digest = Digest.of_file(file)
        return File(file.tell(), digest)


def require_free(out: Path) -> None:
    """ExportError: something stands where the crate is to, or it could not be written there."""
    directory = out.suffix != ".zip"
    require_place(out, directory=directory)
    empty = directory and out.is_dir() and {p.name for p in out.iterdir()} <= {STAGE_NAME}
    if out.exists() and not empty:
        raise ExportError(f"{out} is there already", "name a new one, or remove it first")


def _write_directory(
    out: Path, names: list[str], made: dict[str, bytes], copied: dict[str, Path]
) -> None:
    tops = sorted({name.split("/")[0] for name in names} - {METADATA_NAME})
    with whole_directory(out, [*tops, METADATA_NAME]) as fresh:
        for name in names:
            target = fresh / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if name in made:
                target.write_bytes(made[name])
            else:
                shutil.copyfile(copied[name], target)


def _fill(out: Path, names: list[str], made: dict[str, bytes], copied: dict[str, Path]) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in names:
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = _UNIX
            entry.external_attr = _REGULAR_FILE_0644
            if name in made:
                archive.writestr(entry, made[name])
                continue
            entry.file_size = copied[name].stat().st_size  # tells whether ZIP64 is needed
            with copied[name].open("rb") as source, archive.open(entry, "w") as target:
                shutil.copyfileobj(source, target, 1 << 20)
