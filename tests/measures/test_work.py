"""Stretches of flagged samples, and how much of the trials' span was observed, by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from smallruns import T0, gpu, run, trials

from gpudiag.measures._time.work import WorkSamples, stretches, work_coverage_pct
from gpudiag.measures.attribution import measure_attribution
from gpudiag.measures.stalls import measure_stalls
from gpudiag.run import Run

ZERO_US = int(T0.timestamp() * 1_000_000)


def seen(*cells: tuple[float, float]) -> WorkSamples:
    """Samples that stand for these seconds."""
    start, end = (ZERO_US + (np.array(part) * 1e6).astype(np.int64) for part in zip(*cells, strict=True))
    n = len(cells)
    running, none = np.zeros(n, np.int64), np.zeros(n, bool)
    return WorkSamples(start, start, end, np.full(n, 90.0), np.ones(n, bool), running, True, 1e6, none, none, running)


TRIALS = run(trials=trials([("COMPLETE", 100.0, 150.0), ("FAIL", 120.0, 200.0)]))


@pytest.mark.parametrize(
    ("cells", "percent"),
    [
        (((100, 150), (150, 200)), 100.0),
        (((0, 50), (50, 125), (190, 300)), 35.0),  # 25 s and 10 s within
        (((0, 50), (210, 300)), 0.0),
        (((140, 141),), 1.0),
    ],
)
def test_observed_is_what_lies_within_the_trials(cells: tuple[tuple[float, float], ...], percent: float) -> None:
    assert work_coverage_pct(TRIALS, {"0": seen(*cells)}) == pytest.approx(percent)
    assert work_coverage_pct(TRIALS, {"1": seen((90, 210)), "0": seen(*cells)}) == pytest.approx(percent)


def test_without_trials_the_span_is_that_of_all_telemetry() -> None:
    works = {"0": seen((0, 10), (10, 20), (50, 60)), "1": seen((20, 70), (70, 100))}
    assert work_coverage_pct(Run(), works) == pytest.approx(30.0)
    assert math.isnan(work_coverage_pct(Run(), {"0": seen((5, 5))}))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("......", []),
        ("######", [(0, 2), (3, 5)]),  # the record has a gap after the third
        (".##.#.", [(1, 2), (4, 4)]),
        ("#.####", [(0, 0), (2, 2), (3, 5)]),
        ("", []),
    ],
)
def test_stretches_end_at_a_gap(flags: str, expected: list[tuple[int, int]]) -> None:
    start = np.array([0, 10, 20, 50, 60, 70][: len(flags)])
    first, last = stretches(np.array([flag == "#" for flag in flags], bool), start, start + 10)
    assert list(zip(first.tolist(), last.tolist(), strict=True)) == expected


@pytest.mark.parametrize("ahead_s", [0.0, 40.0])
@pytest.mark.parametrize("every_s", [0, 25])
def test_waits_that_may_lie_between_trials_of_unknown_gpu_are_no_stalls(ahead_s: float, every_s: int) -> None:
    """Trials of 100 s on both GPUs, which work after 15 s, and wait for 3 s ``every_s`` or not at all. Where the clock
    of the trials is ahead they are placed nowhere.
    """
    starts = 100.0 * np.arange(30)
    t = np.arange(-60, 3060)
    age = t % 100
    waits = age % every_s >= every_s - 3 if every_s else np.zeros(len(t), bool)
    works = (t >= 0) & (t < 3000) & (age >= 15) & ~(waits & (age < 90))
    log = pd.concat([gpu(t, name, util_pct=np.where(works, 80.0, 0.0)) for name in "01"])
    made = run(gpu=log, trials=trials([("COMPLETE", s - ahead_s, s + 100 - ahead_s) for s in starts]))
    assert measure_attribution(made).n_attributed == (0 if ahead_s else 30)
    stalled_s = measure_stalls(made).per_gpu["stalled_s"]
    true_s = int(((t >= 0) & (t < 2900) & (age >= 15) & ~works).sum()) if every_s else 0
    assert stalled_s.tolist() == pytest.approx(
        [true_s] * 2, abs=0 if not every_s else 0.1 * true_s + 15 * 30 * (ahead_s > 0)
    )


LIVES_S = np.array([100.0, 15.0, 15.0, 15.0, 15.0] * 10)


def _lock_step(every_s: int, unnamed: Sequence[int], beside: Sequence[tuple[str, float, float]]) -> tuple[Run, float]:
    """The same trials one after the other on two GPUs, and some ``beside`` of unknown GPU. Each needs 12 s to start, so
    that those of 15 s show no work; one of 100 s waits for the last 10 s of every ``every_s``. And seconds of waiting.
    """
    ends = LIVES_S.cumsum()
    starts = ends - LIVES_S
    t = np.arange(2.0, ends[-1], 5.0)
    own = np.searchsorted(starts, t, "right") - 1
    age = t - starts[own]
    works = (age >= 12) & (LIVES_S[own] > 50)
    waits = works & (age % every_s >= every_s - 10) if every_s else works & False
    log = pd.concat([gpu(t, name, util_pct=np.where(works & ~waits, 85.0, 0.0)) for name in "01"])
    lives = [("COMPLETE", *life) for life in zip(starts, ends, strict=True)]
    names = [None if i in unnamed else name for name in "01" for i in range(len(lives))]
    return run(gpu=log, trials=trials([*lives * 2, *beside], gpu=[*names, *[None] * len(beside)])), 5.0 * waits.sum()


@pytest.mark.parametrize("every_s", [0, 40])
@pytest.mark.parametrize(
    ("unnamed", "beside"),
    [((), ()), ((10,), ()), ((11, 12), ()), ((), (("COMPLETE", 320.0, 820.0),))],
    ids=["all-named", "a-long-one", "two-short-ones", "one-beside-many"],
)
def test_trials_of_unknown_gpu_leave_the_rest_of_its_time_as_it_is_known(
    every_s: int, unnamed: tuple[int, ...], beside: tuple[tuple[str, float, float], ...]
) -> None:
    made, true_s = _lock_step(every_s, unnamed, beside)
    unplaced = 2 * len(unnamed) + len(beside)
    assert measure_attribution(made).n_attributed == len(made.trials) - unplaced
    stalled_s = measure_stalls(made).per_gpu["stalled_s"]
    lost_s = 10.0 * every_s / 40 * (len(unnamed) == 1) + 0.4 * true_s * len(beside)  # what may be theirs is no stall
    assert (stalled_s <= true_s).all()
    assert (stalled_s >= true_s - 2 * lost_s).all()
