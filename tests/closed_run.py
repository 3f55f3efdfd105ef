"""Runs of tests that were cut short, as a host that went away leaves them, and then closed.

Invariant: as tests/sealed_run.py: only for directories made by a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kit.home import Home
from kit.run.close import Closed, Reason, close_run
from records import canonical
from records.errors import KitError
from records.plan import Plan
from records.run_directory import RunDirectory
from tests import sealed_run
from tests.files_below import files_below

REASON = Reason("the lease was over", "0.1.0", 2_000_000_000_000_000_000)


def gone_host(event: Any) -> Any:
    """An edit of sealed_run.Shape: the run's host had a boot that no other run was made on.

    It was years ago, so that the run can be closed by the clock of today.
    """
    clock = getattr(event, "clock", None)
    if clock is None:
        return event
    ago_ns = clock.realtime_ns - 300_000_000_000_000_000
    return replace(event, clock=replace(clock, host_boot="gone", realtime_ns=ago_ns))


def cut_short(
    directory: Path,
    whole_boots: int = 2,
    plan: Plan | None = None,
    shape: sealed_run.Shape | None = None,
) -> RunDirectory:
    """A run that came home in the boot after `whole_boots` planned ones, healthy, unmeasured."""
    shape = replace(shape or sealed_run.Shape(edit=gone_host), seal=False)
    run = sealed_run.make_run(directory, plan or sealed_run.small_plan(), shape)
    kept, begun = [], 0
    for line in run.events.read_bytes().splitlines(keepends=True):
        event = canonical.decode(line[:-1])
        begun += event["type"] == "boot.started" and bool(event["value"]["planned"])
        if begun > whole_boots and event["type"] == "boot.warmed":
            break
        kept.append(line)
    run.events.write_bytes(b"".join(kept))
    text = b"".join(kept)
    for path in [*directory.glob("logs/*"), *directory.glob("metrics/*")]:
        if path.relative_to(directory).as_posix().encode() not in text:
            path.unlink()
    return run


def home_of(root: Path) -> Home:
    """The project at `root`, its records in records/data."""
    return Home(root, root / ".kit", root / "records" / "data", root / "build")


def closed(run: RunDirectory) -> Closed:
    """The run closed, as `kit close` does it, in the project that it stands in."""
    return close_run(home_of(run.path.parents[2]), run, REASON)


def home_of_verbs(root: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The same, and what verbs find by the environment."""
    home = home_of(root)
    for name, path in (("HOME", home.path), ("DATA", home.data), ("OUT", home.out)):
        monkeypatch.setenv(f"KIT_{name}", str(path))
    monkeypatch.setenv("KIT_HOST_LOCK", str(root.parent / "host.lock"))
    return home


@contextmanager
def refused(run: RunDirectory, kind: type[KitError], *words: str) -> Iterator[None]:
    """Nothing is written, the reason holds these words, and a next command is named."""
    before = files_below(run.path.parent)
    with pytest.raises(kind) as caught:
        yield
    assert files_below(run.path.parent) == before
    assert all(word in caught.value.message for word in words), caught.value.message
    assert caught.value.remedy
