"""The prompt files of a plan, kept by digest from the reading of the plan to the host that runs it.

Invariant: what a harness sends is, byte for byte, what stood in the file when the plan was read; a
file that changes in between belongs to another plan.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from kit.home import Home
from kit.hosts import Host
from records.decode import DecodeError
from records.digest import Digest
from records.errors import PlanError
from records.job import Job
from records.load import Prompts
from records.plan import Plan


def with_prompt_digests(document: dict[str, Any], base: Path) -> dict[str, Any]:
    """The document of a plan with the digest of each prompt file beside its path.

    DecodeError where the file cannot be read, or is not the one whose digest stands there already.
    """
    windows = document.get("windows")
    if not isinstance(windows, list):
        return document
    bound = [_bound(window, f"$.windows[{i}].prompts", base) for i, window in enumerate(windows)]
    return {**document, "windows": bound}


def keep(home: Home, plan: Plan, base: Path) -> None:
    """Copy the plan's prompt files to where `carry` finds them. PlanError if one changed by now."""
    for prompts in _from_files(plan):
        target = home.prompts / _digest(prompts).hex
        if target.exists():
            continue
        home.prompts.mkdir(parents=True, exist_ok=True)
        source, fresh = base / prompts.path, target.with_suffix(".new")
        shutil.copyfile(source, fresh)
        with fresh.open("rb") as file:
            if Digest.of_file(file) != prompts.digest:
                raise PlanError(f"{source} changed while it was read", "run the command again")
        fresh.replace(target)


def carry(home: Home, host: Host, job: Job) -> None:
    """Bring the job's prompt files to its host."""
    for source, name in files(home, job.plan):
        host.put(source, Path(job.prompts_directory) / name)


def files(home: Home, plan: Plan) -> Iterator[tuple[Path, str]]:
    """Where each prompt file is kept, and the name that the harness knows it by."""
    for name in dict.fromkeys(_digest(prompts).hex for prompts in _from_files(plan)):
        yield home.prompts / name, name


def _from_files(plan: Plan) -> Iterator[Prompts]:
    return (w.prompts for w in plan.windows if w.prompts.digest is not None)


def _digest(prompts: Prompts) -> Digest:
    assert prompts.digest is not None  # noqa: S101 - `_from_files` has chosen
    return prompts.digest


def _bound(window: Any, where: str, base: Path) -> Any:
    if not isinstance(window, dict) or not isinstance(window.get("prompts"), dict):
        return window
    prompts = window["prompts"]
    path = prompts.get("path")
    if not isinstance(path, str) or not path:
        return window
    if PurePosixPath(path).is_absolute():  # records would carry this machine's directories
        raise DecodeError(where, "write path relative to the plan's file", "path")
    try:
        with (base / path).open("rb") as file:
            digest = str(Digest.of_file(file))
    except OSError as error:
        raise DecodeError(where, f"path cannot be read: {error}", "path") from error
    if prompts.get("digest", digest) != digest:
        raise DecodeError(where, f"digest: {path} is {digest}", "digest", "correct the digest")
    return {**window, "prompts": {**prompts, "digest": digest}}
