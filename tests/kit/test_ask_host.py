"""Many questions in one command are answered as each alone would be."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kit.hosts.ask import ask_all
from kit.hosts.host import NOT_FOUND, TIMED_OUT, Done
from kit.hosts.local import LocalHost

QUESTIONS: dict[str, tuple[Sequence[str], int]] = {
    "says": (("printf", "%s", "a b\nc\\d 'e' é"), 10),
    "fails": (("sh", "-c", "echo out; echo err >&2; exit 3"), 10),
    "is not there": (("no-such-program-anywhere",), 10),
    "never ends": (("sleep", "60"), 1),
    "reads nothing": (("cat",), 10),
    "is killed": (("sh", "-c", "kill -9 $$"), 10),
    "has a locale": (("sh", "-c", "echo $LC_ALL"), 10),
}


class Counted(LocalHost):
    """A host that counts what it is asked to run; `broken`: it cannot run the batch."""

    def __init__(self, *, broken: bool = False) -> None:
        self.asked = 0
        self.broken = broken

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: int = 60) -> Done:
        self.asked += 1
        if self.broken and stdin:
            return Done(1, "", "SyntaxError")
        return super().run(argv, stdin=stdin, timeout_s=timeout_s)


@pytest.mark.parametrize("broken", [False, True])
def test_every_answer_is_the_one_it_would_have_got_alone(broken: bool) -> None:
    host = Counted(broken=broken)
    answers = ask_all(host, QUESTIONS)
    assert host.asked == (1 + len(QUESTIONS) if broken else 1)
    assert answers["says"] == Done(0, "a b\nc\\d 'e' é", "")
    assert answers["fails"] == Done(3, "out\n", "err\n")
    assert answers["is not there"].status == NOT_FOUND
    assert answers["never ends"].status == TIMED_OUT
    assert answers["reads nothing"] == Done(0, "", "")
    assert answers["is killed"].status == -9
    assert answers["has a locale"].stdout == "C\n"


def test_what_else_a_shell_prints_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Noisy(Counted):
        def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: int = 60) -> Done:
            done = super().run(argv, stdin=stdin, timeout_s=timeout_s)
            return Done(done.status, f"Welcome!\n{done.stdout}", done.stderr)

    assert ask_all(Noisy(), {"a": (("echo", "x"), 10)}) == {"a": Done(0, "x\n", "")}
