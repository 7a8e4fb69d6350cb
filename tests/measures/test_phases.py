"""Phases of trials that share a GPU: against every path counted one by one, and against simulated searches."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smallruns import gpu, run, trials

from gpudiag.measures._time.phase_chain import _backward, _forward, fit_of, smooth
from gpudiag.measures._time.phase_states import DONE, ODD, START, WORK, Chances, Moves, Stretches
from gpudiag.measures._time.phase_steps import cut_steps
from gpudiag.measures._time.phases import _mostly_clear, find_phases
from gpudiag.measures._time.timeline import Intervals, Samples
from gpudiag.measures._time.work import work_by_gpu
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import measure_ledger
from gpudiag.measures.shift import measure_shift
from gpudiag.run import Run
from gpudiag.simulation import Gpu, simulate

LANES, STEPS = 2, 4
US = 1_000_000


def drawn(seed: int) -> tuple[Stretches, Chances]:
    """One stretch of four steps in which trials come and go."""
    rng = np.random.default_rng(seed)
    running = rng.random((LANES, 1, STEPS)) < 0.8
    begins = running & (rng.random((LANES, 1, STEPS)) < 0.3)
    begins[:, :, 1:] |= running[:, :, 1:] & ~running[:, :, :-1]
    seen = Stretches(np.ones((1, STEPS)), rng.random((1, STEPS)) < 0.5, rng.random((1, STEPS)) < 0.8, running, begins)

    def chance(*shape: int) -> np.ndarray:
        return rng.uniform(0.05, 0.6, shape)

    of_lanes = [np.where(running, chance(LANES, 1, STEPS), 0.0) for _ in range(2)]
    return seen, Chances(
        *of_lanes, chance(1, STEPS), chance(1, STEPS), chance(LANES, 1), rng.uniform(0.5, 9, (1, STEPS))
    )


def moved(before: int, after: int, begin: float, end: float, lift: float) -> float:
    """Chance of a phase after another within a step in which a trial runs, times what else was seen."""
    table = {
        (START, START): 1 - begin, (START, WORK): begin * lift,
        (WORK, WORK): 1 - end, (WORK, DONE): end, (DONE, DONE): 1.0,
    }  # fmt: skip
    return table.get((before, after), 0.0)


def of_lane(seen: Stretches, chances: Chances, lane: int, path: tuple[int, ...]) -> float:
    """Chance of the phases of one lane; an empty lane is in the phase DONE."""
    total, before = 1.0, DONE
    for j, phase in enumerate(path):
        of_step = chances.begin_work[lane, 0, j], chances.end_work[lane, 0, j], chances.lift[0, j]
        if not seen.running[lane, 0, j]:
            total *= phase == DONE
        elif seen.begins[lane, 0, j]:
            total *= moved(START, phase, *of_step)
        elif j == 0:
            at_work = chances.begun[lane, 0]
            total *= (1 - at_work) * moved(START, phase, *of_step) + at_work * moved(WORK, phase, *of_step)
        else:
            total *= moved(before, phase, *of_step)
        before = phase
    return total


def of_samples(seen: Stretches, chances: Chances, phases: np.ndarray, stalls: tuple[int, ...]) -> float:
    """Chance of a path of stalls, and of the samples."""
    total, before = 1.0, 0
    for j, stalled in enumerate(stalls):
        stall, resume = chances.stall[0, j], chances.resume[0, j]
        total *= {(0, 0): 1 - stall, (0, 1): stall, (1, 0): resume, (1, 1): 1 - resume}[before, stalled]
        before = stalled
        working = (phases[:, j] == WORK).any()
        if seen.seen[0, j] and seen.active[0, j]:
            total *= 1.0 if working and not stalled else ODD
        elif seen.seen[0, j]:
            total *= ODD / 10 if working and not stalled else 1.0
    return total


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 4), rows=st.sampled_from((3, 9)), columns=st.sampled_from((6, 18)))
def test_steps_written_in_place_are_bit_for_bit_those_written_out(seed: int, n: int, rows: int, columns: int) -> None:
    rng, steps = np.random.default_rng(seed), 12
    left = rng.dirichlet(np.ones(rows), (steps, n, rows)).swapaxes(-1, -2)
    right, kinds = rng.dirichlet(np.ones(columns), (steps, n, columns)), rng.integers(0, 3, (steps, n))
    moves = Moves(rng.random((n, rows, columns)), left.copy(), right, kinds, rng.random((3, rows, columns)))
    now, held, scale = moves.first, [], []
    for j in range(steps):
        now = (moves.left[j] @ now @ right[j]) * moves.fits[kinds[j]]
        scale.append(now.sum(axis=(1, 2)))
        now = now / scale[j][:, None, None]
        held.append(now)
    found, found_scale = _forward(moves)
    assert np.array_equal(found, held) and np.array_equal(found_scale, scale)
    ahead, back = np.ones_like(now), moves.left.swapaxes(-1, -2)
    for j in reversed(range(steps)):
        both = held[j] * ahead
        total = both.sum(axis=(1, 2), keepdims=True)
        held[j] = both / total
        ahead = back[j] @ (np.minimum(ahead / total, 1e100) * moves.fits[kinds[j]]) @ right[j].swapaxes(-1, -2)
    _backward(moves, found)
    assert np.array_equal(found, held)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_chances_are_those_of_all_paths_counted_one_by_one(seed: int) -> None:
    seen, chances = drawn(seed)
    total, start = 0.0, np.zeros((LANES, STEPS))
    all_start, some_work, stalled = np.zeros(STEPS), np.zeros(STEPS), np.zeros(STEPS)
    lanes = [
        [(np.array(p), c) for p in product(range(3), repeat=STEPS) if (c := of_lane(seen, chances, lane, p)) > 0]
        for lane in range(LANES)
    ]
    runs = seen.running[:, 0]
    for (one, chance_one), (two, chance_two) in product(*lanes):
        phases = np.stack([one, two])
        for stalls in product((0, 1), repeat=STEPS):
            chance = chance_one * chance_two * of_samples(seen, chances, phases, stalls)
            total += chance
            start += chance * (runs & (phases == START))
            all_start += chance * (runs.any(axis=0) & (~runs | (phases == START)).all(axis=0))
            some_work += chance * (phases == WORK).any(axis=0)
            stalled += chance * np.array(stalls) * (phases == WORK).any(axis=0)
    found = smooth(seen, chances)
    assert found.start[:, 0] == pytest.approx(start / total, abs=1e-9)
    assert found.all_start[0] == pytest.approx(all_start / total, abs=1e-9)
    assert found.some_work[0] == pytest.approx(some_work / total, abs=1e-9)
    assert found.stalled[0] == pytest.approx(stalled / total, abs=1e-9)
    assert found.fit[0] == pytest.approx(np.log(total))
    assert fit_of(seen, chances)[0] == pytest.approx(np.log(total))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 3])
def test_start_ups_of_trials_that_share_a_gpu_are_no_stalls(workers: int) -> None:
    """Start-ups of 80 to 120 s in trials of about three minutes, which the GPU spends idle in good part."""
    made = simulate(
        seed=101 + workers, workers=workers, n_trials=60, epochs=6, startup_s=(80.0, 120.0), epoch_s=(8.0, 14.0),
        gpu_share_pct=(30.0, 60.0), period_s=2.0,
    )  # fmt: skip
    truth = made.truth.ledger.groupby("cell")["gpu_s"].sum()
    found = measure_ledger(made.run).cells.groupby("cell", observed=False)["gpu_s"].sum()
    assert truth["startup_only"] > 0.1 * truth.sum()
    near = 0.02 * truth.sum()
    assert found["startup_only"] == pytest.approx(truth["startup_only"], abs=near)
    assert found["stalled"] - near <= truth["stalled"] <= found["stalled"] + found["waiting"] + near
    median_s = made.truth.trials["startup_s"].median()
    costs = measure_costs(made.run)
    if workers == 2:  # of three at once too few are seen to tell the median
        assert costs.startup_median_s == pytest.approx(median_s, rel=0.1)
    else:
        assert costs.startup_median_s == pytest.approx(median_s, rel=0.1, nan_ok=True) or np.isnan(
            costs.startup_median_s
        )


def in_turns(apart_s: Callable[[int], float], work_s: float, both_pct: float) -> tuple[Run, np.ndarray]:
    """Two workers, trials of 30 s start-up, then work, then 20 s of an end; the second worker is ``apart_s`` behind in
    each round. Sampled each second, with the number of trials at work at each sample.
    """
    lived = 30 + work_s + 20
    starts = [i * (lived + 1) + lane * apart_s(i) for i in range(24) for lane in range(2)]
    when = np.arange(-5.0, max(starts) + lived + 10)
    working = sum(((when >= start + 30) & (when < start + 30 + work_s)).astype(int) for start in starts)
    rows = [("COMPLETE", start, start + lived) for start in starts]
    log = gpu(when, util_pct=np.array([0.0, 40.0, both_pct])[working])
    return run(gpu=log, trials=trials(rows)), working


@pytest.mark.slow
def test_a_start_up_beside_the_end_of_another_trial_is_no_stall() -> None:
    """Trials of 30 s start-up, 40 s work and 20 s end; the second worker is 55 to 62 s behind the first."""
    made, working = in_turns(lambda i: 55.0 + i % 8, 40.0, 60.0)
    found = measure_ledger(made).totals.set_index("cell")["gpu_s"]
    assert found["stalled"] == 0
    assert found["waiting"] > 0.05 * found.sum(), "some start while others end"
    idle_s = float((working[(np.arange(len(working)) >= 5) & (np.arange(len(working)) < len(working) - 10)] == 0).sum())
    of_trials = found[["startup_only", "tail_only", "waiting", "idle_no_trial"]].sum()
    assert of_trials == pytest.approx(idle_s, abs=48)


@pytest.mark.slow
def test_workers_that_fall_out_of_step_do_not_lower_the_level() -> None:
    """Both work at the same time at first, and hardly so later: utilization falls, but not that of equal numbers."""
    made, _ = in_turns(lambda i: 8.0 if i < 12 else 52.0, 60.0, 90.0)
    row = measure_shift(made).per_gpu.loc["0"]
    assert not row["fall_pct"] >= 15, "what is left: nothing shows when work ends beside other work"
    assert set(work_by_gpu(made)["0"].working.tolist()) <= {0, 1, 2}


def test_start_ups_of_single_trials_that_are_seldom_sampled_hold_no_stalls() -> None:
    """Trials of two minutes, seen four times each: an idle sample may be a start-up, a stall or a tail."""
    made = simulate(
        seed=7, gpus=(Gpu(),) * 8, workers=8, n_trials=80, epochs=6, startup_s=(8.0, 12.0), epoch_s=(14.0, 22.0),
        gpu_share_pct=(70.0, 90.0), period_s=30.0,
    )  # fmt: skip
    truth = made.truth.ledger.groupby("cell")["gpu_s"].sum() / made.truth.ledger["gpu_s"].sum()
    found = measure_ledger(made.run).totals.set_index("cell")["share_pct"] / 100
    sampling = 1.96 * 30 * np.sqrt(80 / 12) / made.truth.ledger["gpu_s"].sum()  # an edge a trial, seen to half a period
    assert found["waiting"] > 0, "some of it may be either"
    for cell in ("startup_only", "stalled"):
        assert found[cell] - sampling <= truth[cell] <= found[cell] + found["waiting"] + sampling, cell


@pytest.mark.parametrize(("stalls", "known"), [(False, True), (True, False)])
def test_start_ups_are_withheld_where_work_stalls_often(stalls: bool, known: bool) -> None:
    """Two workers, trials of 200 s with start-ups of 40 s; stalls of 20 s every minute also end in a rise."""
    start = np.sort(np.concatenate([np.arange(20) * 203, 77 + np.arange(20) * 209])) * US
    time = np.arange(0, 4200, 2, dtype=np.int64) * US
    at_work = (start[:, None] + 40 * US <= time) & (time < start[:, None] + 196 * US)
    value = np.minimum(45.0 * at_work.sum(axis=0), 100.0)
    value[(time // US % 60 < 20) & stalls] = 0.0
    (found,) = find_phases([cut_steps(Samples(time, time - US, time + US, value), Intervals(start, start + 200 * US))])
    assert found is not None and np.isfinite(found.median_s) == known
    assert known == (np.isfinite(found.startup_s).sum() >= 20)
    if known:
        assert found.median_s == pytest.approx(40, abs=2)


@pytest.mark.parametrize(("alone_pct", "known"), [(45.0, True), (95.0, False)])
def test_start_ups_are_withheld_where_a_second_trial_does_not_show(alone_pct: float, known: bool) -> None:
    """A GPU that one trial nearly fills shows the start-ups alone that end while it is idle."""
    rng = np.random.default_rng(8)
    start = np.sort(np.concatenate([np.cumsum(rng.uniform(150, 250, 28)) for _ in range(2)]) * US).astype(np.int64)
    end, begin = start + 145 * US, start + (50 * np.exp(rng.normal(0, 0.25, 56)) * US).astype(np.int64)
    time = np.arange(0, 6500, 2, dtype=np.int64) * US
    value = np.minimum(alone_pct * ((begin[:, None] <= time) & (time < end[:, None])).sum(axis=0), 100.0)
    (found,) = find_phases([cut_steps(Samples(time, time - US, time + US, value), Intervals(start, end))])
    assert found is not None and np.isfinite(found.median_s) == known == np.isfinite(found.startup_s).any()
    if known:
        assert found.median_s == pytest.approx(np.median(begin - start) / US, rel=0.1)


def test_a_rise_within_work_has_work_in_the_two_samples_before() -> None:
    time = np.arange(8, dtype=np.int64) * 2 * US
    value = np.array([0, 45, 90, 90, 0, 45, 45, 90.0])
    steps = cut_steps(Samples(time, time - US, time + US, value), Intervals(np.array([0]), np.array([15 * US])))
    at = np.searchsorted(steps.start_us, time, "right") - 1
    assert steps.beside[at].tolist() == [False, False, False, True, True, False, False, True]


@pytest.mark.parametrize(
    ("start_s", "open_s", "clear"),
    [(300, 200, True), (200, 300, False), (10, 40, True), (0, 60, False)],
)
def test_a_scale_is_not_known_where_most_idle_time_is_undecided(start_s: int, open_s: int, clear: bool) -> None:
    """Of 1000 s with a trial; 50 of them do not matter."""
    idle = start_s + open_s
    at = np.arange(1000)
    log = Samples(US * at, US * at, US * (at + 1), np.where(at < idle, 0.0, 90.0))
    steps = cut_steps(log, Intervals(np.array([0]), np.array([1000 * US])))
    begins = steps.start_us / US
    all_start = np.where(begins < start_s, 0.95, np.where(begins < idle, 0.5, 0.0))
    chances = np.stack([all_start, np.where(begins < idle, 1 - all_start, 0.0), np.where(begins < idle, 0.0, 1.0)])
    assert _mostly_clear(steps, chances) is clear


def test_few_trials_or_many_at_once_teach_nothing() -> None:
    time = np.arange(0, 600, 5, dtype=np.int64) * US
    value = np.where(np.arange(len(time)) % 10 < 5, 0.0, 80.0)
    samples = Samples(time, time, time + 5 * US, value)
    few = Intervals(np.array([0, 50, 200]) * US, np.array([190, 400, 500]) * US)
    crowd = Intervals(np.arange(12) * 20 * US, (np.arange(12) * 20 + 150) * US)
    assert find_phases([cut_steps(samples, few)]) == [None]
    assert find_phases([cut_steps(samples, crowd)]) == [None]


def test_steps_hold_one_set_of_trials_and_one_kind_of_sample() -> None:
    time = np.arange(0, 100, 10, dtype=np.int64) * US
    samples = Samples(time, time - 5 * US, time + 5 * US, np.array([0, 0, 80, 80, 0, 0, 80, 0, 0, 0.0]))
    made = cut_steps(samples, Intervals(np.array([3, 20]) * US, np.array([62, 90]) * US))
    assert made.start_us[0] == 3 * US and (made.start_us[-1] / US + made.length_s[-1]) == 90
    middle = made.start_us / US + made.length_s / 2
    assert ((made.trial >= 0).sum(axis=0) == 1 + ((middle > 20) & (middle < 62))).all()
    expected = samples.value[np.clip(((middle + 5) // 10).astype(int), 0, 9)] > 10
    assert (made.active == expected).all()
    # The sample at 60 s was taken while both ran, the piece from 62 s on has one: it says nothing of that piece.
    assert not made.seen[(middle > 62) & (middle < 65)].any() and made.seen[(middle > 75) & (middle < 85)].all()


def test_an_idle_sample_just_after_an_end_tells_and_an_active_one_does_not() -> None:
    """utilization.gpu looks back up to a second: what it shows may be work of the trial that ended."""
    time = np.arange(1, 21, dtype=np.int64) * US // 2
    value = np.full(20, 50.0)
    value[10] = 0.0  # at 5.5 s; one trial ends at 5.1, the other at 7.1 s
    intervals = Intervals(np.array([0, 0]), np.array([51, 71]) * US // 10)
    steps = cut_steps(Samples(time, time - US // 2, time, value), intervals)
    seen = {at: steps.seen[np.searchsorted(steps.start_us, at * US // 10, "right") - 1] for at in (45, 52, 57, 65)}
    assert seen == {45: True, 52: True, 57: False, 65: True}


@pytest.mark.parametrize(("spread", "known"), [(0.1, True), (0.8, False)])
def test_a_typical_start_up_is_told_where_the_log_settles_it(spread: float, known: bool) -> None:
    """Two workers, trials of 10 to 20 s: where start-ups differ widely, 24 trials leave their typical length open."""
    trials = 24
    rng = np.random.default_rng(3)
    took = rng.uniform(10, 20, (2, trials // 2))
    ends = np.cumsum(took, axis=1)
    start, took = (ends - took + 0.01).ravel(), took.ravel() - 0.02
    begin = start + 5.0 * np.exp(rng.normal(0, spread, trials))
    time = np.arange(0.0, ends.max(), 1.0)
    value = 30.0 * ((begin[:, None] <= time) & (time < (start + took)[:, None])).sum(axis=0)
    at, whole = (time * US).astype(np.int64), Intervals(*((np.array([start, start + took]) * US).astype(np.int64)))
    (found,) = find_phases([cut_steps(Samples(at, at - US, at, value), whole)])
    assert found is not None and np.isfinite(found.median_s) == known
    if known:
        assert found.median_s == pytest.approx(5.0, rel=0.1)
    else:
        assert np.isnan(found.startup_s).all()
