"""Bounds of the effective parallelism, against every end of the open trials on a coarse grid."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.measures._trials.effective_bounds import effective_bounds
from gpudiag.measures.parallelism import effective_parallelism

CLOSED = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), min_size=1, max_size=5)
OPEN = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=3)


def bounds(closed: list[tuple[int, int]], opens: list[tuple[int, int, int]]) -> tuple[float, float]:
    start, length = np.array(closed, int).reshape(-1, 2).T
    first, least, more = np.array(opens, int).reshape(-1, 3).T
    return effective_bounds(start, start + length, first, first + least, first + least + more)


@given(CLOSED, OPEN)
def test_every_end_lies_within_and_the_least_is_reached(
    closed: list[tuple[int, int]], opens: list[tuple[int, int, int]]
) -> None:
    low, high = bounds(closed, opens)
    start, end = (np.array(side) for side in zip(*((s, s + d) for s, d in closed), strict=True))
    first = np.array([s for s, _, _ in opens])
    found = [
        effective_parallelism(np.concatenate([start, first]), np.concatenate([end, first + np.array(length)]))
        for length in itertools.product(*(range(least, least + more + 1) for _, least, more in opens))
    ]
    assert min(found) == pytest.approx(low, abs=1e-5)
    assert max(found) <= high + 1e-9


def test_the_most_is_reached_where_all_end_together() -> None:
    """Two closed for 10 s; three open that may live 10 s more: 5 x 20 s less 2 x 10 s in 20 s, at 10 s 5."""
    assert bounds([(0, 10), (0, 10)], [(0, 10, 10)] * 3) == pytest.approx((60 / 20, 5.0))
    assert bounds([(0, 10)], [(0, 0, 20)] * 3)[1] == pytest.approx(4.0)


def test_one_may_live_on_alone_up_to_the_next_stretch() -> None:
    """From 4 s to 8 s one alone: 2 x 4 + 2 x 4 and 4 more, in 12 s; it need not run beside those after it."""
    assert bounds([(0, 4), (0, 4), (8, 4), (8, 4)], [(0, 4, 8)])[0] == pytest.approx((8 + 8 + 4 + 4) / 12)


def test_without_any_length_nothing_is_known() -> None:
    assert np.isnan(effective_bounds(*(np.array([5]),) * 5)).all()
    assert effective_bounds(*(np.array([5]),) * 4, np.array([9])) == pytest.approx((1.0, 1.0))
