"""Buckets against sums over microseconds, and against samples looked at one by one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gpudiag.measures._time.cells import cell_borders
from gpudiag.report.timeline.buckets import SEEN_FULLY, Raster, bucketed, round_width


def by_hand(start: np.ndarray, end: np.ndarray, value: np.ndarray, low: int, high: int) -> tuple[float, ...]:
    """Least, mean, greatest and observed time of one bucket: each cell laid over it, one after the other."""
    seen, mass, values = 0, 0.0, []
    for a, b, v in zip(start.tolist(), end.tolist(), value.tolist(), strict=True):
        inside = min(b, high) - max(a, low)
        if inside > 0:
            seen, mass = seen + inside, mass + inside * v
            values.append(v)
    return (min(values), mass / seen, max(values), seen) if seen else (np.nan, np.nan, np.nan, 0)


def samples(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells of jittered samples with gaps in between."""
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.integers(200_000, 1_800_000, 300)) + 7
    time += np.cumsum(rng.choice([0, 60_000_000], 300, p=[0.95, 0.05]))
    return *cell_borders(time), rng.choice([0.0, 13.5, 50.0, 99.0, 100.0], 300)


@pytest.mark.slow
@pytest.mark.many
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("width", [150_000, 1_000_000, 7_000_000, 500_000_000])
def test_least_mean_and_greatest_are_those_of_what_was_observed(seed: int, width: int) -> None:
    start, end, value = samples(seed)
    raster = Raster(int(start[0]) - width // 3, width, int(end[-1] - start[0]) // width + 2)
    made = bucketed(start, end, value, raster)
    edges = raster.edges_us
    hand = [by_hand(start, end, value, a, b) for a, b in pairwise(edges.tolist())]
    low, mean, high, seen = (np.array(column) for column in zip(*hand, strict=True))
    np.testing.assert_allclose(made.low, low)
    np.testing.assert_allclose(made.high, high)
    np.testing.assert_allclose(made.mean, mean, atol=1e-9)
    assert ((made.seen > 0) == (seen > 0)).all()
    assert np.abs(made.seen / SEEN_FULLY - seen / width).max() <= 1 / SEEN_FULLY


def test_a_gap_stays_a_gap_and_is_never_zero() -> None:
    start, end, value = np.array([0, 100]), np.array([10, 110]), np.array([40.0, 60.0])
    made = bucketed(start, end, value, Raster(0, 10, 12))
    assert made.seen.tolist() == [255, *[0] * 9, 255, 0]
    assert np.isnan(made.mean[1:10]).all() and np.isnan(made.low[1:10]).all() and np.isnan(made.high[11])
    assert made.mean[[0, 10]].tolist() == [40.0, 60.0]


def test_a_bucket_seen_for_a_moment_is_known() -> None:
    made = bucketed(np.array([5]), np.array([6]), np.array([0.0]), Raster(0, 1_000_000, 1))
    assert made.seen.tolist() == [1] and made.mean.tolist() == [0.0]


def test_the_window_may_lie_within_the_samples_or_beyond_them() -> None:
    start, end, value = np.arange(0, 100, 10), np.arange(10, 110, 10), np.arange(10.0)
    inside = bucketed(start, end, value, Raster(35, 10, 3))
    assert inside.mean.tolist() == [3.5, 4.5, 5.5] and inside.seen.tolist() == [255] * 3
    assert bucketed(start, end, value, Raster(-500, 10, 3)).seen.tolist() == [0, 0, 0]
    assert bucketed(start, end, value, Raster(500, 10, 3)).seen.tolist() == [0, 0, 0]


@pytest.mark.parametrize("span_s", [0.3, 9, 3600, 7 * 86_400, 4000 * 86_400])
@pytest.mark.parametrize("period_s", [0, 0.02, 1, 30])
@pytest.mark.parametrize("most", [200, 12_000])
def test_buckets_cover_the_window_are_few_and_no_finer_than_the_samples(
    span_s: float, period_s: float, most: int
) -> None:
    low, span, period = 1_700_000_000_000_000, round(span_s * 1e6), round(period_s * 1e6)
    raster = Raster.of(low, low + span, period, most)
    assert raster.start_us == low and raster.edges_us[-1] >= low + span > raster.edges_us[-2]
    assert raster.n <= most
    assert raster.width_us > period / 12 or period == 0


def test_widths_are_round() -> None:
    second = 1_000_000
    assert [round_width(us, up=True) for us in (3, 100, 700_000, 61 * second)] == [5, 100, second, 120 * second]
    assert [round_width(us, up=False) for us in (3, 100, 700_000, 61 * second)] == [2, 100, 500_000, 60 * second]
    day = 86_400 * second
    assert round_width(3 * day + 1, up=True) == 4 * day and round_width(3 * day + 1, up=False) == 3 * day
