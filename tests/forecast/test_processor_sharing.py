"""Re-simulation of workers: against what can be computed by hand, and against an event loop written another way."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.forecast.parallelism.processor_sharing import Draws, resimulate


def draws(pause: float, work: float, n: int = 40) -> Draws:
    return Draws(np.full((1, n), pause), np.full((1, n), work))


def test_one_worker_takes_pause_and_work_in_turn() -> None:
    future = resimulate(draws(30.0, 60.0), np.array([[0.0, 0.5]]), (1,))
    assert future.throughput_h[0] == pytest.approx(3600 / 90)
    assert future.busy_pct[0] == pytest.approx(100 * 0.5 * 60 / 90)


def test_trials_that_fill_the_gpu_alone_gain_nothing_from_company() -> None:
    full = np.array([[0.0, 1.0, 1.0, 1.0, 1.0]])
    rates = [resimulate(draws(0.0, 60.0), full, (k,)).throughput_h[0] for k in (1, 2, 4)]
    assert rates == pytest.approx([60.0] * 3)


def test_trials_that_need_little_run_undisturbed() -> None:
    little = np.array([[0.0, 0.1, 0.2, 0.3, 0.4]])
    assert resimulate(draws(10.0, 50.0), little, (4,)).throughput_h[0] == pytest.approx(4 * 60.0)


def test_two_gpus_are_two_times_one() -> None:
    busy = np.array([[0.0, 0.6, 0.84]])
    one, two = resimulate(draws(5.0, 60.0), busy, (2,)), resimulate(draws(5.0, 60.0), busy, (2, 2))
    assert two.throughput_h[0] == pytest.approx(2 * one.throughput_h[0], rel=0.02)
    assert two.busy_pct[0] == pytest.approx(one.busy_pct[0], rel=0.02)


def test_each_gpu_has_the_workers_that_are_placed_there() -> None:
    """Each trial uses half a GPU for 60 s: three share one at two thirds of their speed, one alone is not slowed."""
    future = resimulate(draws(0.0, 60.0, 200), np.array([[0.0, 0.5, 1.0, 1.0]]), (3, 1))
    assert future.throughput_h[0] == pytest.approx(3 * 40 + 60, rel=0.02)
    assert future.busy_pct[0] == pytest.approx(75.0, rel=0.02)


def test_a_tick_that_raises_cancels() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        resimulate(draws(1.0, 1.0), np.array([[0.0, 0.5]]), (1,), tick=stop)


def mean_cycle(pause: list[float], work: list[float], speed: list[float], workers: int) -> float:
    """The same by one event at a time: mean seconds from taking a trial to its end, after each worker's first."""
    n = len(work)
    taken, now, cycles = 0, 0.0, {}
    waits: list[tuple[float, int]] = []
    trains: dict[int, float] = {}
    since: dict[int, float] = {}
    while len(cycles) < n - workers:
        while len(waits) + len(trains) < workers:
            heapq.heappush(waits, (now + pause[taken % n], taken))
            since[taken] = now
            taken += 1
        rate = speed[len(trains)] if trains else 1.0
        finish = min(trains.values()) / rate if trains else np.inf
        if waits and waits[0][0] - now <= finish:
            at, number = heapq.heappop(waits)
            trains = {key: left - (at - now) * rate for key, left in trains.items()}
            now, trains[number] = at, work[number % n]
        else:
            trains = {key: left - finish * rate for key, left in trains.items()}
            now += finish
            number = min(trains, key=lambda key: trains[key])
            del trains[number]
            if workers <= number < n:
                cycles[number] = now - since[number]
    return float(np.mean(list(cycles.values())))


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 5))
def test_the_same_as_one_event_at_a_time(seed: int, workers: int) -> None:
    rng = np.random.default_rng(seed)
    pause, work = rng.uniform(1, 40, 30), rng.uniform(5, 90, 30)
    share = rng.uniform(0.2, 0.9)
    busy = np.minimum(1.0, np.concatenate([[0.0], 1 - (1 - share) ** np.arange(1, workers + 1)]))
    speed = [1.0, *(busy[1:] / np.arange(1, workers + 1) / busy[1])]
    future = resimulate(Draws(pause[None], work[None]), busy[None], (workers,))
    expected = 3600 * workers / mean_cycle(pause.tolist(), work.tolist(), speed, workers)
    assert future.throughput_h[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_futures_do_not_touch_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pause, work = rng.uniform(1, 40, (3, 20)), rng.uniform(5, 90, (3, 20))
    busy = np.sort(rng.uniform(0.2, 1.0, (3, 4)), axis=1)
    busy[:, 0] = 0.0
    together = resimulate(Draws(pause, work), busy, (3,))
    for row in range(3):
        alone = resimulate(Draws(pause[row : row + 1], work[row : row + 1]), busy[row : row + 1], (3,))
        assert alone.throughput_h[0] == pytest.approx(together.throughput_h[row])
        assert alone.busy_pct[0] == pytest.approx(together.busy_pct[row])
