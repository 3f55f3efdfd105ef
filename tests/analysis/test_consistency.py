"""What lies between boots and what within them: a published example, and what must not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.statistics.consistency import consistency
from records.errors import FormatError

# P. E. Shrout and J. L. Fleiss, Psychological Bulletin 86 (1979) 420-428, table 2: six targets,
# four judges. Their ICC(3,1) is 0.71; R's psych package gives its interval as 0.34 to 0.95.
SHROUT_FLEISS = [
    [9, 2, 5, 8],
    [6, 1, 3, 2],
    [8, 4, 6, 8],
    [7, 1, 2, 6],
    [10, 5, 6, 9],
    [6, 2, 4, 7],
]


def test_the_published_example():
    found = consistency(SHROUT_FLEISS)
    assert found.share == pytest.approx(0.7148, abs=5e-5)
    assert (found.low, found.high) == pytest.approx((0.34, 0.95), abs=5e-3)
    assert found.within_sd**2 == pytest.approx(1.02, abs=5e-3)  # their table 3: residual


values = st.lists(
    st.tuples(*[st.floats(-100, 100, allow_subnormal=False)] * 2), min_size=3, max_size=12
)


@given(values, st.floats(-10, 10), st.floats(0.5, 50))
def test_what_windows_differ_by_on_average_and_the_unit_do_not_matter(rows, shift, scale):
    table = np.asarray(rows)
    try:
        found = consistency(table)
    except FormatError:
        return
    if found.within_sd < 1e-3:
        return
    moved = consistency(scale * (table + np.array([0.0, shift])))
    assert moved.share == pytest.approx(found.share, abs=1e-6)
    assert moved.within_sd == pytest.approx(scale * found.within_sd, rel=1e-6)
    assert 0 <= found.low <= found.share <= found.high <= 1


def test_boots_alike_but_for_their_windows_share_nothing():
    rng = np.random.default_rng(7)
    assert consistency(rng.normal(size=(2000, 2))).high < 0.1


@pytest.mark.parametrize(
    "table",
    [
        [[1.0, 2.0]],
        [[1.0], [2.0]],
        [[1, 2], [2, 3]],
        [[1, 2], [2, math.nan]],
        [1.0, 2.0],
        # Alike but for what is lost in rounding.
        [[math.log(1 / 3)] * 2] * 7,
        [[0.1, 0.2], [0.3, 0.4], [0.7, 0.8]],
    ],
)
def test_what_tells_nothing_is_refused(table):
    with pytest.raises(FormatError):
        consistency(table)
