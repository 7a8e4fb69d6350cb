"""Every instant gets the cell that the definition gives it, read out loud one instant at a time."""

from __future__ import annotations

import statistics
from itertools import combinations

import numpy as np
import pytest
from drawn import few_of
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.measures._time.cells import cell_borders
from gpudiag.measures._time.timeline import CELLS, Intervals, Samples, _rank, draw_timeline, first_activity

US = 1_000_000
NOTHING = np.zeros(0, np.int64)


def samples(times_s: list[int], util: list[float]) -> Samples:
    time = np.array(times_s, np.int64) * US
    start, end = cell_borders(time)
    return Samples(time, start, end, np.array(util, float))


def intervals(spans: list[tuple[int, int]]) -> Intervals:
    pairs = np.array(spans, np.int64).reshape(-1, 2) * US
    return Intervals(pairs[:, 0], pairs[:, 1])


def label(when: float, shown: Samples, spans: list[tuple[int, int]]) -> str:
    """METHODS 3, for one instant in microseconds that is no border; of trials that share the GPU nothing is known."""
    held = [j for j in range(len(shown.time_us)) if shown.start_us[j] <= when < shown.end_us[j]]
    if not held:
        return "unobserved"
    (j,) = held
    util, timestamps = shown.value, shown.time_us
    here = [(s * US, e * US) for s, e in spans if s * US <= when < e * US]
    if not here:
        since = max([e * US for _, e in spans if e * US <= when], default=-(10**15)) + US
        until = min([s * US for s, _ in spans if s * US > when], default=10**15)
        near = [i for i in (j, j - 1, j + 1) if 0 <= i < len(timestamps) and since <= timestamps[i] < until]
        if near:
            return "foreign" if util[near[0]] >= 10 else "idle_no_trial"
        if util[j] < 10:
            return "idle_no_trial"
    if util[j] >= 10:
        return "busy" if util[j] >= 50 else "busy_low"
    used = [u for u in util if u > 1]
    low = used and np.quantile(used, 0.99) < 20
    works = min(10, max(1, statistics.median(used) / 2)) if low else 10
    work = util > works
    if work[j]:
        return "stalled"
    sustained = [
        timestamps[i]
        for i in range(len(timestamps) - 1)
        if work[i] and work[i + 1] and shown.end_us[i] == shown.start_us[i + 1]
    ]
    if any(not any(s <= t < e for t in sustained) for s, e in here):
        return "waiting"
    if all(not any(s <= t <= when for t in sustained) for s, _ in here):
        return "startup_only"
    active = timestamps[work]
    if all(not any(when < t < e for t in active) for _, e in here):
        return "tail_only"
    shared = any(max(s, t) < min(e, u) for (s, e), (t, u) in combinations(spans, 2))
    return "waiting" if shared else "stalled"


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Samples, list[tuple[int, int]]]:
    steps = draw(st.lists(st.sampled_from([1, 2, 2, 2, 3, 4, 30]), min_size=2, max_size=40))
    util = draw(st.lists(st.sampled_from([0, 4, 10, 11, 30, 49, 50, 97]), min_size=len(steps), max_size=len(steps)))
    spans = draw(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 40)), max_size=8))
    return samples(np.cumsum(steps).tolist(), [float(u) for u in util]), [(s, s + d) for s, d in spans]


@pytest.mark.slow
@settings(max_examples=few_of(400), deadline=None)
@given(world=worlds())
def test_every_instant_has_the_cell_of_its_definition(world: tuple[Samples, list[tuple[int, int]]]) -> None:
    shown, spans = world
    low, high = -5 * US, 130 * US
    made = draw_timeline(shown, intervals(spans), [(low, high)], has_trials=True, cuts_us=NOTHING)
    assert made.start_us[0] == low and made.end_us[-1] == high and (made.start_us[1:] == made.end_us[:-1]).all()
    assert (made.end_us - made.start_us).sum() == high - low
    for start, end, cell in zip(made.start_us, made.end_us, made.cell, strict=True):
        assert CELLS[cell] == label((start + end) / 2, shown, spans), (start / US, end / US)


@settings(max_examples=50, deadline=None)
@given(world=worlds(), cuts=st.lists(st.integers(-10, 140), max_size=5))
def test_more_cuts_change_no_sum(world: tuple[Samples, list[tuple[int, int]]], cuts: list[int]) -> None:
    shown, spans = world
    windows = [(0, 40 * US), (60 * US, 100 * US)]
    plain = draw_timeline(shown, intervals(spans), windows, has_trials=True, cuts_us=NOTHING)
    finer = draw_timeline(shown, intervals(spans), windows, has_trials=True, cuts_us=np.array(cuts, np.int64) * US)
    assert plain.seconds().tolist() == finer.seconds().tolist()
    assert plain.seconds().sum() == 80


def test_one_trial_from_start_to_end() -> None:
    """A sample a second: start-up 3 s, work with a stall, tail, a pause, and somebody else's load."""
    util = [0, 0, 0, 0, 80, 80, 0, 0, 30, 30, 0, 0, 0, 0, 0, 0, 60, 60, 0, 0]
    made = draw_timeline(
        samples(list(range(20)), util), intervals([(1, 12)]), [(0, 19 * US)], has_trials=True, cuts_us=NOTHING
    )
    seconds = dict(zip(CELLS, made.seconds().tolist(), strict=True))
    assert seconds == {
        "unobserved": 0, "idle_no_trial": 1 + 3.5 + 1.5, "foreign": 2, "startup_only": 2.5, "tail_only": 2.5,
        "waiting": 0, "stalled": 2, "busy_low": 2, "busy": 2,
    }  # fmt: skip


class Told:
    """Chances that are the same at all times."""

    def __init__(self, start: float, done: float, work: float) -> None:
        self.told = start, done, work

    def chances(self, when_us: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        start, done, work = (np.full(len(when_us), chance) for chance in self.told)
        return start, done, work


@pytest.mark.parametrize(
    ("start", "done", "work", "cell"),
    [(0.95, 0.0, 0.05, "startup_only"), (0.0, 0.9, 0.1, "tail_only"), (0.05, 0.04, 0.91, "stalled"),
     (0.8, 0.1, 0.1, "waiting"), (0.0, 0.5, 0.5, "waiting"), (0.0, 0.0, 0.01, "waiting"), (0.1, 0.0, 0.5, "waiting")],
)  # fmt: skip
def test_phases_of_trials_that_share_a_gpu_name_the_idle_time(
    start: float, done: float, work: float, cell: str
) -> None:
    """Where no trial works, but some start and others end, it is neither of both alone, and no stall."""
    shown = samples(list(range(0, 20)), [90.0, 90.0, *[0.0] * 16, 90.0, 90.0])
    made = draw_timeline(
        shown,
        intervals([(0, 19), (1, 18)]),
        [(0, 19 * US)],
        has_trials=True,
        cuts_us=NOTHING,
        phases=Told(start, done, work),
    )
    assert dict(zip(CELLS, made.seconds().tolist(), strict=True))[cell] == 16


def test_activity_seen_from_within_a_trial_is_no_foreign_load() -> None:
    """Samples every 10 s; a pause of 4 s between trials holds none of its own, and none shows an idle GPU."""
    shown = samples(list(range(0, 100, 10)), [90.0] * 10)
    made = draw_timeline(shown, intervals([(0, 33), (37, 90)]), [(0, 90 * US)], has_trials=True, cuts_us=NOTHING)
    seconds = dict(zip(CELLS, made.seconds().tolist(), strict=True))
    assert (seconds["idle_no_trial"], seconds["foreign"], seconds["busy"]) == (0, 0, 90)


def test_without_trials_there_is_only_idle_busy_and_unobserved() -> None:
    shown = samples([0, 1, 2, 3, 60], [0, 20, 90, 0, 0])
    made = draw_timeline(shown, intervals([]), [(0, 60 * US)], has_trials=False, cuts_us=NOTHING)
    seconds = dict(zip(CELLS, made.seconds().tolist(), strict=True))
    assert (seconds["busy_low"], seconds["busy"], seconds["unobserved"]) == (1, 1, 54)
    assert seconds["idle_no_trial"] == 4 and sum(seconds.values()) == 60


def test_a_gpu_without_samples_is_unobserved() -> None:
    made = draw_timeline(Samples.none(), intervals([(1, 5)]), [(0, 9 * US)], has_trials=True, cuts_us=NOTHING)
    assert made.seconds().tolist() == [9, 0, 0, 0, 0, 0, 0, 0, 0] and made.running.tolist() == [0, 1, 0]


@pytest.mark.parametrize(("since_s", "first_s"), [(0, 3), (3, 3), (4, 7), (8, None)])
def test_first_activity_takes_two_samples_in_a_row(since_s: int, first_s: int | None) -> None:
    shown = samples([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 50, 0, 50, 50, 0, 0, 50, 50, 0])
    found = first_activity(shown, np.array([since_s * US]))[0]
    assert found == (first_s * US if first_s is not None else np.iinfo(np.int64).max)


@given(st.lists(st.integers(0, 30), max_size=12), st.lists(st.integers(0, 30), max_size=12))
def test_rank_counts_the_timestamps_at_or_before_each_time(timestamps: list[int], when: list[int]) -> None:
    timestamps, when = sorted(timestamps), sorted(when)
    wanted = [sum(timestamp <= at for timestamp in timestamps) for at in when]
    assert _rank(np.array(timestamps, np.int64), np.array(when, np.int64)).tolist() == wanted


def test_idle_time_far_from_all_starts_and_ends_is_known_whatever_the_clocks_say() -> None:
    """One trial from 10 to 90 s, idle as it starts, from 45 to 55 s and beside its end."""
    times = list(range(101))
    util = [0.0 if t < 15 or 45 <= t < 55 or t >= 88 else 90.0 for t in times]
    for doubt_s, waiting, stalled in ((0, 0, 10), (5, 7, 10), (33, 7, 10), (36, 17, 0), (np.inf, 17, 0)):
        made = draw_timeline(
            samples(times, util), intervals([(10, 90)]), [(10 * US, 90 * US)], has_trials=True, cuts_us=NOTHING,
            doubt_us=doubt_s * US,
        )  # fmt: skip
        seconds = dict(zip(CELLS, made.seconds(), strict=True))
        assert (seconds["waiting"], seconds["stalled"]) == pytest.approx((waiting, stalled), abs=1)
        assert seconds["startup_only"] + seconds["tail_only"] == pytest.approx(0 if doubt_s else 7, abs=1)


def test_trials_that_overlap_only_as_far_as_clocks_may_differ_run_one_at_a_time() -> None:
    times = list(range(201))
    shown = samples(times, [0.0 if 45 <= t < 55 else 90.0 for t in times])
    made = draw_timeline(
        shown, intervals([(0, 105), (100, 200)]), [(0, 200 * US)], has_trials=True, cuts_us=NOTHING, doubt_us=10 * US
    )
    assert made.seconds()[CELLS.index("stalled")] == pytest.approx(10)
