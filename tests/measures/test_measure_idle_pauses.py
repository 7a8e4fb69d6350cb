"""Pauses between the work of a GPU: what they are, what they cost, and that no second is counted twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from smallruns import T0, at, gpu, run, trials

from gpudiag.measures.idleness import measure_idleness
from gpudiag.measures.ledger import measure_ledger
from gpudiag.measures.shift import measure_shift
from gpudiag.measures.stalls import measure_stalls
from gpudiag.measures.utilization import measure_utilization

TOTAL_MIB = 80_000.0


def course(*parts: tuple[float, float, float], name: str = "0", step_s: float = 5.0) -> pd.DataFrame:
    """A GPU that is at a utilization, with so much memory in use, for so many seconds each."""
    util = np.concatenate([np.full(round(seconds / step_s), level) for level, _, seconds in parts])
    used = np.concatenate([np.full(round(seconds / step_s), mib) for _, mib, seconds in parts])
    return gpu(np.arange(len(util)) * step_s, name, util_pct=util, mem_used_mib=used, mem_total_mib=TOTAL_MIB)


def row(*tables: pd.DataFrame, name: str = "0", **more: Any) -> pd.Series:
    return measure_idleness(run(gpu=pd.concat(tables), **more)).per_gpu.loc[name]


@pytest.mark.parametrize(
    ("meanwhile", "after", "kept_s", "freed_s"),
    [
        (60_000.0, 60_000.0, 1200, 0),
        (59_000.0, 63_000.0, 1200, 0),
        (4.0, 60_000.0, 0, 1200),
        (20_000.0, 60_000.0, 0, 0),
    ],
)
def test_a_pause_with_the_memory_of_the_work(meanwhile: float, after: float, kept_s: float, freed_s: float) -> None:
    found = row(course((95, 60_000, 3600), (0, meanwhile, 1200), (95, after, 3600)))
    assert (found["between_s"], found["n_between"], found["longest_between_s"]) == (1200, 1, 1200)
    assert found["between_pct"] == pytest.approx(100 * 1200 / 8400, abs=0.1)
    assert (found["between_kept_s"], found["between_freed_s"]) == (kept_s, freed_s)
    assert found["between_mib"] == meanwhile and found["between_beside_s"] == 0
    assert abs(found["longest_between_start"] - T0 - pd.Timedelta(hours=1)) <= pd.Timedelta(seconds=5)
    assert found["allocated_idle_s"] == 0, "counted with the pause"


def test_memory_freed_in_every_pause_is_freed_in_all_of_their_time() -> None:
    """At steps that no float holds, so that sums of seconds in another order would differ."""
    parts = [part for _ in range(7) for part in ((95, 60_000, 900), (0, 4, 900))]
    found = row(course(*parts, (95, 60_000, 900), step_s=5.0137))
    assert found["between_freed_s"] == found["between_s"] == pytest.approx(7 * 900, abs=40)


def test_one_gpu_beside_others_that_work() -> None:
    """GPU 1 rests for two stretches, GPU 0 works through one and a half of them and then stops."""
    rests = course((95, 4, 900), (0, 4, 1000), (95, 4, 900), (0, 4, 1000), (95, 4, 900), name="1")
    found = measure_idleness(run(gpu=pd.concat([course((95, 4, 3300), (0, 4, 1400)), rests]))).per_gpu
    assert (found.at["1", "n_between"], found.at["1", "between_s"]) == (2, 2000)
    assert found.at["1", "between_beside_s"] == pytest.approx(1500, abs=5)
    assert found.at["0", "n_between"] == 0 and found.at["0", "trail_s"] == pytest.approx(1400, abs=5)
    assert found.at["0", "trail_beside_s"] == pytest.approx(900, abs=5), "after its work GPU 1 works again"


def test_a_wait_a_hole_and_few_samples_are_no_pause() -> None:
    assert row(course((95, 4, 900), (0, 4, 600), (95, 4, 900)))["between_s"] == 0
    assert row(course((95, 4, 900), (0, 4, 605), (95, 4, 900)))["between_s"] == 605
    table = course((95, 4, 900), (0, 4, 1190), (95, 4, 900))
    hidden = (table["time"] >= at(1490)) & (table["time"] < at(1590))
    assert row(table[~hidden])["between_s"] == 0, "two stretches of less than ten minutes"
    sparse = [course((95, 4, 9000), (0, 4, n * 300), (95, 4, 9000), step_s=300) for n in (9, 10)]
    assert [row(one)["between_s"] for one in sparse] == [0, 3000]


def one_in_three_at_work(seed: int, step_s: float) -> pd.DataFrame:
    """A GPU that works a third of each minute, sampled at moments that know nothing of it, with its memory held."""
    busy = np.random.default_rng(seed).random(400) < 1 / 3
    return gpu(
        np.arange(400) * step_s, util_pct=np.where(busy, 95.0, 0.0), mem_used_mib=60_000.0, mem_total_mib=TOTAL_MIB
    )


@pytest.mark.parametrize("step_s", [300.0, 1500.0])
@pytest.mark.slow
def test_samples_that_are_idle_in_a_row_by_chance_are_no_pause(step_s: float) -> None:
    """Ten of them follow each other in most of these records, and stand for an hour or four."""
    rows = [row(one_in_three_at_work(seed, step_s)) for seed in range(20)]
    assert sum(one["between_s"] > 0 for one in rows) <= 2, "1 in 20 by chance"
    assert sum(one["allocated_idle_s"] > 0 for one in rows) <= 2
    table = one_in_three_at_work(7, step_s)
    table.loc[150:189, "util_pct"] = 0.0
    assert row(table)["between_s"] >= 40 * step_s, "forty in a row are no chance"
    table.loc[150:189, "util_pct"] = 8.0  # below work, and no stretch at 0 %
    table.loc[300:339, "util_pct"] = 0.0
    assert row(table)["n_between"] == 2, "one pause hides no other"


def test_no_second_of_an_idle_gpu_is_counted_twice() -> None:
    """Idle ends, waits and pauses of a GPU without trials are its idle time in the ledger."""
    rng = np.random.default_rng(7)
    parts = []
    for n in range(60):
        parts += [(0, 4, 5.0 * rng.integers(1, 400) if n % 3 else 5.0 * rng.integers(1, 30)), (95, 60_000, 900)]
    table = run(gpu=course(*parts, (0, 2000, 2000)))
    idle, stalls = measure_idleness(table).per_gpu.loc["0"], measure_stalls(table).per_gpu.loc["0"]
    ledger, use = measure_ledger(table).per_gpu.loc["0"], measure_utilization(table).per_gpu.loc["0"]
    assert min(idle["lead_s"], idle["trail_s"], idle["between_s"], stalls["stalled_s"]) > 0
    within_s = idle["between_s"] + stalls["stalled_s"]
    assert idle["lead_s"] + within_s + idle["trail_s"] == pytest.approx(ledger["idle_s"])
    assert use["active_idle_gpu_h"] == pytest.approx(stalls["stalled_s"] / 3600), "pauses are none of it"


def test_pauses_are_no_part_of_the_work_that_waits_are_a_share_of() -> None:
    waits = [part for n in range(10) for part in ((95, 4, 300 + 60 * (n % 3)), (0, 4, 100))]
    table = run(gpu=course(*waits, (95, 4, 300), (0, 4, 36_000), *waits, (95, 4, 300)))
    stalls, use = measure_stalls(table).per_gpu.loc["0"], measure_utilization(table).per_gpu.loc["0"]
    worked_s = 2 * sum(seconds for _, _, seconds in waits) + 600
    assert stalls["work_s"] == use["active_s"] == pytest.approx(worked_s)
    assert stalls["stalled_pct"] == pytest.approx(100 * 2000 / worked_s)


def test_samples_far_apart_show_no_pause_and_no_wait() -> None:
    """Ten minutes from sample to sample: three idle ones in a row may be either, single ones count as waits."""
    parts = [part for _ in range(20) for part in ((95, 4, 3600), (0, 4, 1800), (95, 4, 3600), (0, 4, 600))]
    table = run(gpu=course(*parts, (95, 4, 3600), step_s=600))
    stalls, use = measure_stalls(table).per_gpu.loc["0"], measure_utilization(table).per_gpu.loc["0"]
    assert measure_idleness(table).per_gpu.at["0", "between_s"] == 0
    assert 3600 * use["active_idle_gpu_h"] == stalls["stalled_s"] == 20 * 600
    assert use["active_s"] == stalls["work_s"] == 20 * (3600 + 3600 + 600) + 3600


def test_a_fall_for_good_is_told_from_the_work_before_it_alone() -> None:
    """95 % for an hour, a pause of an hour, 95 % for an hour, then 60 % for good."""
    found = measure_shift(run(gpu=course((95, 4, 3600), (0, 4, 3600), (95, 4, 3600), (60, 4, 3600)))).per_gpu.loc["0"]
    assert found["fall_pct"] == pytest.approx(35, abs=1)


def test_where_trials_tell_when_it_worked_no_pause_is_read_off() -> None:
    table = course((95, 60_000, 3600), (0, 60_000, 1200), (95, 60_000, 3600))
    found = row(table, trials=trials([("COMPLETE", 0, 8400)]))
    assert np.isnan(found["between_s"]) and np.isnan(found["longest_between_s"])
    assert (found["allocated_idle_s"], found["allocated_mib"], found["allocated_kept_s"]) == (1200, 60_000, 1200)


def test_memory_held_is_counted_at_the_end_that_it_was_held_in() -> None:
    """25 minutes at 4 MiB before the work and 40 at 68 GiB after it."""
    found = row(course((0, 4, 1500), (95, 70_000, 7200), (0, 70_000, 2400)))
    assert (found["lead_mib"], found["trail_mib"], found["allocated_idle_s"]) == (4, 70_000, 0)
    never = row(course((0, 9000, 2400)))
    assert np.isnan(never["lead_s"]) and never["allocated_idle_s"] == pytest.approx(2400, abs=5)


def test_a_steady_light_load_does_not_begin_with_its_highest_sample() -> None:
    """At 6 % for two hours, with one sample of 11 % after an hour and a half."""
    table = course((6, 60_000, 5400), (11, 60_000, 5), (6, 60_000, 1800))
    assert tuple(row(table)[["lead_s", "between_s", "trail_s"]]) == (0, 0, 0)
    rested = course((0, 60_000, 1500), (6, 60_000, 3900), (11, 60_000, 5), (6, 60_000, 1800))
    assert row(rested)["lead_s"] == pytest.approx(1500, abs=5)
