"""Where the steady work of a training begins, whatever its start-up took; and what is none."""

from __future__ import annotations

import numpy as np
import pytest
from smallruns import gpu, run

from gpudiag.measures._time.steady import first_work
from gpudiag.measures.causes import measure_causes
from gpudiag.measures.idleness import measure_idleness
from gpudiag.measures.stalls import measure_stalls
from gpudiag.measures.utilization import measure_utilization
from gpudiag.run import Run

SECOND_US, STEP_S = 1_000_000, 5.0
WORK_S, FREE_S = 7200.0, 60.0


def started(start_s: float, bursts: int, *, freed: bool = False) -> Run:
    """A process takes its memory, works for 10 s as often within its start-up, and then for two hours."""
    when = np.arange(0.0, FREE_S + start_s + WORK_S + FREE_S, STEP_S)
    since = when - FREE_S
    util = np.where((since >= start_s) & (since < start_s + WORK_S), 95.0, 0.0)
    for n in range(bursts):
        begin_s = start_s * (n + 0.1) / bursts
        util[(since >= begin_s) & (since < begin_s + 10)] = 30.0
    held = (since >= 0) & (since < start_s + WORK_S)
    if freed:
        held &= ~((since > 0.5 * start_s) & (since < 0.9 * start_s))
    used = np.where(held, 30_000.0, 4.0)
    return run(gpu=gpu(when, util_pct=util, mem_used_mib=used, mem_total_mib=80_000.0))


def begins(at_work: np.ndarray) -> int:
    edges = np.arange(len(at_work) + 1) * round(STEP_S * SECOND_US)
    return first_work(at_work, edges[:-1], edges[1:])


@pytest.mark.parametrize(
    ("start_s", "bursts"), [(720.0, 1), (720.0, 7), (900.0, 3), (1500.0, 1), (3000.0, 3), (3000.0, 7)]
)
def test_a_start_up_of_any_length_is_no_wait(start_s: float, bursts: int) -> None:
    one = started(start_s, bursts)
    row = measure_stalls(one).per_gpu.loc["0"]
    assert row["stalled_s"] == 0 and row["work_s"] == pytest.approx(WORK_S)
    assert measure_utilization(one).per_gpu.at["0", "active_s"] == pytest.approx(WORK_S)
    idle = measure_idleness(one).per_gpu.loc["0"]
    assert idle["lead_s"] == pytest.approx(FREE_S + start_s) and idle["n_between"] == 0
    waited_s = 2 * FREE_S + start_s - 10 * bursts
    assert measure_causes(one).by_cause.at["outside", "gpu_s"] == pytest.approx(waited_s, abs=STEP_S)


def test_what_gives_its_memory_back_was_a_job_of_its_own() -> None:
    idle = measure_idleness(started(1500.0, 1, freed=True)).per_gpu.loc["0"]
    assert idle["lead_s"] == pytest.approx(FREE_S + 150) and idle["n_between"] == 1


def test_a_pause_behind_work_is_no_start_up() -> None:
    work, pause = np.ones(300, bool), np.zeros(3000, bool)
    assert begins(np.concatenate([work, pause, work])) == 0


def test_a_gpu_that_hardly_works_has_none() -> None:
    assert begins(np.arange(2000) % 25 == 0) == 0  # in one sample of 25
    assert begins(np.zeros(10, bool)) == 10
    assert begins(np.arange(10) == 4) == 4


@pytest.mark.parametrize("duty", [0.3, 0.6, 0.9])
def test_waits_from_the_first_work_on_are_waits(duty: float) -> None:
    """Work and waits of irregular lengths; of 40 records hardly one loses any."""
    n_lost = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        lengths = np.rint(rng.exponential(np.tile([20 * duty, 20 * (1 - duty)], 100))).astype(int) + 1
        at_work = np.repeat(np.tile([True, False], 100), lengths)
        n_lost += begins(at_work) > 0
    assert n_lost <= 2
