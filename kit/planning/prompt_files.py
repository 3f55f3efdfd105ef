"""The prompt files of a plan, kept by digest from the reading of the plan to the host that runs it.

Invariant: what a harness sends is, byte for byte, what stood in the file when the plan was read; a
file that changes in between belongs to another plan.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from kit.home import Home
from kit.hosts.names import Host
from kit.regular_file import open_regular
from records.decode import DecodeError
from records.digest import Digest
from records.errors import PlanError
from records.job import Job
from records.limits import FieldError, plain_text
from records.load import PROMPT_FILES, Prompts
from records.plan import Plan
from records.prompt_file import Prompt, read_prompts

# ShareGPT, the largest in common use, has 0.7 GB; a file is held in memory whole.
MAX_PROMPT_FILE_BYTES = 1 << 30


def with_prompt_digests(document: dict[str, Any], base: Path) -> dict[str, Any]:
    """The document of a plan with the digest of each prompt file beside its path.

    DecodeError where the file cannot be read, or is not the one whose digest stands there already,
    or has too few prompts; PlanError names the file and the line in it that is no prompt.
    """
    windows = document.get("windows")
    if not isinstance(windows, list):
        return document
    read: dict[tuple[str, str], _PromptFile] = {}  # windows mostly share one file
    bound = [
        _bound(window, f"$.windows[{i}].prompts", base, read) for i, window in enumerate(windows)
    ]
    return {**document, "windows": bound}


def keep(home: Home, plan: Plan, base: Path) -> None:
    """Copy the plan's prompt files to where `carry` finds them. PlanError if one changed by now."""
    for prompts in _from_files(plan):
        target = home.prompts / _digest(prompts).hex
        if target.exists():
            continue
        home.prompts.mkdir(parents=True, exist_ok=True)
        source, fresh = base / prompts.path, target.with_suffix(".new")
        try:
            file = open_regular(source)
        except OSError as error:
            raise PlanError(f"{source} cannot be read: {error}", f"ls -l {source}") from error
        with file, fresh.open("wb") as copy:
            shutil.copyfileobj(file, copy)
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


class _PromptFile(NamedTuple):
    digest: str
    prompts: list[Prompt]


def _bound(window: Any, where: str, base: Path, read: dict[tuple[str, str], _PromptFile]) -> Any:
    if not isinstance(window, dict) or not isinstance(window.get("prompts"), dict):
        return window
    prompts = window["prompts"]
    path, source = prompts.get("path"), prompts.get("source")
    if not isinstance(path, str) or not path or source not in PROMPT_FILES:
        return window  # for the decoder to judge
    _check_path(where, path)
    if (path, source) not in read:
        read[path, source] = _read(where, base / path, source)
    file = read[path, source]
    if prompts.get("digest", file.digest) != file.digest:
        raise DecodeError(where, f"digest: {path} is {file.digest}", "digest", "correct the digest")
    _check_fit(where, window, path, file.prompts)
    return {**window, "prompts": {**prompts, "digest": file.digest}}


def _check_path(where: str, path: str) -> None:
    """Records carry the path: it must not tell of this machine, nor leave the plan's directory."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        raise DecodeError(where, "write path relative to the plan's file, without ..", "path")
    try:
        plain_text("path", path)
    except FieldError as error:
        raise DecodeError(where, error.message, "path") from error


def _read(where: str, path: Path, source: str) -> _PromptFile:
    try:
        with open_regular(path) as file:
            data = file.read(MAX_PROMPT_FILE_BYTES + 1)
    except OSError as error:
        raise DecodeError(where, f"path cannot be read: {error}", "path") from error
    if len(data) > MAX_PROMPT_FILE_BYTES:
        raise DecodeError(where, f"{path} has more than {MAX_PROMPT_FILE_BYTES} bytes", "path")
    return _PromptFile(str(Digest.of(data)), read_prompts(source, data, str(path)))


def _check_fit(where: str, window: dict[str, Any], path: str, found: list[Prompt]) -> None:
    """What the harness would refuse only after the run has begun."""
    asked = window["prompts"]
    if not found:
        raise DecodeError(where, f"{path} holds no prompt", "path", "name a file that holds some")
    count = asked.get("count")
    if type(count) is int and count > len(found):
        raise DecodeError(
            where,
            f"{count} prompts asked for, {path} has {len(found)}",
            "count",
            f"set prompts.count to {len(found)} or less",
        )
    if any(isinstance(prompt, tuple) for prompt in found):
        if window.get("endpoint") == "chat":
            raise DecodeError(where, f"{path} has token ids, which chat does not take", "path")
        if asked.get("unique") is True:
            raise DecodeError(where, f"{path} has token ids, which cannot be unique", "unique")
