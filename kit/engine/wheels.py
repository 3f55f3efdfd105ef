"""Install the engine from its hash lock into an environment of its own.

Invariant: an environment that carries the completion marker was installed to the end from the lock
whose digest the marker holds. A virtual environment cannot be renamed (its scripts hold its path),
so the marker, written last, stands in for the rename.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from kit.engine.uv_process import Progress, discard, run_shown, uv_binary
from kit.heartbeat import heartbeat
from records.digest import Digest
from records.errors import ProvisionError

ENGINE_PYTHON = "3.11"
MARKER = "engine-environment.json"
RETRY = (
    "make reproduce  (it goes on from what was already downloaded); where PyTorch's index cannot "
    "be reached: PIP_FIND_LINKS=DIRECTORY_WITH_THE_TORCH_WHEEL make reproduce"
)

_TORCH = re.compile(r"^torch==\S+\+cpu(?: \\\n)?(?:\s+--hash=sha256:[0-9a-f]{64}(?: \\\n)?)+", re.M)


@dataclass(frozen=True, slots=True)
class EngineEnvironment:
    """An installed engine. `reused`: it was there already, from the same lock."""

    python: Path
    lock_digest: Digest
    reused: bool


def install_engine(lock: Path, target: Path, progress: Progress) -> EngineEnvironment:
    """The engine in `target`, installed from `lock` unless a finished one from it is there.

    An unfinished or differing environment is removed and made again. ProvisionError: no network, no
    fitting wheel, a hash that differs, or a `target` that is no environment of ours.
    """
    text = lock.read_text(encoding="utf-8")
    digest = Digest.of(text.encode("utf-8"))
    python = target / "bin" / "python"
    if installed_from(target) == digest and python.exists():
        return EngineEnvironment(python, digest, reused=True)
    _clear(target, progress)
    uv = str(uv_binary())
    progress(f"making an environment for the engine with Python {ENGINE_PYTHON}")
    run_shown([uv, "venv", "--python", _base_python(), str(target)], progress, "uv venv", RETRY)
    _install(uv, text, lock, target, progress)
    content = json.dumps({"format": 1, "lock_digest": str(digest)})
    partial = target / f"{MARKER}.partial"
    partial.write_text(content + "\n", encoding="utf-8")
    partial.replace(target / MARKER)
    return EngineEnvironment(python, digest, reused=False)


def installed_from(target: Path) -> Digest | None:
    """The digest of the lock that `target` was completely installed from; None if it was not."""
    try:
        marker = json.loads((target / MARKER).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    if not isinstance(marker, dict) or marker.get("format") != 1:
        return None
    return Digest.parse(str(marker.get("lock_digest")))


def site_packages(target: Path) -> Path:
    """Where the engine's distributions are. ProvisionError unless there is one such place."""
    site = sorted((target / "lib").glob("python3.*/site-packages"))
    if len(site) != 1:
        raise ProvisionError(
            f"{target} has {len(site)} site-packages, want one",
            remedy=f"rm -r {target}; then: make reproduce",
        )
    return site[0]


def torch_requirement(lock_text: str) -> str | None:
    """The lock's lines on torch's CPU build, which PyPI does not hold; None if it names none."""
    match = _TORCH.search(lock_text)
    return match[0] + "\n" if match else None


def without_packages(progress: Progress) -> Progress:
    """The progress without uv's list of every distribution (`+ name==version`)."""

    def show(line: str) -> None:
        if not line.partition(": ")[2].startswith(("+ ", "- ", "~ ")):
            progress(line)

    return show


def _install(uv: str, text: str, lock: Path, target: Path, progress: Progress) -> None:
    torch_index = ["--torch-backend", "cpu"]  # uv's name for PyTorch's own CPU index
    torch = torch_requirement(text)
    wheels = target / "downloaded"
    if torch is not None and _download_as_configured(torch, wheels, progress):
        torch_index = ["--find-links", str(wheels)]
    progress("installing the engine's distributions (about 3 GB unpacked)")
    python = str(target / "bin" / "python")
    # Bytecode is compiled here once: otherwise the first boot differs from the later ones.
    options = ["--require-hashes", "--only-binary", ":all:", "--compile-bytecode", *torch_index]
    # Copies: a file changed here must not change uv's cache, which a new install is made from.
    options += ["--link-mode", "copy"]
    argv = [uv, "pip", "sync", "--python", python, *options, str(lock)]
    with heartbeat(progress, "installing and compiling bytecode", first_s=20.0):
        run_shown(argv, without_packages(progress), "uv pip sync", RETRY)
    shutil.rmtree(wheels, ignore_errors=True)


def _download_as_configured(requirement: str, wheels: Path, progress: Progress) -> bool:
    """Let pip fetch the wheel where this host's own settings point (a mirror, a wheel directory).

    uv does not read pip's settings, so a host that has only such a place would look for PyTorch's
    index in vain. Where pip knows of none this costs a second.
    """
    if importlib.util.find_spec("pip") is None:
        return False
    wheels.mkdir()
    requirements = wheels / "requirements.txt"
    requirements.write_text(requirement, encoding="utf-8")
    options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--progress-bar", "off"]
    wanted = ["--python-version", ENGINE_PYTHON, "--implementation", "cp", "--abi", "cp311"]
    wanted += ["--platform", "manylinux_2_28_x86_64"]
    argv = [sys.executable, "-m", "pip", "download", *options, *wanted]
    try:
        run_shown(
            [*argv, "--dest", str(wheels), "-r", str(requirements)],
            discard,
            "pip download",
            RETRY,
        )
    except ProvisionError:
        progress("torch's CPU build comes from PyTorch's index")
        return False
    progress("torch's CPU build comes from where pip's settings point")
    return True


def _base_python() -> str:
    """This interpreter where it is of the locked version, otherwise the version for uv to find."""
    major, minor = sys.version_info[:2]
    return sys.executable if f"{major}.{minor}" == ENGINE_PYTHON else ENGINE_PYTHON


def _clear(target: Path, progress: Progress) -> None:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        return
    if not target.is_dir() or (any(target.iterdir()) and not (target / "pyvenv.cfg").exists()):
        raise ProvisionError(
            f"{target} is in the way: it is no environment made by this tool",
            remedy=f"move {target} away, then: make reproduce",
        )
    progress("removing an engine environment that is unfinished or of another lock")
    shutil.rmtree(target)
