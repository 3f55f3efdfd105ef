"""What the engine is: one digest over every installed distribution, and the proof that it is so.

Invariant: equal digests mean equal bytes of every file that a wheel brought, outside `bin/`, as far
as SHA-256 goes; `bind` reads and hashes each of them before it returns a digest.

Binding text: the line `kit-binding 1`, then for each distribution `name==version sha256:<hex>`, the
name normalised as in PEP 503, the hex that of its RECORD as told in remote/record_file.py; sorted
by (name, version, hex), every line ended by LF. The binding digest is the SHA-256 of that text.

Covered: every file with a hash in a RECORD. Not covered: compiled bytecode, which the installer or
the interpreter makes on the host, and the interpreter (its digest is a fact beside the binding).
Files that no RECORD lists are named in `unowned`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from records.digest import Digest
from records.errors import BindingError
from records.job import EngineOnHost, ModelOnHost
from records.schema import EngineBound, ModelBound
from remote.record_file import Row, parse_record, record_digest

_REINSTALL = "make reproduce  (it installs the engine again from its lock)"
_BLOCK_BYTES = 1 << 20
_SHOWN = 3
_LIST_SITE = (
    "import json, sys; print(json.dumps([p for p in sys.path"
    " if p.rstrip('/').endswith(('/site-packages', '/dist-packages'))]))"
)


@dataclass(frozen=True, order=True, slots=True)
class Distribution:
    """An installed distribution; `name` is normalised."""

    name: str
    version: str
    record_digest: Digest


@dataclass(frozen=True, order=True, slots=True)
class Altered:
    """A file that is not what its RECORD says; `path` from its site directory."""

    path: str
    got: Digest


@dataclass(frozen=True, slots=True)
class Binding:
    """`unowned`: files below the site directories that no RECORD lists, bytecode caches aside."""

    digest: Digest
    distributions: tuple[Distribution, ...]
    verified_files: int
    verified_bytes: int
    unowned: tuple[str, ...]
    altered: tuple[Altered, ...] = ()


def site_directories(engine_python: Path) -> tuple[Path, ...]:
    """The site directories of an interpreter that is not this one.

    Isolated (-I), so PYTHONPATH does not count: where the engine is found through it, name those
    directories instead. BindingError where the interpreter does not run.
    """
    try:
        done = subprocess.run(
            [str(engine_python), "-I", "-c", _LIST_SITE], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise BindingError(f"{engine_python} does not run: {error}", _REINSTALL) from error
    return tuple(Path(path) for path in json.loads(done.stdout) if Path(path).is_dir())


def binding_text(distributions: Sequence[Distribution], altered: Sequence[Altered] = ()) -> bytes:
    """The text whose digest is the binding digest."""
    lines = [f"{d.name}=={d.version} {d.record_digest}\n" for d in sorted(distributions)]
    lines += [f"altered {a.path} {a.got}\n" for a in sorted(altered)]
    return "".join(["kit-binding 1\n", *lines]).encode()


def binding_of(
    site_dirs: Sequence[Path], verify_files: bool = True, allow_altered: bool = False
) -> Binding:
    """Bind what is installed in these directories.

    BindingError names a distribution without RECORD, and every file (the first few) whose bytes
    are not what its RECORD says. `verify_files=False` trusts the RECORDs, for a quick look only.
    `allow_altered`: for an engine that somebody else installed; a file that differs is then not
    refused but bound by the digest it has (hosts patch certificates, two wheels write one file).
    """
    distributions: list[Distribution] = []
    files: list[tuple[str, Row]] = []
    owned: set[str] = set()
    for site in site_dirs:
        for info in _metadata_directories(site):
            rows = _rows(info)
            distributions.append(_distribution(info, rows))
            paths = [(_place(site, row), row) for row in rows]
            owned.update(path for path, _ in paths)
            # Some wheels bring bytecode with a hash; compiling at install rightly replaces it.
            files.extend((path, row) for path, row in paths if row.hash and path[-4:] != ".pyc")
    altered: list[Altered] = []
    size = _verify(files, altered if allow_altered else None) if verify_files else 0
    return Binding(
        Digest.of(binding_text(distributions, altered)),
        tuple(sorted(distributions)),
        len(files) if verify_files else 0,
        size,
        tuple(sorted(path for site in site_dirs for path in _unowned(site, owned))),
        tuple(sorted(altered)),
    )


def _place(site: Path, row: Row) -> str:
    """Where a row's file is. With `--target`, pip moves scripts into the site directory's own bin/
    and leaves their rows as they were, pointing above it.
    """
    path = os.path.normpath(os.path.join(site, row.path))  # noqa: PTH118 - 70,000 rows: strings
    parent, name = os.path.split(row.path)
    moved = os.path.join(site, "bin", name)  # noqa: PTH118
    if parent.startswith("..") and os.path.basename(parent) == "bin" and not os.path.exists(path):  # noqa: PTH110, PTH119
        return moved
    return path


def bind_engine(engine: EngineOnHost, phase: str) -> EngineBound:
    """The record of what the engine is at `phase`: verified, with every distribution named."""
    binding = binding_of(
        [Path(directory) for directory in engine.site_directories],
        allow_altered=engine.runtime == "installed",
    )
    facts: dict[str, Any] = {
        "distributions": [
            {"name": d.name, "version": d.version, "record": str(d.record_digest)}
            for d in binding.distributions
        ],
        "interpreter": _interpreter_digest(engine.launcher),
        "altered": {a.path: str(a.got) for a in binding.altered},
        "unowned": list(binding.unowned),
        "verified_bytes": binding.verified_bytes,
        "verified_files": binding.verified_files,
    }
    return EngineBound(
        phase, engine.runtime, binding.digest, engine.lock, engine.lock_digest, facts
    )


def bind_models(models: Mapping[str, ModelOnHost], phase: str) -> Iterator[ModelBound]:
    """The records of the models' files; BindingError where one is not what the job says."""
    for model_id, model in sorted(models.items()):
        found = {}
        for name, want in sorted(model.files.items()):
            path = Path(model.path) / name
            try:
                with path.open("rb") as file:
                    found[name] = Digest.of_file(file)
            except OSError as error:
                raise BindingError(f"model {model_id}: {error}", _REINSTALL) from error
            if found[name] != want:
                raise BindingError(
                    f"model {model_id}: {path}: got {found[name]}, want {want}", _REINSTALL
                )
        yield ModelBound(phase, model_id, found)


def _metadata_directories(site: Path) -> list[Path]:
    """The .dist-info directories; a distribution of the older kind (.egg-info) has no RECORD."""
    try:
        entries = sorted(site.iterdir())
    except OSError as error:
        raise BindingError(f"site directory: {error}", _REINSTALL) from error
    for entry in entries:
        if entry.name.endswith((".egg-info", ".egg", ".egg-link")):
            raise BindingError(
                f"{entry.name} in {site} has no RECORD, so nothing says what belongs to it",
                _REINSTALL,
            )
    return [entry for entry in entries if entry.name.endswith(".dist-info") and entry.is_dir()]


def _rows(info: Path) -> tuple[Row, ...]:
    try:
        text = (info / "RECORD").read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise BindingError(f"{info.name} has no readable RECORD: {error}", _REINSTALL) from error
    return parse_record(text, info.name)


def _distribution(info: Path, rows: tuple[Row, ...]) -> Distribution:
    try:
        header = (info / "METADATA").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError as error:
        raise BindingError(f"{info.name} has no METADATA", _REINSTALL) from error
    header = header.partition("\n\n")[0]
    fields = dict(re.findall(r"^(Name|Version):[ \t]*(\S+)", header, re.MULTILINE))
    if len(fields) != 2:
        raise BindingError(f"METADATA of {info.name} lacks Name or Version", _REINSTALL)
    name = re.sub(r"[-_.]+", "-", fields["Name"]).lower()
    return Distribution(name, fields["Version"], record_digest(rows))


def _verify(files: list[tuple[str, Row]], altered: list[Altered] | None) -> int:
    """Hash every file; the bytes read.

    Large ones in threads, since hashlib lets go of the interpreter lock over a large block. Small
    ones, of which there are tens of thousands, here: threads would only queue for the lock.
    A file that differs goes into `altered`, if that is given, and is an error otherwise.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        begun = {
            number: pool.submit(_check, file)
            for number, file in enumerate(files)
            if _is_large(file[0])
        }
        results = [
            begun[number].result() if number in begun else _check(file)
            for number, file in enumerate(files)
        ]
    if altered is not None:
        for (path, row), (problem, _) in zip(files, results, strict=True):
            if problem and Path(path).is_file():
                altered.append(Altered(row.path, _digest_of(Path(path))))
        paths = {a.path for a in altered}
        results = [
            ("" if row.path in paths else problem, size)
            for (_, row), (problem, size) in zip(files, results, strict=True)
        ]
    wrong = [problem for problem, _ in results if problem]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise BindingError("; ".join(wrong[:_SHOWN]) + more, _REINSTALL)
    return sum(size for _, size in results)


def _is_large(path: str) -> bool:
    try:
        return os.stat(path).st_size >= _BLOCK_BYTES  # noqa: PTH116
    except OSError:
        return False  # whoever reads it says why


def _check(item: tuple[str, Row]) -> tuple[str, int]:
    path, row = item
    state = hashlib.new(row.algorithm)
    size = 0
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            while block := file.read(_BLOCK_BYTES):
                state.update(block)
                size += len(block)
    except OSError as error:
        return f"{path}: {error.strerror}, though its RECORD lists it", size
    if state.digest() != row.hash:
        got, want = state.hexdigest(), row.hash.hex()
        return f"{path}: got {row.algorithm}:{got}, its RECORD says {row.algorithm}:{want}", size
    return "", size


def _unowned(site: Path, owned: set[str]) -> Iterator[str]:
    top = os.path.normpath(site)
    for directory, folders, files in os.walk(top):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
        for name in files:
            path = os.path.join(directory, name)  # noqa: PTH118
            if path not in owned:
                yield os.path.relpath(path, top)


def _interpreter_digest(launcher: tuple[str, ...]) -> str | None:
    """The digest of the program that the launcher starts, links followed; None if none is found."""
    program = shutil.which(launcher[0]) if launcher else None
    if program is None:
        return None
    return str(_digest_of(Path(program).resolve()))


def _digest_of(path: Path) -> Digest:
    with path.open("rb") as file:
        return Digest.of_file(file)
