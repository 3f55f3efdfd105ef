"""What GPU and engine did in windows: void windows count, samples without a value do not."""

from __future__ import annotations

from typing import Any, cast

import pytest

from analysis.claiming import window_states
from analysis.claiming.reading import Reading
from records.errors import ClaimError


class _Facts:
    """A study of which nothing but its windows' facts is asked."""

    def __init__(self, *facts: dict[str, Any]) -> None:
        self._facts = facts

    def window_facts(self, arm: str = "") -> tuple[dict[str, Any], ...]:
        return self._facts


def study(*facts: dict[str, Any]) -> Reading:
    return cast(Reading, _Facts(*facts))


def sampled(**columns: Any) -> dict[str, Any]:
    return {"gpu": {"traces": [columns]}}


def test_samples_of_all_windows_count_and_those_without_a_value_do_not():
    seen = study(
        sampled(sm_clock_mhz=[1980, -1, 1845], power_mw=[697_420, 715_070]),
        sampled(sm_clock_mhz=[1965], power_mw=[-1]),
    )
    assert window_states.sampled("least", "sm_clock_mhz", seen) == 1845
    assert window_states.sampled("greatest", "sm_clock_mhz", seen) == 1980
    assert window_states.power_peak_w(seen) == 715.07


def test_shares_are_of_each_windows_length():
    def window(ran_ns: int, waited_ns: int) -> dict[str, Any]:
        thread = {"on_cpu_ns": ran_ns, "waiting_ns": waited_ns}
        return {"busiest_thread": thread, "host": {"duration_ns": 2_000}}

    seen = study(window(1_000, 2), window(1_500, 1), window(1_800, 0))
    assert window_states.thread_ran_percent("draft", seen) == 75.0
    assert window_states.thread_waited_percent(seen) == 0.1


@pytest.mark.parametrize("facts", [{}, {"gpu": None, "host": 1}, sampled(sm_clock_mhz="1980")])
def test_facts_of_another_form_tell_nothing(facts):
    seen = study(facts)
    for untold in (
        lambda: window_states.sampled("least", "sm_clock_mhz", seen),
        lambda: window_states.power_peak_w(seen),
        lambda: window_states.thread_ran_percent("draft", seen),
        lambda: window_states.thread_waited_percent(seen),
    ):
        with pytest.raises(ClaimError):
            untold()
