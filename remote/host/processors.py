"""Ask what this host's processors are worth, before anything else runs on them.

Invariant: a fresh interpreter does the timing (remote/host/bursts.py), and is gone when it is told.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Sequence

from records.decode import from_object
from records.errors import HostUnfitError
from records.processors import Processors
from remote.host import bursts

_TIMEOUT_S = 60.0


def time_processors(engine: Sequence[int] = (), client: Sequence[int] = ()) -> Processors:
    """Time the engine's and the client's processors; empty: all that this process may use.

    About three seconds at most, on a host that does nothing else. HostUnfitError where one of them
    cannot be had, or where they are not timed in a minute.
    """
    argv = [sys.executable, "-I", "-S", "-", *(_listed(cpus) for cpus in (engine, client))]
    try:
        done = subprocess.run(
            argv,
            input=inspect.getsource(bursts),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HostUnfitError(
            f"the processors were not timed in {_TIMEOUT_S:.0f} s", remedy="kit doctor"
        ) from error
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-300:]
        raise HostUnfitError(f"engine {list(engine)}, client {list(client)}: {said}", "nproc --all")
    return from_object(Processors, json.loads(done.stdout), "processors")


def time_where_allowed(
    engine: Sequence[int], client: Sequence[int], say: Callable[[str], None]
) -> Processors | None:
    """As `time_processors`; None where none was chosen and the host does not let them be timed.

    HostUnfitError where one that was chosen cannot be had: no boot could run on it either.
    """
    try:
        return time_processors(engine, client)
    except HostUnfitError as error:
        if engine or client:
            raise
        say(f"the processors were not timed: {error.message}")
        return None


def _listed(cpus: Sequence[int]) -> str:
    return ",".join(map(str, cpus)) or "any"
