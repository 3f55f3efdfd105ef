"""Arms of one ratio in every block have that ratio, and no error of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.statistics.blocking import blocked_ratio, same_ratio
from records.errors import FormatError

_RATES = st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=10)


@given(_RATES, st.floats(1e-3, 1e3))
def test_a_common_factor_is_one_ratio_whatever_the_rounding(
    rates: list[float], factor: float
) -> None:
    assert same_ratio([factor * rate for rate in rates], rates)


@given(_RATES, st.floats(1e-6, 1.0))
def test_what_is_not_one_ratio_has_an_interval(rates: list[float], by: float) -> None:
    other = [rates[0] * (1 + by), *rates[1:]]
    assert not same_ratio(other, rates)
    found = blocked_ratio(other, rates)
    assert found.low < found.ratio < found.high


@pytest.mark.parametrize("values", [([1.0, 0.0], [1.0, 1.0]), ([1.0], [1.0, 2.0])])
def test_what_is_no_pair_of_arms_has_none(values: tuple[list[float], list[float]]) -> None:
    with pytest.raises(FormatError):
        same_ratio(*values)
