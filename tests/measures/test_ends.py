"""Trials that were killed end where memory was freed or another took their place, and nowhere else."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from smallruns import gpu, run, trials

from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures._trials.memory_falls import unexplained_falls
from gpudiag.measures.parallelism import measure_parallelism

NAN = math.nan
Row = tuple[str, float, float]


def chain(n: int, length: float = 100.0, first: float = 0.0) -> list[Row]:
    """Trials of one worker, a second apart."""
    return [("COMPLETE", first + i * (length + 1), first + i * (length + 1) + length) for i in range(n)]


def ends(rows: list[Row], **given: object) -> list[tuple[float, str, bool]]:
    """Seconds after 0, reason and abandoned of the open ones."""
    table = trials(rows)
    found = find_open_trials(run(trials=table, **given))
    start = [row[1] for row in rows if math.isnan(row[2])]
    lived = (found["end"] - found["start"]).dt.total_seconds()
    return list(zip((lived + start).tolist(), found["reason"], found["abandoned"], strict=True))


def test_the_next_start_takes_the_place_of_a_killed_trial() -> None:
    rows = [*chain(4), ("RUNNING", 404, NAN), *chain(6, first=450)]
    assert ends(rows) == [(450, "beyond", True)]


def test_the_oldest_dies_first_and_one_that_may_run_is_left() -> None:
    one, other = chain(12), [("RUNNING", 303.0, NAN), *chain(6, first=380), ("RUNNING", 990.0, NAN)]
    other += chain(2, first=1030)
    assert [end for end, _, _ in ends([*one, *other])] == [380, 1030]


def test_new_workers_end_no_trial() -> None:
    """Two ran at once; then two more workers came, and all four run on."""
    rows = [*chain(5), *chain(5)] + [("RUNNING", 510.0 + i, NAN) for i in range(4)]
    assert [(reason, dead) for _, reason, dead in ends(rows)] == [("end", False)] * 4


def test_all_that_began_at_first_ran_at_once() -> None:
    """Four start together and one hangs: three others go on, which is no sign that it was replaced."""
    rows = [("RUNNING", 0.0, NAN)] + [row for i in range(3) for row in chain(4, first=5.0 + i)]
    assert [(reason, dead) for _, reason, dead in ends(rows)] == [("end", False)]


def test_few_later_trials_prove_no_death() -> None:
    (found,) = ends([*chain(2), ("RUNNING", 202.0, NAN), *chain(2, first=250)])
    assert found == (250, "end", False)


def test_one_after_the_last_end_proves_none() -> None:
    found = ends([*chain(6), ("RUNNING", 606.0, NAN), ("RUNNING", 650.0, NAN), ("RUNNING", 700.0, NAN)])
    assert not any(dead for _, _, dead in found)


def test_a_stated_number_of_workers_proves_it() -> None:
    rows = [*chain(2), ("RUNNING", 202.0, NAN), *chain(1, first=250)]
    assert ends(rows, settings={"parallel": 1}) == [(250, "crowded", True)]
    assert ends(rows, settings={"parallel": 2})[0][1] == "end"


def memory(rows: list[Row], died: dict[int, float], period: float = 2.0, until: float = 2000.0) -> np.ndarray:
    """MiB every ``period`` s: 500, and 3,000 for each trial from 10 s after its start to its end."""
    at = np.arange(0.0, until, period)
    used = np.full(len(at), 500.0)
    for i, (_, start, end) in enumerate(rows):
        used += 3000 * ((at >= start + 10) & (at < (died.get(i, end))))
    return used


def test_freed_memory_ends_a_trial_whose_worker_stays_away() -> None:
    rows = [*chain(12), *chain(3), ("RUNNING", 303.0, NAN)]
    log = gpu(np.arange(0.0, 2000.0, 2), util_pct=80.0, mem_used_mib=memory(rows, {15: 341.0}))
    ((end, reason, dead),) = ends(rows, gpu=log)
    assert end == pytest.approx(341, abs=2) and (reason, dead) == ("freed", True)


def test_memory_that_falls_often_says_nothing() -> None:
    """A trial that frees its memory between folds: so do the others, and no fall is a sign."""
    rows = [*chain(12), ("RUNNING", 0.0, NAN)]
    used = memory(rows, {12: 2000.0})
    used[(np.arange(len(used)) % 25) < 3] = 500.0
    log = gpu(np.arange(0.0, 2000.0, 2), util_pct=80.0, mem_used_mib=used)
    assert ends(rows, gpu=log)[0][1] != "freed"


def test_falls_without_an_end() -> None:
    time_us = np.arange(0, 2000, 5) * 1_000_000
    end_us = np.arange(100, 1001, 150) * 1_000_000
    used = np.full(len(time_us), 1000.0)
    for end in [*(end_us / 1e6), 480.0]:  # a ramp to 4,000 MiB that ends 5 s after it
        used[(time_us / 1e6 > end - 40) & (time_us / 1e6 <= end)] = 4000.0
    assert (unexplained_falls(time_us, used, end_us, most=3) / 1e6).tolist() == [482.5]
    assert len(unexplained_falls(time_us, used, end_us, most=0)) == 0
    assert len(unexplained_falls(time_us, used, end_us[:4], most=3)) == 0
    flat = np.where(time_us / 1e6 == 480, 4000.0, 1000.0)
    assert len(unexplained_falls(time_us, flat, end_us, most=3)) == 0


def test_a_place_that_is_taken_long_after_was_left_long_before() -> None:
    """Nothing ran for six minutes; no trial ever took more than 100 s."""
    ((end, reason, dead),) = ends([*chain(6), ("RUNNING", 606.0, NAN), *chain(8, first=1000)])
    assert (end, reason, dead) == (656, "beyond", True)


def test_a_stated_number_is_that_of_all_gpus() -> None:
    """Two workers on each of two GPUs, of which one trial is killed; 4 is what is stated."""
    by_gpu = {"0": [*chain(8), *chain(3), ("RUNNING", 303.0, NAN), *chain(4, first=380)], "1": [*chain(8), *chain(8)]}
    rows = [row for part in by_gpu.values() for row in part]
    table = trials(rows, gpu=[gpu for gpu, part in by_gpu.items() for _ in part])
    log = pd.concat([gpu(np.arange(0.0, 900.0, 5), name, util_pct=80.0) for name in by_gpu])
    p = measure_parallelism(run(trials=table, gpu=log, settings={"parallel": 4}))
    assert (p.peak, p.open_trials["reason"].tolist()) == (4, ["beyond"])


def test_the_end_of_a_record_is_no_sign() -> None:
    """GPU 0 works up to its last sample; GPU 1 is idle, and recorded for a quarter of an hour more."""
    log = pd.concat(
        [gpu(np.arange(0.0, end, 5), name, util_pct=u) for name, end, u in (("0", 1600, 90), ("1", 2500, 0))]
    )
    table = trials([*chain(3, length=400), ("RUNNING", 1203.0, NAN)])
    assert not find_open_trials(run(trials=table, gpu=log))["abandoned"].any()


def test_an_earlier_study_ends_before_the_next() -> None:
    first = trials([*chain(3), ("RUNNING", 303.0, NAN)], study="a")
    second = trials(chain(3, first=100_000), study="b")
    p = measure_parallelism(run(trials=pd.concat([first, second], ignore_index=True)))
    lived = (p.open_trials["end"] - p.open_trials["start"]).dt.total_seconds().tolist()
    assert lived == [50.0]  # half of what the others lived


def test_a_trial_alone_on_an_active_gpu_lives() -> None:
    rows = [*chain(3), ("RUNNING", 303.0, NAN)]
    at = np.arange(0.0, 3000.0, 5)
    log = gpu(at, util_pct=np.where(at < 700, 80.0, 0.0))
    (found,) = ends(rows, gpu=log)
    assert found == (695, "idle", True)


@pytest.mark.parametrize("parallel", [None, 3])
def test_bounds_hold_the_estimate(parallel: int | None) -> None:
    rows = [*chain(6), *chain(6), ("RUNNING", 150.0, NAN), ("RUNNING", 330.0, NAN)]
    settings = {"parallel": parallel} if parallel else {}
    p = measure_parallelism(run(trials=trials(rows), settings=settings))
    opens = p.open_trials
    assert (opens["last_evidence"] <= opens["end"]).all() and (opens["end"] <= opens["horizon"]).all()
    assert p.effective_low <= p.effective <= p.effective_high
