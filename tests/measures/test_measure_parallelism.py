from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from drawn import few_of
from hypothesis import given, settings
from hypothesis import strategies as st
from smallruns import gpu, run, trials

from gpudiag.comparison.compare import compare
from gpudiag.diagnosis import diagnose
from gpudiag.errors import NotMeasurable
from gpudiag.measures._time.concurrency import assign_workers, busy_stretches, count_at
from gpudiag.measures.parallelism import effective_parallelism, measure_parallelism
from gpudiag.run import Run

NAN = math.nan
INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25)), min_size=1, max_size=25)


def minutes(text: str) -> float:
    """Seconds after 19:00:00."""
    hours, mins, secs = (int(part) for part in text.split(":"))
    return (hours - 19) * 3600 + mins * 60 + secs


CASE_1 = [
    ("RUNNING", "19:40:07", None), ("RUNNING", "19:40:07", None), ("PRUNED", "19:40:07", "20:13:51"),
    ("COMPLETE", "19:44:29", "19:53:40"), ("PRUNED", "19:53:40", "19:56:08"), ("COMPLETE", "19:44:29", "19:53:40"),
    ("COMPLETE", "19:56:09", "20:05:22"),
]  # fmt: skip


def case_1(**settings: object) -> Run:
    rows = [(state, minutes(start), minutes(end) if end else NAN) for state, start, end in CASE_1]
    return run(trials=trials(rows), settings=settings)


def test_case_1_effective_parallelism_and_peak() -> None:
    p = measure_parallelism(case_1(parallel=4))
    assert p.effective_closed == pytest.approx(1.89, abs=0.005)
    assert p.effective_low == pytest.approx(1.89, abs=0.005)
    assert p.effective_high == pytest.approx(3.89, abs=0.005)
    # Two trials start at 19:44:29 while three of four run: one of the open ones was gone by then, the other may go on.
    dead_s = minutes("19:44:29") - minutes("19:40:07")
    assert p.effective == pytest.approx(p.effective_closed + 1 + dead_s / 2024, abs=0.005)
    assert (p.peak, p.peak_closed, p.n_workers) == (4, 3, 4)
    assert (p.above_configured_trials, p.above_configured_s, p.handover_pct) == (0, 0, 100)
    assert p.open_trials["abandoned"].tolist() == [True, False]
    assert p.at_configured_pct == pytest.approx(100 * 551 / 2024)


def test_case_1_without_a_stated_number() -> None:
    p = measure_parallelism(case_1())
    # As far as ended trials show, three ran at once; then both open ones were gone when two more began.
    dead_s = minutes("19:44:29") - minutes("19:40:07")
    assert (p.peak, p.effective) == (3, pytest.approx(p.effective_closed + 2 * dead_s / 2024, abs=0.005))
    assert p.effective_high == pytest.approx(3.89, abs=0.005)
    assert all(math.isnan(x) for x in (p.configured, p.efficiency_pct, p.at_configured_pct, p.above_configured_s))
    assert not p.open_trials["abandoned"].any()


@given(INTERVALS)
def test_concurrency_is_that_of_a_one_second_grid(pairs: list[tuple[int, int]]) -> None:
    start = np.array([s for s, _ in pairs])
    end = start + np.array([d for _, d in pairs])
    grid = np.arange(0, 90)
    counted = [(sum(s <= t < e for s, e in zip(start, end, strict=True))) for t in grid]
    assert count_at(grid, start, end).tolist() == counted
    busy = sum(c > 0 for c in counted)
    if busy:
        assert effective_parallelism(start, end) == pytest.approx(sum(counted) / busy)
    left, right = busy_stretches(start, end)
    assert (right - left).sum() == busy and (left[1:] > right[:-1]).all()


@given(INTERVALS)
def test_workers_hold_one_trial_at_a_time_and_are_as_many_as_the_peak(pairs: list[tuple[int, int]]) -> None:
    """But for hand-overs: what overlaps by a tenth of both at most may be one after the other."""
    pairs = sorted((s, s + d) for s, d in pairs if d)
    if not pairs:
        return
    start, end = (np.array(x) for x in zip(*pairs, strict=True))
    length = end - start
    worker = assign_workers(start, end)
    at = np.unique(start)
    least = count_at(at, start, np.ceil(end - length / 10).astype(np.int64)).max()
    assert least <= worker.max() + 1 <= count_at(at, start, end).max()
    for number in np.unique(worker):
        mine = worker == number
        within = np.minimum(length[mine][:-1], length[mine][1:]) / 10
        assert (end[mine][:-1] - start[mine][1:] <= within).all()


@pytest.mark.parametrize(("overlap_s", "n_workers"), [(0.7, 1), (9.5, 1), (9.6, 2), (12.0, 2)])
def test_one_worker_whose_trials_overlap_by_a_moment_is_one(overlap_s: float, n_workers: int) -> None:
    """Only once: a second worker would have waited for all of the rest."""
    rows = [("COMPLETE", 100.0 * i, 100.0 * i + (100.0 + overlap_s if i == 3 else 95.0)) for i in range(20)]
    p = measure_parallelism(run(trials=trials(rows)))
    assert p.n_workers == n_workers
    if n_workers == 1:
        assert p.gap_worker_h == pytest.approx(18 * 5.0 / 3600) and p.median_gap_s == pytest.approx(5.0)


def test_short_trials_that_begin_together_have_a_worker_each() -> None:
    """They end soon after the next begins, but have hardly begun themselves."""
    start = np.arange(4) * 100_000
    assert assign_workers(start, start + 1_000_000).tolist() == [0, 1, 2, 3]


def test_the_longest_free_worker_is_taken() -> None:
    # Workers are freed at 10 (worker 0) and 5 (worker 1): the next trial takes worker 1.
    assert assign_workers(np.array([0, 0, 12]), np.array([10, 5, 20])).tolist() == [0, 1, 1]


def test_hand_over_is_no_overlap_and_zero_length_takes_no_time() -> None:
    p = measure_parallelism(run(trials=trials([("COMPLETE", 0, 10), ("COMPLETE", 10, 20), ("FAIL", 5, 5)])))
    assert (p.peak, p.n_workers, p.effective, p.n_timed) == (1, 1, 1.0, 3)


def test_gaps_lie_between_trials_of_a_worker() -> None:
    rows = [("COMPLETE", 0, 10), ("COMPLETE", 0, 12), ("COMPLETE", 40, 50), ("COMPLETE", 41, 55)]
    p = measure_parallelism(run(trials=trials(rows)))
    assert p.gaps[["worker", "gap_s", "before_trial", "after_trial"]].to_numpy().tolist() == [
        [0, 30, 0, 2],
        [1, 29, 1, 3],
    ]
    assert (p.median_gap_s, p.mean_gap_s, p.handover_pct) == (29.5, 29.5, 0)
    assert p.gap_worker_h == pytest.approx(59 / 3600)
    # 47 trial-seconds in 27 busy seconds, in a window of 55 s.
    assert p.busy_s == 12 + 15 and p.window_s == 55
    assert p.effective == pytest.approx(46 / 27) and p.effective_window == pytest.approx(46 / 55)


def test_time_at_each_level() -> None:
    p = measure_parallelism(run(trials=trials([("COMPLETE", 0, 10), ("COMPLETE", 4, 8)]), settings={"parallel": 2}))
    assert p.levels[["level", "time_s", "share_pct"]].to_numpy().tolist() == [[1, 6, 60], [2, 4, 40]]
    assert (p.at_configured_pct, p.efficiency_pct, p.above_configured_s) == (40, pytest.approx(70), 0)
    assert not p.serialised


def test_one_after_another_with_two_workers_is_serialised() -> None:
    p = measure_parallelism(run(trials=trials([("COMPLETE", 0, 10), ("COMPLETE", 11, 20)]), settings={"parallel": 2}))
    assert p.serialised and p.handover_pct == 100


def test_a_reused_worker_ends_an_open_trial() -> None:
    table = trials([("RUNNING", 0, NAN), ("COMPLETE", 50, 100)], worker=["a", "a"])
    opens = measure_parallelism(run(trials=table)).open_trials
    assert opens["abandoned"].tolist() == [True] and opens["reason"].tolist() == ["reused"]
    assert (opens["horizon"] - opens["start"]).dt.total_seconds().tolist() == [50]


def test_a_worker_that_runs_several_trials_proves_nothing() -> None:
    table = trials([("RUNNING", 0, NAN), ("COMPLETE", 50, 100), ("COMPLETE", 60, 90)], worker=["host"] * 3)
    assert not measure_parallelism(run(trials=table)).open_trials["abandoned"].any()


def test_optunas_rule_of_five_durations() -> None:
    table = trials([("RUNNING", 0, NAN), ("COMPLETE", 0, 10), ("COMPLETE", 90, 100)])
    opens = measure_parallelism(run(trials=table)).open_trials
    assert opens["abandoned"].tolist() == [True]
    assert (opens["horizon"] - opens["start"]).dt.total_seconds().tolist() == [50]


@pytest.mark.slow
def test_five_durations_are_those_of_its_own_study() -> None:
    slow = trials([("COMPLETE", 0, 1000)], study="slow")
    fast = trials([("COMPLETE", 0, 10), ("RUNNING", 10, NAN)], study="fast")
    opens = measure_parallelism(run(trials=pd.concat([slow, fast], ignore_index=True))).open_trials
    assert opens["name"].tolist() == ["fast/1"] and opens["abandoned"].all()
    assert (opens["horizon"] - opens["start"]).dt.total_seconds().tolist() == [50]
    unknown = trials([("RUNNING", 10, NAN)], study="other")
    assert not measure_parallelism(run(trials=pd.concat([slow, unknown]))).open_trials["abandoned"].any()


@pytest.mark.slow
def test_gpus_idle_for_good_end_an_open_trial() -> None:
    log = gpu(range(0, 2000, 5), util_pct=np.where(np.arange(0, 2000, 5) < 300, 90.0, 0.0))
    table = trials([("RUNNING", 0, NAN), ("COMPLETE", 0, 1000)])
    opens = measure_parallelism(run(gpu=log, trials=table)).open_trials
    assert (opens["horizon"] - opens["start"]).dt.total_seconds().tolist() == [295] and opens["abandoned"].all()
    unjoined = measure_parallelism(run(gpu=log, trials=table, joined=False)).open_trials
    assert (unjoined["horizon"] - unjoined["start"]).dt.total_seconds().tolist() == [1000]


def test_a_process_that_left_the_gpu_ends_an_open_trial() -> None:
    seen = pd.DataFrame({"time": gpu([10, 20, 30, 300])["time"], "gpu": "0", "pid": pd.array([7, 7, 8, 8], "Int64")})
    table = trials([("RUNNING", 0, NAN), ("RUNNING", 0, NAN), ("COMPLETE", 0, 400)], pid=[7, 8, 9])
    opens = measure_parallelism(run(trials=table, processes=seen)).open_trials
    assert opens["abandoned"].tolist() == [True, False]
    assert (opens["horizon"] - opens["start"]).dt.total_seconds().tolist() == [20, 400]


@pytest.mark.slow
@settings(max_examples=few_of(30))
@given(INTERVALS, INTERVALS)
def test_the_bounds_hold_wherever_open_trials_end(pairs: list[tuple[int, int]], opened: list[tuple[int, int]]) -> None:
    rows = [("COMPLETE", s, s + d + 1) for s, d in pairs] + [("RUNNING", s, NAN) for s, _ in opened[:3]]
    p = measure_parallelism(run(trials=trials(rows)))
    start = np.array([s for _, s, _ in rows], float)
    first, last = ((p.open_trials[name] - p.open_trials["start"]).dt.total_seconds() for name in ("start", "horizon"))
    for share in (0.0, 0.3, 1.0):
        end = np.array([e for _, _, e in rows if not math.isnan(e)])
        end = np.concatenate([end, start[len(pairs) :] + (share * (last - first)).to_numpy()])
        assert p.effective_low - 0.05 <= effective_parallelism(start, end) <= p.effective_high + 0.05


def test_one_that_runs_on_alone_lowers_the_mean() -> None:
    """Three at once for 100 s, then a RUNNING one alone for up to 300 s more: 3 x 100 s in 100 s, or 700 s in 400 s."""
    rows = [("COMPLETE", 0, 100)] * 3 + [("RUNNING", 100, NAN), ("FAIL", 0, NAN)]
    p = measure_parallelism(run(trials=trials(rows), gpu=gpu(np.arange(0, 401.0, 5), util_pct=50.0)))
    assert p.effective_low < p.effective <= p.effective_high


def test_reports_with_times_are_signs_of_life() -> None:
    table = trials([("RUNNING", 0, NAN), ("COMPLETE", 0, 100)])
    told = pd.DataFrame(
        {"study": ["s", "s"], "trial": [0, 0], "step": [1, 2], "value": 1.0, "time": gpu([5, 60])["time"]}
    )
    p = measure_parallelism(run(trials=table, reports=told))
    assert (p.effective_low, p.effective_high) == (pytest.approx(1.6), pytest.approx(2.0))


def test_what_cannot_be_measured() -> None:
    with pytest.raises(NotMeasurable, match="both a start and an end"):
        measure_parallelism(run(trials=trials([("COMPLETE", NAN, 10), ("RUNNING", 0, NAN), ("WAITING", NAN, NAN)])))
    with pytest.raises(NotMeasurable, match="no trials table"):
        measure_parallelism(Run())


def test_trials_without_times_lower_the_coverage() -> None:
    table = trials([("COMPLETE", 0, 10), ("COMPLETE", NAN, NAN), ("WAITING", NAN, NAN), ("RUNNING", 5, NAN)])
    assert measure_parallelism(run(trials=table)).coverage_pct == pytest.approx(100 * 2 / 3)


@pytest.mark.slow
def test_what_is_waiting_has_not_run_whatever_timestamps_it_has() -> None:
    rows = [("WAITING", 0.0, 60.0), ("WAITING", 60.0, 90.0)]
    with pytest.raises(NotMeasurable, match="No trial has both a start and an end"):
        measure_parallelism(run(trials=trials(rows)))
    found = measure_parallelism(run(trials=trials([*rows, ("COMPLETE", 10.0, 40.0)])))
    assert (found.n_timed, found.peak, found.coverage_pct) == (1, 1, 100)
    telemetry = gpu(np.arange(0.0, 90.0, 5), util_pct=50.0)
    told = diagnose(run(trials=trials(rows), gpu=telemetry))
    assert "No trial has both a start and an end" in told.to_markdown()
    assert "INVALID" in compare(told, told).to_markdown()


@pytest.mark.parametrize(("overlap_s", "n_workers"), [(299.0, 1), (301.0, 2)])
def test_what_overlaps_by_more_than_five_minutes_ran_beside_the_other(overlap_s: float, n_workers: int) -> None:
    rows = [("COMPLETE", 0.0, 36_000.0), ("COMPLETE", 36_000.0 - overlap_s, 72_000.0)]
    assert measure_parallelism(run(trials=trials(rows))).n_workers == n_workers
