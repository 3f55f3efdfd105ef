"""Ask what this host's processors are worth, before anything else runs on them.

Invariant: a fresh interpreter does the timing (remote/host/bursts.py), and is gone when it is told.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Sequence

from records.decode import from_object
from records.errors import HostUnfitError
from records.processors import Processors
from remote.host import bursts
from remote.host.answer import answer_of

_LIMIT_S = 60.0


def time_processors(engine: Sequence[int] = (), client: Sequence[int] = ()) -> Processors:
    """Time the engine's and the client's processors; empty: all that this process may use.

    About three seconds at most, on a host that does nothing else. HostUnfitError where one of them
    cannot be had, or where they are not timed in a minute.
    """
    argv = [sys.executable, "-I", "-S", "-", *(_listed(cpus) for cpus in (engine, client))]
    printed = answer_of(
        f"the timing of processors (engine {list(engine)}, client {list(client)})",
        argv,
        _LIMIT_S,
        given=inspect.getsource(bursts),
        silent="kit doctor",
        failed="nproc --all",
    )
    return from_object(Processors, json.loads(printed), "processors")


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
