"""The wheels of a bundle installed into a directory for PYTHONPATH, without a network.

Invariant: the mark is written last and names bundle and interpreter; a directory without its mark
is removed and made again, so no half of an engine is ever used.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from records.bundle import INSTALLER, SITE, WHEELS, Manifest
from records.digest import Digest
from records.errors import ProvisionError

MARK = "installed.json"
_LAST_LINES = 12
# 2020-01-01. What an engine compiles at run time is built again where it is older than the headers
# it was made from, so those of a wheel must not count as new on each host (ninja compares times).
_WHEEL_TIME_NS = 1_577_836_800 * 10**9
_UV_MEMBER = ".data/scripts/uv"

Say = Callable[[str], None]


def install(root: Path, manifest: Manifest, python: str, say: Say) -> Path:
    """The site directory below `root`, made now unless it stands there from these wheels.

    ProvisionError: what the installer said where it failed.
    """
    site = root / SITE
    wheels = manifest.below(WHEELS)
    named = Digest.of("".join(f"{w.path} {w.digest}\n" for w in wheels).encode())
    mark = json.dumps({"format": 1, "python": python, "wheels": str(named)}, sort_keys=True)
    if site.is_dir() and _marked(root) == mark:
        say(f"{len(wheels)} wheels were installed already: {site}")
        return site
    (root / MARK).unlink(missing_ok=True)
    if site.exists():
        say(f"removing {site}: unfinished, or of other wheels")
        shutil.rmtree(site)
    paths = [str(root / one.path) for one in wheels]
    uv = _uv(root, manifest)
    say(f"installing {len(paths)} wheels with {'uv' if uv else 'pip'}: {site}")
    argv = _with_uv(uv, python, site) if uv else _with_pip(python, site)
    _run([*argv, *paths], f"{'uv' if uv else 'pip'} install")
    _set_times(site)
    _compile(python, site, say)
    partial = root / f"{MARK}.partial"
    partial.write_text(mark, encoding="utf-8")
    partial.replace(root / MARK)
    return site


def _with_uv(uv: Path, python: str, site: Path) -> list[str]:
    argv = [str(uv), "pip", "install", "--offline", "--no-index", "--no-deps", "--no-config"]
    # Copies, and no cache: the root may lie on another file system, and nothing is to be reused.
    return [*argv, "--no-cache", "--link-mode", "copy", "--python", python, "--target", str(site)]


def _with_pip(python: str, site: Path) -> list[str]:
    """Where no uv was carried. pip leaves out what a wheel keeps under data/lib; the binding of the
    engine, taken before anything is measured, then refuses it and names the file.
    """
    argv = [python, "-I", "-m", "pip", "install", "--isolated", "--no-index", "--no-deps"]
    return [*argv, "--no-compile", "--no-cache-dir", "--quiet", "--target", str(site)]


def _uv(root: Path, manifest: Manifest) -> Path | None:
    """uv out of its own wheel: a program that needs no Python. None where the bundle has none."""
    wheels = manifest.below(INSTALLER)
    if not wheels:
        return None
    target = root / INSTALLER / "uv"
    with zipfile.ZipFile(root / wheels[0].path) as archive:
        members = [name for name in archive.namelist() if name.endswith(_UV_MEMBER)]
        if len(members) != 1:
            raise ProvisionError(f"{wheels[0].path} holds no uv", "make the bundle again")
        with archive.open(members[0]) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file)
    target.chmod(0o755)
    return target


def _set_times(site: Path) -> None:
    """One fixed time for every file, so that an engine installed twice is twice the same."""
    for directory, _, names in os.walk(site):
        for name in names:
            path = f"{directory}/{name}"
            os.utime(path, ns=(_WHEEL_TIME_NS, _WHEEL_TIME_NS), follow_symlinks=False)


def _compile(python: str, site: Path, say: Say) -> None:
    """Compile once, here: else each boot compiles what it imports, and the first one differs."""
    jobs = str(len(os.sched_getaffinity(0)))
    say(f"compiling bytecode with {jobs} processes")
    argv = [python, "-I", "-m", "compileall", "-q", "-j", jobs, str(site)]
    done = subprocess.run(argv, env=_environment(), capture_output=True, check=False)
    if done.returncode:
        # Wheels carry templates and files for other Pythons that do not compile, and need not.
        say("some files do not compile, as is usual (templates, files for other Pythons)")


def _run(argv: Sequence[str], what: str) -> None:
    done = subprocess.run(argv, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n  ".join((done.stdout + done.stderr).splitlines()[-_LAST_LINES:])
        raise ProvisionError(
            f"{what} failed with exit status {done.returncode}; its last lines:\n  {tail}",
            "run the same command again; it begins the installation anew",
        )


def _environment() -> dict[str, str]:
    """This one, without what would write no bytecode or point an installer elsewhere."""
    away = ("PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
    return {
        key: value
        for key, value in os.environ.items()
        if key not in away and not key.startswith(("UV_", "PIP_"))
    }


def _marked(root: Path) -> str:
    try:
        return (root / MARK).read_text(encoding="utf-8")
    except OSError:
        return ""
