"""Stop signals never land inside a shield, and are not lost by one."""

from __future__ import annotations

import os
import signal

import pytest

from records.errors import InterruptedRunError
from remote.interruption import Interruption


@pytest.fixture
def interruption():
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    installed = Interruption()
    installed.install()
    yield installed
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_outside_a_shield_raises_at_once(interruption):
    with pytest.raises(InterruptedRunError, match="SIGTERM"):
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_inside_nested_shields_waits_for_the_outermost(interruption):
    done = []
    with pytest.raises(InterruptedRunError, match="SIGINT"), interruption.shield():
        with interruption.shield():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]


def test_a_shield_without_a_signal_raises_nothing(interruption):
    with interruption.shield():
        pass
