"""What a worker's process holds between its trials, from memory made up of known parts."""

from __future__ import annotations

import numpy as np
import pytest

from gpudiag.forecast.memory.boards import board
from gpudiag.forecast.memory.held import Held, held_by_workers
from gpudiag.forecast.memory.signal import Memory

BASE_MIB, CONTEXT_MIB = 300.0, 700.0
TRIAL_S, STARTUP_S, GAP_S = 60.0, 35.0, 1.0


def made(workers: int, trials: int, *, one_process: bool) -> Memory:
    """Trials of 60 s one after another on each worker, which take 2 to 6 GiB after a start-up of 35 s.

    With one process a worker keeps its context to the end of the log; else each trial has its own.
    """
    rng = np.random.default_rng(workers)
    time = np.arange(0.0, 40.0 + trials * (TRIAL_S + GAP_S) * 1.2, 1.0)
    used, starts, ends = np.full(len(time), BASE_MIB), [], []
    for worker in range(workers):
        start = 15.0 + 7.3 * worker
        context_from = start + 3.0
        for _ in range(trials):
            end = start + TRIAL_S * rng.uniform(0.8, 1.2)
            used += rng.uniform(2000, 6000) * ((time >= start + STARTUP_S) & (time < end))
            used += CONTEXT_MIB * ((time >= start + 3.0) & (time < end)) * (not one_process)
            starts.append(start)
            ends.append(end)
            start = end + GAP_S
        used += CONTEXT_MIB * (time >= context_from) * one_process
    order = np.argsort(starts)
    start_s, end_s = np.array(starts)[order], np.array(ends)[order]
    return Memory(time, used, start_s, end_s, np.zeros(len(order), bool), np.zeros(len(order)))


def found(memory: Memory) -> Held:
    return held_by_workers(memory, board(memory, np.arange(len(memory.start_s))))


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_process_that_runs_many_trials_keeps_its_context(workers: int) -> None:
    held = found(made(workers, 14, one_process=True))
    assert held.mib == pytest.approx(CONTEXT_MIB, rel=0.02)
    assert (held.added_mib == 0).sum() == workers, "the first end of each shows all that it took"
    assert np.unique(held.added_mib).tolist() == [0.0, held.mib]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_nothing_is_added_where_each_trial_has_its_own(workers: int) -> None:
    held = found(made(workers, 14, one_process=False))
    assert held.mib == 0
    assert not held.added_mib.any() and not held.open_mib.any()


def test_what_levels_do_not_settle_stays_open() -> None:
    held = found(made(3, 14, one_process=True))
    assert held.mib == 0 and (held.open_mib >= 0.98 * CONTEXT_MIB).all()


def test_what_is_taken_off_leaves_what_ends_free() -> None:
    memory = made(2, 14, one_process=True)
    held = found(memory)
    left = held.taken_off(memory)
    between = (memory.time_s[:, None] < memory.end_s).sum(axis=1) > 2  # both workers go on
    warm = (held.workers == 2) & between
    assert (memory.used_mib - left.used_mib)[warm] == pytest.approx(2 * CONTEXT_MIB, rel=0.02)
    assert left.used_mib[warm].min() == pytest.approx(BASE_MIB, abs=40)
    assert (left.end_sd_mib > 0).sum() == 2, "a process may end with the last trial of its worker, or later"
