"""What a program of the host answers, within a limit of time.

Invariant: an answer is what a program printed that ended with status 0 in time; everything else is
HostUnfitError, with the program's own last words.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from records.errors import HostUnfitError

_WORDS = 300


def answer_of(
    name: str, argv: Sequence[str], limit_s: float, *, given: str = "", silent: str, failed: str
) -> str:
    """The standard output of a program that reads `given`.

    `name`: what the error calls it. `silent`, `failed`: what to do where it does not answer in
    time, and where it ends with an error or is not there.
    """
    try:
        done = subprocess.run(
            argv, input=given, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise HostUnfitError(f"{name} did not answer within {limit_s:.0f} s", silent) from error
    except OSError as error:
        raise HostUnfitError(f"{name} failed: {error}", failed) from error
    if done.returncode != 0:
        said = " ".join((done.stdout + done.stderr).split())[-_WORDS:]
        how = said or f"without a word, with status {done.returncode}"
        raise HostUnfitError(f"{name} failed: {how}", failed)
    return done.stdout
