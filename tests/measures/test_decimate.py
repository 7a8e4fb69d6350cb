from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from smallruns import at

from gpudiag.measures._time.decimate import decimate


@pytest.mark.slow
@given(st.integers(1, 400), st.integers(4, 60), st.integers(0, 10_000))
def test_extremes_ends_and_order_are_kept(n: int, max_points: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"t": at(np.cumsum(rng.exponential(10, n))), "v": rng.integers(0, 100, n).astype(float)})
    out = decimate(frame, "t", "v", max_points)
    assert len(out) <= max(max_points, 4)
    assert (out["v"].min(), out["v"].max()) == (frame["v"].min(), frame["v"].max())
    assert out["t"].is_monotonic_increasing
    assert out["t"].iloc[[0, -1]].tolist() == frame["t"].iloc[[0, -1]].tolist()
    assert len(out.merge(frame)) >= len(out)


def test_each_bin_keeps_its_own_extremes() -> None:
    frame = pd.DataFrame({"t": at(np.arange(1000)), "v": np.tile([5.0, 1.0, 9.0, 5.0], 250)})
    out = decimate(frame, "t", "v", 22)
    inner = out["v"].iloc[1:-1]
    assert len(inner) == 20 and sorted(set(inner)) == [1, 9]


def test_few_rows_stay_as_they_are_and_unknown_values_go() -> None:
    frame = pd.DataFrame({"t": at([0, 1, 2]), "v": [1.0, np.nan, 3.0]})
    assert decimate(frame, "t", "v")["v"].tolist() == [1, 3]


def test_equal_timestamps_do_not_divide_by_zero() -> None:
    frame = pd.DataFrame({"t": at(np.zeros(100)), "v": np.arange(100.0)})
    assert decimate(frame, "t", "v", 10)["v"].tolist() == [0, 99]


@pytest.mark.slow
def test_a_million_rows() -> None:
    frame = pd.DataFrame({"t": at(np.arange(1e6)), "v": np.random.default_rng(0).normal(size=1_000_000)})
    assert len(decimate(frame, "t", "v")) <= 2000
