"""What the host's programs answer, and how they are told about where they do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from records.errors import HostUnfitError
from remote.host import gpu
from remote.host.answer import answer_of
from remote.host.processors import time_processors

PYTHON = (sys.executable, "-I", "-S", "-c")


def asked(program: str, given: str = "", limit_s: float = 30) -> str:
    argv = (*PYTHON, program)
    return answer_of("it", argv, limit_s, given=given, silent="restart", failed="look")


def refused(program: str, limit_s: float = 30) -> tuple[str, str]:
    with pytest.raises(HostUnfitError) as caught:
        asked(program, limit_s=limit_s)
    return caught.value.message, caught.value.remedy


def test_an_answer_is_what_it_prints() -> None:
    assert asked("import sys; print(sys.stdin.read()[::-1], end='')", "abc") == "cba"


def test_an_error_has_its_words_from_either_stream_in_one_line() -> None:
    program = "import sys; print('on\\n one'); sys.exit('and the other')"
    assert refused(program) == ("it failed: on one and the other", "look")


def test_of_many_words_the_last_are_told() -> None:
    message, _ = refused("import sys; sys.exit('x' * 10_000 + ' the cause')")
    assert message.endswith("x the cause")
    assert len(message) < 400


def test_a_program_that_says_nothing_is_told_by_its_status() -> None:
    assert refused("raise SystemExit(7)") == ("it failed: without a word, with status 7", "look")


def test_a_program_that_hangs_is_ended() -> None:
    message, remedy = refused("import time; time.sleep(600)", limit_s=0.2)
    assert (message, remedy) == ("it did not answer within 0 s", "restart")


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HostUnfitError, match=r"it failed: .*No such file"):
        answer_of("it", (str(tmp_path / "absent"),), 1, silent="restart", failed="look")


def test_both_who_ask_the_host_tell_its_words_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho said\necho loudly >&2\nexit 9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(program))
    told = []
    for ask in (lambda: gpu.ask(("-q",)), lambda: time_processors([0], [0])):
        with pytest.raises(HostUnfitError) as caught:
            ask()
        told.append(caught.value.message.partition(" failed: "))
    assert {words for _, _, words in told} == {"said loudly"}
