from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from drawn import few_of
from hypothesis import given, settings
from hypothesis import strategies as st
from smallruns import at, gpu, run, steps_of, trials
from verdicts import verdict_of

from gpudiag.diagnosis import diagnose
from gpudiag.errors import NotMeasurable
from gpudiag.measures._gpu import gpu_rows
from gpudiag.measures._gpu.gpu_rows import by_gpu, gpu_order
from gpudiag.measures._time import cells
from gpudiag.measures._time.cells import cell_borders, cells_of, longest_period_s, rows_by_gpu, sample_weights
from gpudiag.measures._time.microseconds import median_of_steps
from gpudiag.measures._time.weighted import weighted_mean, weighted_quantiles
from gpudiag.measures.ledger import measure_ledger
from gpudiag.measures.sampling import measure_sampling
from gpudiag.measures.steps import measure_steps
from gpudiag.rules._engine.verdict import Status


def grid_weights(timestamps_ds: list[int]) -> list[float]:
    """By brute force: every 0.05 s belongs to the nearest timestamp, if that is within 1.5 median periods of it."""
    period = float(np.median(np.diff(timestamps_ds)))
    reach = max(3 * period, 30) / 2
    weights = [0] * len(timestamps_ds)
    for tick in range((timestamps_ds[0] - 1000) * 2 + 1, (timestamps_ds[-1] + 1000) * 2, 2):
        moment = tick / 2
        nearest = min(range(len(timestamps_ds)), key=lambda i: abs(timestamps_ds[i] - moment))
        outside = moment < timestamps_ds[0] or moment > timestamps_ds[-1]
        if abs(timestamps_ds[nearest] - moment) < (period / 2 if outside else reach):
            weights[nearest] += 1
    return [w / 10 for w in weights]


@pytest.mark.parametrize(
    "timestamps_ds",
    [
        [0, 50, 100, 150, 200],
        [0, 50, 100, 160, 400, 450, 500, 550],  # a gap of 24 s where the cap is 15 s
        [0, 6, 12, 18, 100, 106],  # a median period of 0.6 s: the cap is 3 s
        [0, 10, 30, 60, 100, 150, 210],
    ],
)
def test_weights_are_those_of_a_fine_grid(timestamps_ds: list[int]) -> None:
    timestamps = pd.Series(at(np.array(timestamps_ds) / 10))
    assert sample_weights(timestamps) == pytest.approx(grid_weights(timestamps_ds), abs=0.11)


def test_weights_by_hand() -> None:
    # Median step 5 s, cap 15 s: halves of 2.5, and 7.5 on both sides of the gap of 60 s.
    assert sample_weights(np.array([0, 5, 10, 70, 75]) * 1_000_000) == pytest.approx([5, 5, 10, 10, 5])


SHORT_OR_LONG = st.integers(1, 10_000_000) | st.integers(1, 36_000_000_000)


@given(st.lists(SHORT_OR_LONG, min_size=1, max_size=60))
def test_cells_tile_the_observed_time(steps: list[int]) -> None:
    time = np.concatenate([[0], np.cumsum(steps)])
    left, right = cell_borders(time)
    usual = int(np.median(steps))
    long = max(1_800_000_000, int(1.5 * usual))
    cap = max(min(3 * usual, long), 3_000_000)
    places = [min(max(i - 10, 0), max(len(steps) - 21, 0)) for i in range(len(steps))]
    around = [min(3 * int(np.median(steps[low : low + 21])), long) if len(steps) > 20 else 0 for low in places]
    caps = np.maximum(cap, around)
    assert (left <= time).all() and (right >= time).all()
    joined = np.diff(time) <= caps
    assert (right[:-1][joined] == left[1:][joined]).all()
    assert (left[1:][~joined] - right[:-1][~joined] == (np.diff(time) - caps)[~joined]).all()


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("n_slow", "known"), [(10, False), (11, True), (90, True)])
def test_a_recorder_that_goes_on_at_a_longer_period_leaves_no_gaps(order: int, n_slow: int, known: bool) -> None:
    """600 steps of 1 s and some of 60 s, before or after them; a hole within the slow ones is one all the same."""
    steps = np.array([1.0] * 600 + [60.0] * n_slow)[::order]
    timestamps = np.concatenate([[0.0], np.cumsum(steps)])
    table = gpu(timestamps, util_pct=np.where(np.append(steps, steps[-1]) > 1, 0.0, 100.0))
    seen = measure_sampling(run(gpu=table)).per_gpu.loc["0"]
    assert seen["n_gaps"] == (0 if known else n_slow)
    assert seen["observed_s"] == pytest.approx(timestamps[-1] + 1 if known else 601 + 3 * n_slow)
    us = (1_000_000 * timestamps).astype(np.int64)
    assert longest_period_s([us]) == (60 if known else 1), "by time: 660 s and more of 1,260 were seen once a minute"
    assert seen["cap_s"] == (180 if known else 3)
    if n_slow == 90:
        hole = gpu(np.delete(timestamps, np.arange(40, 46) if order < 0 else np.arange(640, 646)))
        assert measure_sampling(run(gpu=hole)).gaps["gap_s"].tolist() == [420.0]


@settings(max_examples=few_of(60))
@given(
    st.lists(st.integers(1, 1000), min_size=30, max_size=80),
    st.floats(1, 3600),
    st.sets(st.integers(5, 70), max_size=4),
)
@pytest.mark.slow
def test_a_recorder_with_one_period_is_observed_but_for_what_it_dropped(
    late: list[int], period_s: float, dropped: set[int]
) -> None:
    """From every second to every hour, up to a tenth of a period late each time."""
    due = period_s * (np.arange(len(late)) + np.array(late) / 10_000)
    kept = np.delete(due, [place for place in dropped if place < len(due) - 1])
    row = measure_sampling(run(gpu=gpu(kept))).per_gpu.loc["0"]
    step = np.diff(kept)
    missing = step[step > max(min(3 * period_s, max(1800, 1.5 * period_s)), 3) / 1.11].sum()
    assert row["unobserved_s"] <= missing + 1e-6, "nothing else is a gap"
    assert row["coverage_pct"] >= 85


@given(st.lists(st.floats(0, 2.5), min_size=40, max_size=120), st.sampled_from([2.0, 20.0, 120.0]))
def test_what_lies_far_from_every_sample_is_not_observed(powers: list[float], least_s: float) -> None:
    """Steps from seconds or minutes up to 300 times as long, at random: each moment seen is near a sample."""
    time = np.concatenate([[0.0], np.cumsum(least_s * 10 ** np.array(powers))])
    us = (1e6 * time).astype(np.int64)
    left, right = cell_borders(us)
    reach = max(900e6, 0.75 * float(np.median(np.diff(us))))
    assert (us - left).max() <= reach + 1 and (right - us).max() <= reach + 1


def test_an_epoch_of_hours_is_no_period_of_a_recorder_of_minutes() -> None:
    """One sample an epoch: 40 epochs of five minutes, and 25 of four hours."""
    time = np.cumsum([0.0, *[300.0] * 40, *[14_400.0] * 25])
    row = measure_sampling(run(gpu=gpu(time))).per_gpu.loc["0"]
    assert row["n_gaps"] == 25 and row["cap_s"] == 1800
    # 12,150 s of the first 41 samples and half a step of five minutes at the end; half an hour of each long step.
    assert row["observed_s"] == pytest.approx(40 * 300 + 300 + 25 * 1800, abs=1)


def test_single_readings_between_long_holes_are_no_period() -> None:
    """Three samples a second apart, then a minute without any: over and over."""
    timestamps = [60 * k + i for k in range(50) for i in range(3)]
    assert measure_sampling(run(gpu=gpu(timestamps))).per_gpu.loc["0", "n_gaps"] == 49


def test_one_timestamp_stands_for_no_time() -> None:
    assert sample_weights(np.array([7])).tolist() == [0.0]


def test_slow_sampler_under_load_does_not_bias_the_mean() -> None:
    # Busy half the time: 10 samples at 1 s while idle, 3 while busy over as long a time.
    timestamps = [*range(10), 10, 13, 16]
    util = [0.0] * 10 + [100.0] * 3
    mean = weighted_mean(util, sample_weights(pd.Series(at(timestamps))))
    assert np.mean(util) == pytest.approx(23.1, abs=0.1)
    assert 35 < mean < 50


def test_cells_sorts_drops_unknown_and_impossible_and_keeps_the_last_of_twins() -> None:
    frame = gpu([4, 0, 2, 2, 6, 8], "1", util_pct=[40, 10, 20, 25, np.nan, 250])
    found = cells_of(frame, "util_pct")
    assert found["util_pct"].tolist() == [10, 25, 40]
    assert found["weight_s"].sum() == pytest.approx(6)


@settings(max_examples=few_of(60))
@given(
    st.lists(st.sampled_from([1_000_000, 1_000_001, 5_000_000]) | st.integers(1, 10_000_000), min_size=1, max_size=50)
)
def test_the_median_of_steps_is_numpys(steps: list[int]) -> None:
    for times in (1, 100):  # so many that one is guessed by a part of them
        assert median_of_steps(np.array(steps * times)) == np.median(steps * times)


@pytest.mark.slow
@settings(max_examples=few_of(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("013"), st.integers(0, 40), st.booleans()), min_size=1, max_size=60))
def test_cells_of_a_column_with_unknown_values_are_those_of_its_known_rows(rows: list[tuple[str, int, bool]]) -> None:
    """Whether the rows of a GPU stand together, in order, or not."""
    for given_rows in (rows, sorted({row[:2]: row for row in rows}.values())):
        names, seconds, known = zip(*given_rows, strict=True)
        values = np.where(known, np.arange(len(known)) % 100.0, np.nan)
        table = pd.concat([gpu([second], name) for name, second in zip(names, seconds, strict=True)], ignore_index=True)
        table = table.assign(util_pct=values, power_w=np.arange(len(values)) + 0.5)
        kept = table[np.array(known)].reset_index(drop=True)
        seen = cells_of(table, "util_pct", "power_w")
        pd.testing.assert_frame_equal(seen, cells_of(kept, "util_pct", "power_w"))
        last = {(n, s): v for n, s, v in zip(kept["gpu"], kept["time"], kept["util_pct"], strict=True)}
        assert dict(zip(zip(seen["gpu"], seen["time"], strict=True), seen["util_pct"], strict=True)) == last
        assert [*zip(seen["gpu"], seen["time"], strict=True)] == sorted(last)


def test_gpus_come_in_the_order_of_their_numbers() -> None:
    assert gpu_order(["10", "2", "0", "card"]) == ["0", "2", "10", "card"]
    frame = pd.concat([gpu([0, 1], name) for name in ("10", "2")])
    assert [name for name, _ in by_gpu(cells_of(frame))] == ["2", "10"]


def test_weighted_quantiles_are_values_that_hold_the_share() -> None:
    assert weighted_quantiles([10, 20, 30], [1, 1, 2], [0, 0.25, 0.26, 0.5, 0.51, 1]) == [10, 10, 20, 20, 30, 30]
    assert np.isnan(weighted_quantiles([], [], [0.5])).all()


@given(st.lists(st.sampled_from([0.0, 3.0, 7.0, 40.0, 2000.0]), min_size=1, max_size=30), st.floats(0.01, 1))
def test_whole_numbers_are_counted_as_fractions_are_sorted(values: list[float], share: float) -> None:
    weights = np.arange(1, len(values) + 1)
    whole, fractions = (weighted_quantiles(np.array(values) + more, weights, [share])[0] for more in (0.0, 0.25))
    assert fractions == whole + 0.25


def test_rows_of_a_gpu_are_a_slice_where_they_stand_together() -> None:
    apart = pd.concat([gpu([0, 1], "10"), gpu([0, 1, 2], "2")], ignore_index=True)
    assert rows_by_gpu(run(gpu=apart)) == {"2": slice(2, 5), "10": slice(0, 2)}
    mixed = rows_by_gpu(run(gpu=apart.iloc[[0, 2, 1, 3, 4]].assign(time=pd.NaT)))
    assert {name: rows.tolist() for name, rows in mixed.items()} == {"2": [1, 3, 4], "10": [0, 2]}
    assert rows_by_gpu(run(gpu=apart.iloc[:0])) == {}


def test_samples_of_a_whole_record_are_cut_into_cells_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many measures ask for them, and for whichever column."""
    made = []
    cut = cells._base
    monkeypatch.setattr(cells, "_base", lambda frame: made.append(len(frame)) or cut(frame))
    columns = {"mem_used_mib": 900.0, "mem_total_mib": 8000.0, "power_w": 90.0, "temp_c": 50.0, "sm_clock_mhz": 900.0}
    table = pd.concat([gpu(range(300), name, util_pct=60.0, **columns) for name in "01"], ignore_index=True)
    diagnose(run(gpu=table))
    assert made == [600]


def test_profile_of_a_log_with_a_gap() -> None:
    table = gpu([*range(0, 50, 5), *range(100, 150, 5)])
    failed = trials([("FAIL", 0, 60), ("COMPLETE", 0, 61), ("FAIL", 0, 99), ("FAIL", 0, 147.5)])
    seen = measure_sampling(run(gpu=table, trials=failed))
    row = seen.per_gpu.loc["0"]
    # From -2.5 to 147.5 s, less the part of the gap of 55 s that 15 s do not cover.
    assert (row["span_s"], row["observed_s"], row["unobserved_s"]) == (150, 110, 40)
    assert (row["median_period_s"], row["cap_s"], row["n_samples"], row["n_gaps"]) == (5, 15, 20, 1)
    assert seen.gaps[["gpu", "gap_s", "trials_ended"]].to_numpy().tolist() == [["0", 55.0, 2]]
    assert seen.gaps["share_pct"].iloc[0] == pytest.approx(100 * 40 / 150)
    # The trials span 0 to 147.5 s, of which 40 s were not seen.
    assert seen.coverage_pct == pytest.approx(100 * 107.5 / 147.5)
    assert seen.outside_pct == pytest.approx(100 * 2.5 / 110)


def test_telemetry_outside_the_trials_is_said() -> None:
    # Case 3: a job of 29.8 s inside 394 s of telemetry.
    seen = measure_sampling(run(gpu=gpu(range(0, 390, 5)), trials=trials([("COMPLETE", 100, 129.8)])))
    assert seen.coverage_pct == pytest.approx(100)
    assert seen.outside_pct == pytest.approx(100 * (1 - 29.8 / 390))
    assert seen.expected_s == pytest.approx(29.8)


def test_clocks_that_do_not_join_leave_the_telemetry_its_own_span() -> None:
    seen = measure_sampling(run(joined=False, gpu=gpu(range(0, 100, 5)), trials=trials([("COMPLETE", 9e5, 9.1e5)])))
    assert seen.coverage_pct == pytest.approx(100)
    assert np.isnan(seen.outside_pct)


def test_a_gpu_that_vanishes_lowers_the_coverage() -> None:
    table = pd.concat([gpu(range(0, 100), "0"), gpu(range(0, 25), "1")])
    seen = measure_sampling(run(gpu=table))
    assert seen.per_gpu["coverage_pct"].tolist() == pytest.approx([100, 25])
    assert seen.coverage_pct == pytest.approx(25)


def test_a_single_sample_cannot_be_measured() -> None:
    with pytest.raises(NotMeasurable, match="only one sample") as caught:
        measure_sampling(run(gpu=gpu([0])))
    assert caught.value.remedy


@pytest.mark.slow
def test_gaps_and_the_ledger_tell_the_same_share_unobserved() -> None:
    """One computation: short gaps, of which the samples at both ends stand for most, are no eighth of the span."""
    steps = np.full(600, 10.0)
    steps[::40] = 38.0  # 15 gaps, each 8 s beyond what the two samples stand for
    log = run(gpu=gpu([0.0, *np.cumsum(steps)], util_pct=80.0))
    seen, found = measure_sampling(log), measure_ledger(log)
    share = 100 * 15 * 8 / (585 * 10 + 15 * 38 + 10)
    assert (seen.n_gaps, seen.gaps["share_pct"].sum()) == (15, pytest.approx(share))
    row, cells = seen.per_gpu.loc["0"], found.totals.set_index("cell")["share_pct"]
    assert 100 * row["unobserved_s"] / row["span_s"] == pytest.approx(share)
    assert cells["unobserved"] == pytest.approx(share)
    assert verdict_of(log, "sampling-gaps").status is Status.OK


def test_a_mean_lies_within_its_values() -> None:
    """Times of samples are no whole seconds: of 1,000 records at 100 % throughout, 313 had less by rounding."""
    rng = np.random.default_rng(3)
    for n in range(5, 205):
        assert weighted_mean(np.full(n, 100.0), rng.uniform(0.009, 0.02, n)) == 100
        assert weighted_mean(np.full(n, 0.1), rng.uniform(0.009, 0.02, n)) == 0.1


def logged_steps(first_s: float, last_s: float) -> pd.DataFrame:
    """Lines every 40 s, of 20 steps each."""
    return steps_of([(float(second), 20 * n) for n, second in enumerate(np.arange(first_s, last_s + 1, 40), 1)])


@pytest.mark.slow
def test_telemetry_of_a_part_of_a_training_covers_that_part_of_its_log() -> None:
    """13 minutes of the 2 hours that the log tells of, in which the GPU worked."""
    part = run(gpu=gpu(np.arange(300.0, 1080, 10), util_pct=95.0), steps=logged_steps(0.0, 7200.0))
    found = measure_sampling(part)
    assert (found.expected_s, found.coverage_pct) == (7200.0, pytest.approx(100 * 780 / 7200))
    assert "covers 10.8 % of 2 h" in verdict_of(part, "sampling-coverage").summary
    assert verdict_of(part, "stalls-periodic").status is Status.NOT_ASSESSED


@pytest.mark.parametrize("shift_s", [-28800.0, -3600.0, 3600.0, 28800.0])
def test_a_log_on_another_clock_says_nothing_of_the_coverage(shift_s: float) -> None:
    """Shifted by whole hours the log lies elsewhere, or leaves a third of the work outside."""
    whole = gpu(np.arange(0.0, 10800, 10), util_pct=95.0)
    found = measure_sampling(run(gpu=whole, steps=logged_steps(shift_s, shift_s + 10800.0)))
    assert (found.expected_s, found.coverage_pct) == (10800.0, pytest.approx(100))


def test_a_log_of_a_gpu_that_did_not_work_says_nothing_of_the_coverage() -> None:
    idle = gpu(np.arange(300.0, 1080, 10), util_pct=0.0)
    assert measure_sampling(run(gpu=idle, steps=logged_steps(0.0, 7200.0))).expected_s == 780.0


@pytest.mark.slow
def test_pauses_of_a_log_beyond_the_record_are_told_as_such() -> None:
    """Three pauses of 200 s; the record holds none, then the first with half of the second."""
    rows, second = [], 0.0
    for n in range(1, 121):
        second += 40.0 + (200.0 if n in (31, 61, 91) else 0.0)
        rows.append((second, 20 * n))
    for until_s, recorded_s, words in ((1200.0, 0.0, "covers none of the"), (2730.0, 300.0, "The GPU's record covers")):
        timestamps = np.arange(10.0, until_s - 5, 10)
        paused = (timestamps > 1240) & (timestamps < 1440)
        part = run(gpu=gpu(timestamps, util_pct=np.where(paused, 0.0, 95.0)), steps=steps_of(rows))
        found = measure_steps(part)
        assert found.n_pauses == 3 and found.pauses_s == pytest.approx(600)
        assert found.recorded_pauses_s == pytest.approx(recorded_s, abs=25)
        assert words in verdict_of(part, "steps-paused").summary


@given(st.lists(st.integers(1, 40), max_size=4))
def test_runs_of_equal_labels_begin_where_the_label_changes(lengths: list[int]) -> None:
    labels = pd.Series([str(place) for place, length in enumerate(lengths) for _ in range(length)], dtype="string")
    assert gpu_rows._edges(labels) == ([0, *np.cumsum(lengths).tolist()] if lengths else [])
