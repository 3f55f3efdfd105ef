"""Run uv (or another installer) as a process whose lines can be shown while it works.

Invariant: an argument list, never a shell line; what it printed last is in the error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from ssl import get_default_verify_paths

from records.errors import ProvisionError

Progress = Callable[[str], None]

_LAST_LINES = 12


def uv_binary() -> Path:
    """The uv that came with this package's own dependencies; on another host, the one on PATH.

    ProvisionError where there is neither.
    """
    try:
        import uv
    except ImportError:
        found = shutil.which("uv")
        if found is None:
            raise ProvisionError("there is no uv here", remedy="pip install uv") from None
        return Path(found)
    return Path(uv.find_uv_bin())


def discard(_line: str) -> None:
    """A progress that shows nothing."""


def run_shown(
    argv: Sequence[str],
    progress: Progress,
    what: str,
    remedy: str,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Run to the end, each line going to `progress`; ProvisionError unless the exit status is 0."""
    environment = dict(os.environ if environ is None else environ)
    # A virtual environment that happens to be active is not where the engine goes.
    environment.pop("VIRTUAL_ENV", None)
    if _has_system_certificates():
        # uv trusts its own list of authorities alone unless told so, and then fails behind a proxy
        # that the system trusts. The second name is that of uv before 0.11.
        environment.setdefault("UV_SYSTEM_CERTS", "1")
        environment.setdefault("UV_NATIVE_TLS", "1")
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None  # noqa: S101 - stdout=PIPE, for the type checker
        for line in process.stdout:
            if line.strip():
                last.append(line.rstrip())
                progress(f"{what}: {line.strip()}")
    if process.returncode != 0:
        tail = "\n  ".join(last)
        raise ProvisionError(
            f"{what} failed with exit status {process.returncode}; its last lines:\n  {tail}",
            remedy,
        )


def _has_system_certificates() -> bool:
    paths = get_default_verify_paths()
    return bool(paths.cafile) or (paths.capath is not None and any(Path(paths.capath).iterdir()))
