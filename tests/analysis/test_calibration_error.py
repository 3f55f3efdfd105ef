"""Which effects stand above the client's own error: worked by hand, and as properties."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.calibration import (
    effect_is_resolved,
    length_error_ns,
    quantity_error_ns,
    ratio_is_resolved,
    relative_error,
    stamp_error_ns,
)
from analysis.metrics import LATENCY_IDS
from records.errors import CalibrationError, FormatError
from records.measurement import ClientReport
from records.schema import Calibrated

REPORT = ClientReport("kernel", 1, 1, 1, 0, 0, 9, 0, *[1] * 10)
KERNEL = Calibrated(4, 20_000_000, 9, 5_000, 21_000, 400_000, 0, 60_000, REPORT)
USER = replace(KERNEL, report=replace(REPORT, stamps="user"))


def test_the_worst_calibration_counts_and_user_stamps_count_with_their_largest() -> None:
    assert stamp_error_ns([KERNEL]) == 21_000
    assert stamp_error_ns([KERNEL, replace(KERNEL, error_p99_ns=30_000)]) == 30_000
    assert stamp_error_ns([KERNEL, USER]) == 400_000
    assert stamp_error_ns([replace(KERNEL, error_p99_ns=-40)]) == 0


def test_without_a_calibration_nothing_is_resolved() -> None:
    with pytest.raises(CalibrationError):
        stamp_error_ns([])


@pytest.mark.parametrize(
    ("id_", "error_ns"),
    [
        ("step-gap", 1000),
        ("ttft.sent", 1000),
        ("tpot.n-1", 250),
        ("ntpot", 200),
        ("tpot.n-k1", 500),
    ],
)
def test_an_error_spreads_over_the_steps_of_a_quantity(id_: str, error_ns: float) -> None:
    assert quantity_error_ns(id_, 1000, output_tokens=5, first_tokens=3) == error_ns


def test_every_latency_quantity_has_an_error_and_no_other() -> None:
    with pytest.raises(FormatError, match="itl"):
        quantity_error_ns("itl", 1000, 5)
    assert all(quantity_error_ns(id_, 1000, 1) == 1000 for id_ in LATENCY_IDS)


def test_an_effect_must_exceed_the_errors_of_both_sides() -> None:
    assert effect_is_resolved(-43_000, 21_000, 21_000)
    assert not effect_is_resolved(42_000, 21_000, 21_000)


def test_a_window_ends_with_its_last_stamp_not_when_the_client_has_noticed() -> None:
    assert length_error_ns(21_000, 1_000_000_000, 999_300_000) == 721_000
    assert length_error_ns(21_000, 1_000_000_000, 1_000_000_500) == 21_000


def test_a_ratio_near_one_is_not_resolved() -> None:
    error = relative_error(10_000_000, 1_000_000_000)
    assert not ratio_is_resolved(1.02, error, error)
    assert ratio_is_resolved(1.03, error, error)
    assert ratio_is_resolved(0.97, error, error)
    assert not ratio_is_resolved(100.0, 1.0, 0.0)


@given(
    true=st.floats(0.1, 10),
    above=st.floats(0, 0.5),
    below=st.floats(0, 0.5),
    signs=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)
def test_no_ratio_of_equals_is_ever_resolved(
    true: float, above: float, below: float, signs: tuple[float, float]
) -> None:
    measured = (true * (1 + signs[0] * above)) / (true * (1 + signs[1] * below))
    assert not ratio_is_resolved(measured, above + 1e-6, below + 1e-6)
