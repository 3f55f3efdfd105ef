"""How a harness inside a container learns what it runs in: it asks, somebody outside answers.

Invariant: an answer belongs to one question, by a number that only the asker chose; both are whole
files or none. What is in the container cannot answer for itself.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from records import canonical
from records.digest import Digest
from records.errors import BindingError
from records.job import EngineOnHost
from records.schema import EngineBound

_ASK, _ANSWER, _REASON = "ask-", "answer-", "reason"
_POLL_S = 0.1
_REMIND_S = 60.0


def ask(engine: EngineOnHost, phase: str, say: Callable[[str], None]) -> EngineBound:
    """The binding as it is seen from outside, now. BindingError: it is not what the lock says.

    Waits as long as it takes: a run without a binding does not measure, and one that has measured
    is not sealed without.
    """
    directory = Path(engine.attestation)
    number = secrets.token_hex(8)
    answer = directory / f"{_ANSWER}{number}"
    _write(directory / f"{_ASK}{number}", {"phase": phase})
    began = time.monotonic()
    while not answer.exists():
        time.sleep(_POLL_S)
        if time.monotonic() - began > _REMIND_S:
            say(f"waiting to be told from outside what this container is ({phase})")
            began = time.monotonic()
    told = json.loads(answer.read_bytes())
    answer.unlink()
    if "problem" in told:
        raise BindingError(told["problem"], "kit images verify HOST")
    return EngineBound(
        phase,
        engine.runtime,
        Digest.parse(told["digest"]),
        engine.lock,
        engine.lock_digest,
        told["facts"],
    )


def answer_all(directory: Path, attest: Callable[[], dict[str, Any]]) -> Iterator[str]:
    """Answer every question that waits, by what `attest` finds now; their phases."""
    for question in sorted(directory.glob(f"{_ASK}*")):
        phase = str(json.loads(question.read_bytes())["phase"])
        _write(directory / f"{_ANSWER}{question.name.removeprefix(_ASK)}", attest())
        question.unlink()
        yield phase


def tell_reason(directory: Path, reason: str) -> None:
    """Say beforehand why the harness is about to be stopped."""
    _write(directory / _REASON, {"reason": reason})


def reason_from_outside(engine: EngineOnHost) -> str:
    """Why somebody outside the container stops the harness; "" where nobody said."""
    path = Path(engine.attestation) / _REASON
    if not engine.attestation or not path.is_file():
        return ""
    return str(json.loads(path.read_bytes())["reason"])


def clear(directory: Path) -> None:
    """Forget what was said to or by a harness that is gone."""
    for path in directory.iterdir():
        if path.name.startswith((_ASK, _ANSWER, _REASON)):
            path.unlink()


def _write(path: Path, value: dict[str, Any]) -> None:
    fresh = path.with_name(f".{path.name}")
    fresh.write_bytes(canonical.encode(value))
    fresh.chmod(0o644)
    os.replace(fresh, path)  # noqa: PTH105 - the two names stand beside each other
