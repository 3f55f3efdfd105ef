"""The telling line of logs of engines that died at boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from remote.engine.death import UNKNOWN, cause_of_death, last_lines

CAPTURES = Path(__file__).parents[1] / "fixtures" / "vllm-0.29.0"
CORE = "(EngineCore pid=9) ERROR 11-30 09:00:00 [core.py:1] "
API = "(APIServer pid=8) "


CHILD_DIED = (
    f"{CORE}EngineCore failed to start.\n{CORE}Traceback (most recent call last):\n"
    f'{CORE}  File "/x.py", line 1, in f\n{CORE}ValueError: No valid attention backend\n'
    f"{API}Traceback (most recent call last):\n"
    f"{API}RuntimeError: Engine core initialization failed. See root cause above.\n"
)
BAD_ARGUMENT = (
    f"{API}pydantic_core._pydantic_core.ValidationError: 1 validation error for X\n"
    f"{API}  Value error, no such method [type=value_error]\n"
    f"{API}    For further information visit https://errors.pydantic.dev\n"
)
BAD_ARGUMENT_CAUSE = (
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for X\n"
    "Value error, no such method [type=value_error]"
)


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (CHILD_DIED, "ValueError: No valid attention backend"),
        (BAD_ARGUMENT, BAD_ARGUMENT_CAUSE),
        (
            "usage: api_server.py [-h]\napi_server.py: error: unrecognized arguments: --no-such\n",
            "api_server.py: error: unrecognized arguments: --no-such",
        ),
        (
            f"{CORE}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
        ),
        (
            f"{API}OSError: [Errno 98] Address already in use\n",
            "OSError: [Errno 98] Address already in use",
        ),
        ("/opt/python: No module named vllm\n", "/opt/python: No module named vllm"),
        ("Illegal instruction (core dumped)\n", "Illegal instruction (core dumped)"),
        (
            f"{API}RuntimeError: Engine core initialization failed. See root cause above.\n",
            "RuntimeError: Engine core initialization failed. See root cause above.",
        ),
        ("loading\n", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_cause(log: str, cause: str) -> None:
    assert cause_of_death(log) == cause
    assert cause_of_death(log.encode()) == cause


def test_warnings_that_speak_of_errors_are_no_cause() -> None:
    # The capture warns of `OSError: [Errno 24]` and ends in good order.
    log = (CAPTURES / "cuda/engine-eager.log").read_bytes()
    assert "OSError: [Errno 24]" in log.decode()
    assert "Errno 24" not in cause_of_death(log)


def test_causes_and_last_lines_are_redacted() -> None:
    log = "PermissionError: [Errno 13] Permission denied: '/home/alice/x'\n"
    assert cause_of_death(log) == "PermissionError: [Errno 13] Permission denied: '~/x'"
    assert last_lines(log) == ("PermissionError: [Errno 13] Permission denied: '~/x'",)


def test_last_lines_skip_blanks_and_progress() -> None:
    assert last_lines("a\n\n\rload 0%\rload 100%\nb\n", 2) == ("load 100%", "b")
