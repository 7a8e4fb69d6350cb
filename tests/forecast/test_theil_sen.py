"""Lines through points, against SciPy's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.forecast.pruning.theil_sen import theil_sen

POINTS = st.lists(
    st.tuples(st.integers(0, 9), st.one_of(st.integers(0, 9), st.floats(0, 1e6))), min_size=8, max_size=40
)


@pytest.mark.filterwarnings("ignore:invalid value encountered in sqrt:RuntimeWarning")  # of SciPy's
@given(POINTS.filter(lambda points: len({x for x, _ in points}) > 1), st.sampled_from([0.8, 0.95]))
def test_the_line_is_that_of_scipy(points: list[tuple[int, float]], confidence: float) -> None:
    from scipy.stats import theilslopes

    x, y = np.array(points, dtype=float).T
    theirs = theilslopes(y, x, confidence)
    assert theil_sen(x, y, confidence) == pytest.approx(tuple(theirs), rel=1e-9, abs=1e-9, nan_ok=True)
