"""Wheels by hash, downloaded once and kept in the working directory.

Invariant: a wheel handed out was hashed after it was written; its file name is its own, since the
name is part of what an installer reads.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from packaging.utils import parse_wheel_filename

from kit.bundle.wheel_lock import LockedWheel
from kit.engine.uv_process import Progress, run_shown
from records.bundle import Target
from records.digest import Digest
from records.errors import ProvisionError

_RETRY = "the same command again; it goes on from what was already downloaded"
# The glibc versions that wheels on PyPI are tagged with, and the names from before PEP 600.
_GLIBC_MINORS = (5, 12, 17, 18, 24, 26, 27, 28, 31, 34, 35, 38, 39, 40, 41)
_OLDER_NAMES = {"manylinux1": 5, "manylinux2010": 12, "manylinux2014": 17}


def wheels(
    locked: Sequence[LockedWheel], target: Target, store: Path, progress: Progress
) -> dict[LockedWheel, Path]:
    """The file of each wheel. ProvisionError: it cannot be had, or has another hash."""
    missing = [wheel for wheel in locked if _kept(store, wheel) is None]
    if missing:
        progress(f"downloading {len(missing)} of {len(locked)} wheels")
        _download(missing, target, store, progress)
    found = {}
    for wheel in locked:
        path = _kept(store, wheel)
        if path is None:
            raise ProvisionError(f"{wheel.name}=={wheel.version} was not downloaded", _RETRY)
        found[wheel] = path
    return found


def platforms(target: Target) -> list[str]:
    """The platform tags that a host of this kind accepts (PEP 600), newest first."""
    major, minor = (int(part) for part in target.glibc.split("."))
    fits = [m for m in _GLIBC_MINORS if (2, m) <= (major, minor)]
    tags = [f"manylinux_2_{m}_{target.machine}" for m in reversed(fits)]
    return tags + [f"{name}_{target.machine}" for name in reversed(_OLDER_NAMES)]


def needed_glibc(wheels: Iterable[Path]) -> str:
    """The least glibc on which every one of these wheels may be installed, by their names."""
    minors = [0]
    for path in wheels:
        tags = parse_wheel_filename(path.name)[3]
        minors.append(min((_glibc_minor(tag.platform) for tag in tags), default=0))
    return f"2.{max(minors)}"


def _glibc_minor(platform: str) -> int:
    """What a platform tag asks of glibc 2 (PEP 600, PEP 599, PEP 571, PEP 513)."""
    match = re.match(r"manylinux_2_(\d+)_", platform)
    return int(match[1]) if match else _OLDER_NAMES.get(platform.partition("_")[0], 0)


def pip_for(target: Target) -> list[str]:
    """Options of pip that choose wheels for another host."""
    flags = [flag for tag in platforms(target) for flag in ("--platform", tag)]
    return ["--only-binary", ":all:", "--implementation", "cp", "--python-version", target.python,
            *flags]  # fmt: skip


def require_pip() -> list[str]:
    """The command line that starts pip. ProvisionError where this environment has none."""
    if importlib.util.find_spec("pip") is None:
        raise ProvisionError("pip is not in this environment", f"{sys.executable} -m ensurepip")
    return [sys.executable, "-m", "pip"]


def _download(
    missing: Sequence[LockedWheel], target: Target, store: Path, progress: Progress
) -> None:
    store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=store, prefix=".download.") as scratch:
        into = Path(scratch)
        wanted = into / "wanted.txt"
        wanted.write_text("".join(w.requirement() for w in missing), encoding="utf-8")
        options = ["--no-deps", "--require-hashes", "--progress-bar", "off", "--dest", str(into)]
        argv = [*require_pip(), "download", *options, *pip_for(target), "-r", str(wanted)]
        run_shown(argv, progress, "pip download", _RETRY)
        by_digest = {wheel.digest: wheel for wheel in missing}
        for path in sorted(into.glob("*.whl")):
            wheel = by_digest.get(_digest(path))
            if wheel is None:
                raise ProvisionError(f"{path.name} is not a wheel of the lock", _RETRY)
            place = _place(store, wheel)
            place.mkdir(exist_ok=True)
            path.replace(place / path.name)


def _kept(store: Path, wheel: LockedWheel) -> Path | None:
    """The wheel in the store. One that changed since is hashed again where it is packed."""
    return next(iter(sorted(_place(store, wheel).glob("*.whl"))), None)


def _place(store: Path, wheel: LockedWheel) -> Path:
    return store / wheel.digest.hex[:32]


def _digest(path: Path) -> Digest:
    with path.open("rb") as file:
        return Digest.of_file(file)
