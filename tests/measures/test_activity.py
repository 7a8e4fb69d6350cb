"""What counts as work: more than 10 %, or half the usual level of a GPU that works below that."""

from __future__ import annotations

import numpy as np
import pytest
from smallruns import gpu, run, trials

from gpudiag.measures._time.activity import work_level_of_lives_pct, work_level_pct
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import measure_ledger


def test_a_gpu_that_works_is_at_work_above_10_pct() -> None:
    util = np.array([0.0, 5.0, 10.0, 11.0, 60.0, 90.0])
    assert (util > work_level_pct(util)).tolist() == [False, False, False, True, True, True]


def test_one_that_hardly_ever_comes_above_10_pct_works_above_half_its_usual_level() -> None:
    util = np.array([0.0, 1.0, 1.0, 2.9, 3.1, 5.0, 6.0, 6.0, 7.0, 8.0, 11.0])  # the median of those above 1 is 6
    assert (util > work_level_pct(util)).tolist() == [False] * 3 + [False] + [True] * 7
    assert work_level_pct(np.array([0.0, 1.0, 1.0])) == 10, "never used"
    assert work_level_pct(np.zeros(0)) == 10


def test_what_most_of_the_trials_time_shows_is_work() -> None:
    low, high = [0.0, 6.0, 7.0, 8.0], [0.0, 50.0, 60.0, 70.0]
    first, last = np.arange(0, 20, 4), np.arange(4, 24, 4)
    few, most = np.array(2 * high + 3 * low), np.array(3 * high + 2 * low)
    assert work_level_of_lives_pct(few, first, last) == 3.5 and work_level_of_lives_pct(most, first, last) == 10
    assert work_level_of_lives_pct(few, first[:0], last[:0]) == work_level_pct(few) == 10, "nothing known of trials"


@pytest.mark.parametrize("background", [0.0, 3.0, 6.0])
def test_a_desktop_s_background_is_no_work(background: float) -> None:
    """Trials of 100 s with 80 s of start-up, then 90 %; seven hours of quiet after them."""
    seconds = np.arange(0, 3000 + 25_000, 2)
    busy = (seconds < 3000) & (seconds % 100 >= 80)
    log = gpu(seconds, util_pct=np.where(busy, 90.0, background + seconds % 3 * (background > 0)))
    given = run(gpu=log, trials=trials([("COMPLETE", 100 * i, 100 * i + 99) for i in range(30)]))
    assert measure_costs(given).startup_median_s == pytest.approx(80, abs=2)


@pytest.mark.parametrize("level", [4.0, 6.0, 9.0])
def test_start_up_ends_where_such_a_trial_begins_to_work(level: float) -> None:
    """Trials of 100 s one after another: 20 s of start-up, then a steady level below 10 %."""
    seconds = np.arange(0, 1000)
    log = gpu(seconds, util_pct=np.where(seconds % 100 < 20, seconds % 2, level))
    given = run(gpu=log, trials=trials([("COMPLETE", 100 * i, 100 * i + 99.5) for i in range(10)]))
    assert measure_costs(given).startup_median_s == pytest.approx(20, abs=1)
    share = measure_ledger(given).totals.set_index("cell")["share_pct"]
    assert share["startup_only"] == pytest.approx(20, abs=1) and share["stalled"] == pytest.approx(79.5, abs=1)


def test_a_load_of_others_for_part_of_the_time_hides_no_trials_below_10_pct() -> None:
    seconds = np.arange(0, 1000)
    level = np.where(seconds % 100 < 20, 0.0, 6.0) + np.where(seconds < 250, 60.0, 0.0)
    given = run(
        gpu=gpu(seconds, util_pct=level), trials=trials([("COMPLETE", 100 * i, 100 * i + 99.5) for i in range(10)])
    )
    share = measure_ledger(given).totals.set_index("cell")["share_pct"]
    assert share["startup_only"] == pytest.approx(14, abs=1) and share["stalled"] == pytest.approx(60.6, abs=1)
