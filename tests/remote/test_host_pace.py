"""The pace of a processor: a fixed piece of work, timed where the engine runs."""

from __future__ import annotations

import os

import pytest

from records.errors import HostUnfitError
from remote.host.pace import pace_ns


def test_it_takes_time_and_leaves_the_affinity_as_it_was() -> None:
    before = os.sched_getaffinity(0)
    assert pace_ns(sorted(before)[:1]) > 0
    assert pace_ns() > 0
    assert os.sched_getaffinity(0) == before


def test_a_processor_that_the_host_does_not_have() -> None:
    with pytest.raises(HostUnfitError, match="processors"):
        pace_ns([4095])
