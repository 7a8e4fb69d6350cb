"""Chances of an overflow: against enumeration, against simulated truth, and as they must move."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.forecast.memory.overflow import Room, overflow_chances, overflow_table, study_risk_pct
from gpudiag.forecast.memory.peaks import trial_peaks
from tests.forecast.memoryruns import mixed_run

PEAKS = np.array([2000.0, 5000.0, 9000.0, 12000.0])
WEIGHT = np.array([4.0, 3.0, 2.0, 1.0])


def table(peaks: np.ndarray, weight: np.ndarray, total_mib: float, levels: list[int]) -> pd.DataFrame:
    draws = np.repeat(peaks[None], 8, axis=0)
    return overflow_table(draws, weight, Room(total_mib, 300.0), levels, np.random.default_rng(0)).set_index("k")


def test_a_level_gets_the_same_whichever_others_are_asked_for() -> None:
    many, one = (table(PEAKS, WEIGHT, 16000.0, levels) for levels in ([1, 2, 3, 4], [2]))
    pd.testing.assert_series_equal(many.loc[2], one.loc[2], rtol=1e-9)


@pytest.mark.parametrize("total_mib", [11000.0, 16000.0, 24000.0])
def test_the_chance_is_that_of_all_sets_counted_out(total_mib: float) -> None:
    found = table(PEAKS, WEIGHT, total_mib, [1, 2, 3, 4])
    share = WEIGHT / WEIGHT.sum()
    for k in (1, 2, 3, 4):
        expected = sum(
            np.prod(share[list(which)])
            for which in product(range(4), repeat=k)
            if 300 + PEAKS[list(which)].sum() > 0.98 * total_mib
        )
        assert found.at[k, "sets_over_pct"] == pytest.approx(100 * expected, abs=1e-6)
        assert found.at[k, "worst_mib"] == 300 + np.sort(PEAKS)[::-1][:k].sum()
        assert found.at[k, "hard_fit"] == (found.at[k, "worst_mib"] <= 0.98 * total_mib)
        columns = ["p_low_pct", "p_overflow_pct", "p_high_pct"]
        assert (np.diff(found.loc[k, columns].astype(float)) >= 0).all()
        assert found.at[k, "sets_over_pct"] <= found.at[k, "p_high_pct"]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_estimate_is_that_of_all_ends_counted_out(k: int) -> None:
    """Each trial ends once, at its peak; the others are met by their time, and hold their peak in part of it."""
    at_peak = np.array([1.0, 0.5, 0.25, 0.8])
    draws = np.repeat(PEAKS[None], 8, axis=0)
    found = overflow_table(draws, WEIGHT, Room(16000.0, 300.0), [k], np.random.default_rng(0), at_peak=at_peak)
    share = WEIGHT / WEIGHT.sum()
    states = [(PEAKS[i], share[i] * at_peak[i]) for i in range(4)] + [(0.0, (share * (1 - at_peak)).sum())]
    expected = sum(
        0.25 * np.prod([p for _, p in others])
        for peak in PEAKS
        for others in product(states, repeat=k - 1)
        if 300 + peak + sum(held for held, _ in others) > 16000.0
    )
    assert found["p_overflow_pct"].iloc[0] == pytest.approx(100 * expected, abs=1e-6)


def test_none_seen_is_not_never() -> None:
    found = table(np.full(60, 1000.0), np.ones(60), 24000.0, [2])
    assert found.at[2, "sets_over_pct"] == found.at[2, "p_overflow_pct"] == 0
    assert found.at[2, "p_high_pct"] == pytest.approx(100 * (1 - 0.05 ** (2 / 60)))


@pytest.mark.parametrize("n_large", [0, 1, 4, 20])
def test_the_upper_end_for_one_is_the_limit_of_clopper_and_pearson(n_large: int) -> None:
    """Of 50 trials so many do not fit alone; one of twice the largest does not either."""
    from scipy import stats

    peaks = np.where(np.arange(50) < n_large, 20000.0, 9000.0)
    found = table(peaks, np.ones(50), 15000.0, [1]).loc[1]
    assert found["sets_over_pct"] == pytest.approx(2 * n_large)
    assert found["p_overflow_pct"] == pytest.approx(2 * n_large)
    assert found["p_high_pct"] == pytest.approx(100 * stats.beta.ppf(0.975, n_large + 1, 50 - n_large), rel=0.15)


def test_where_one_more_would_fit_beside_none_no_overflow_shows_what_so_many_can_show() -> None:
    found = table(np.full(60, 9000.0), np.ones(60), 19500.0, [2]).loc[2]
    assert found["sets_over_pct"] == found["p_overflow_pct"] == 0
    assert found["p_high_pct"] == pytest.approx(100 * (1 - 0.025 ** (2 / 60)), rel=0.12)


@pytest.mark.slow
def test_the_upper_end_holds_the_truth_that_a_small_log_misses() -> None:
    """One trial in 15 is large, and two of these do not fit: of logs with 50 trials one in 31 holds none of them."""
    rng = np.random.default_rng(0)
    truth = 100 * (1 / 15) ** 2
    below = []
    for _ in range(30):
        peaks = np.where(rng.random(50) < 1 / 15, 12000.0, 3000.0)
        found = table(peaks, np.ones(50), 20000.0, [2]).loc[2]
        below.append([found[name] < truth / 1.5 for name in ("p_overflow_pct", "p_high_pct")])
    plain, upper = np.mean(below, axis=0)
    assert plain > 0.1  # what was seen alone is too low in many
    assert upper < 0.05


def test_what_the_driver_reserves_is_not_usable() -> None:
    assert Room(24564, 350, 500).usable_mib == pytest.approx(0.98 * 24564 - 500)


def test_study_risk() -> None:
    assert study_risk_pct(0.1, 5000) == pytest.approx(99.33, abs=0.01)
    assert study_risk_pct(0.0, 5000) == 0
    assert study_risk_pct(100.0, 3) == 100


@given(st.lists(st.floats(500, 15000), min_size=3, max_size=20), st.integers(0, 5))
def test_more_trials_or_a_larger_one_are_never_safer(peaks: list[float], which: int) -> None:
    values, weight = np.array(peaks), np.full(len(peaks), 1 / len(peaks))
    before = overflow_chances(values, weight, 23000.0, [1, 2, 3])
    assert (np.diff(before) >= -1e-9).all() and (before >= 0).all() and (before <= 1 + 1e-9).all()
    larger = values.copy()
    larger[which % len(values)] += 4000
    assert (overflow_chances(larger, weight, 23000.0, [1, 2, 3]) >= before - 1e-9).all()


def test_a_row_a_log_gives_each_log_its_own() -> None:
    logs = np.stack([PEAKS, PEAKS[::-1] * 1.1, PEAKS / 2])
    weights = np.stack([WEIGHT, WEIGHT[::-1], np.ones(4)]) / np.array([[10.0], [10.0], [4.0]])
    each = [overflow_chances(*one, 16000.0, [1, 2, 3, 4]) for one in zip(logs, weights, strict=True)]
    assert overflow_chances(logs, weights, 16000.0, [1, 2, 3, 4]) == pytest.approx(np.stack(each), abs=1e-12)


def test_no_room_at_all() -> None:
    assert (overflow_chances(PEAKS, WEIGHT, -1.0, [1, 2]) == 1).all()


def overflowing_sets(made: object, workers: int, total_mib: float) -> float:
    """Share of the sets of ``workers`` trials, from one start or end to the next, in which more was in use."""
    history = made.history  # type: ignore[attr-defined]
    time, used = np.array(history.used[0]).T
    start = np.array([life.start_s for life in history.lives])
    end = np.array([life.end_s for life in history.lives])
    cuts = np.unique(np.concatenate([start, end]))
    most = np.concatenate([[0.0], used])[np.searchsorted(time, cuts, "right")]
    np.maximum.at(most, np.searchsorted(cuts, time, "right") - 1, used)
    running = np.searchsorted(np.sort(start), cuts, "right") - np.searchsorted(np.sort(end), cuts, "right")
    return float((most[running == workers] > total_mib).mean())


@pytest.mark.slow
def test_the_chance_is_what_happens_with_more_at_once() -> None:
    for seed in (0, 3):
        made = mixed_run(seed, 3, n_trials=150)
        peaks = trial_peaks(made.run, np.random.default_rng(0))
        room = Room(20000.0, peaks.baseline_mib["0"])
        rng = np.random.default_rng(1)
        weight = peaks.trials["weight_s"].to_numpy()
        found = overflow_table(peaks.draws, weight, room, [4, 5], rng, at_peak=peaks.at_peak).set_index("k")
        for k in (4, 5):
            truth = 100 * overflowing_sets(mixed_run(seed, k, n_trials=500), k, room.total_mib)
            if truth >= 0.5:
                assert truth / 3 <= found.at[k, "p_overflow_pct"] <= 3 * truth
            assert found.at[k, "p_low_pct"] <= truth <= found.at[k, "p_high_pct"]


def test_trials_that_cannot_fit_are_known_not_to_whatever_the_log_leaves_open() -> None:
    """Of 20,000, 30,000 and 50,000 MiB each known to a tenth: two of the largest never fit into 81,559."""
    rng = np.random.default_rng(1)
    peaks = np.repeat([20000.0, 30000.0, 50000.0], 20)
    draws = peaks * rng.uniform(0.95, 1.05, (100, len(peaks)))
    found = overflow_table(draws, np.ones(len(peaks)), Room(81559.0, 500.0), [1, 2], rng).set_index("k")
    largest = 500 + np.sort(draws, axis=1)[:, -2:].sum(axis=1)
    assert found.at[2, "worst_low_mib"] == pytest.approx(np.quantile(largest, 0.025))
    assert found.at[1, "worst_high_mib"] < 0.98 * 81559 < found.at[2, "worst_low_mib"]
