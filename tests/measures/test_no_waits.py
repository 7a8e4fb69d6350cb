"""A test before the training in one record: the time between them is no wait, and none of the training's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from smallruns import at, gpu, run, steps_of
from verdicts import verdicts_of

from gpudiag.analysis import Analysis
from gpudiag.comparison.side import Side
from gpudiag.comparison.training_span import training_spans
from gpudiag.measures._time.no_waits import between_jobs
from gpudiag.measures.causes import measure_causes
from gpudiag.measures.ledger import measure_ledger
from gpudiag.measures.stalls import measure_stalls
from gpudiag.measures.utilization import measure_utilization
from gpudiag.rules._engine.verdict import Status
from gpudiag.run import Run
from gpudiag.schema import EVENTS, conform

TEST_S, PAUSE_S, LOAD_S, TRAIN_S = 120.0, 420.0, 30.0, 1500.0
FREE_MIB, HELD_MIB = 4.0, 60_000.0


def recorded(
    *,
    before_s: float = TEST_S,
    left_mib: float = FREE_MIB,
    pause_s: float = PAUSE_S,
    again: int = 1,
    gpus: int = 1,
    train_s: float = TRAIN_S,
) -> Run:
    """So many times work for ``before_s`` and a pause, then a training at 95 %; a sample each 5 s."""
    parts = [(60.0, 0.0, FREE_MIB), *[(before_s, 95.0, HELD_MIB), (pause_s, 0.0, left_mib)] * again]
    parts += [(LOAD_S, 0.0, HELD_MIB), (train_s, 95.0, HELD_MIB), (60.0, 0.0, FREE_MIB)]
    length, util, used = (np.array(column) for column in zip(*parts, strict=True))
    when = np.arange(0.0, length.sum(), 5.0)
    part = np.searchsorted(np.cumsum(length), when, "right")
    columns = {"util_pct": util[part], "mem_used_mib": used[part], "mem_total_mib": 80_000.0}
    return run(gpu=pd.concat([gpu(when, str(one), **columns) for one in range(gpus)], ignore_index=True))


def stalled_s(one: Run) -> float:
    return float(measure_stalls(one).per_gpu.at["0", "stalled_s"])


def logged(one: Run, begin_s: float, end_s: float) -> Run:
    lines = [(begin_s + 20.0 * n, 10 * n) for n in range(1, int((end_s - begin_s) / 20))]
    return replace(one, steps=steps_of(lines))


@pytest.mark.parametrize(("again", "gpus"), [(1, 1), (3, 2)])
def test_time_between_a_test_and_the_training_is_no_wait(again: int, gpus: int) -> None:
    one = recorded(again=again, gpus=gpus)
    assert stalled_s(one) == 0
    held_s = (120 + again * TEST_S + LOAD_S + TRAIN_S) * gpus
    assert measure_ledger(one).total_gpu_s == pytest.approx(held_s, abs=10 * gpus * again)
    worked_s = (again * TEST_S + TRAIN_S) * gpus
    assert measure_utilization(one).mean_pct == pytest.approx(95 * worked_s / held_s, abs=1)
    assert measure_utilization(one).per_gpu.at["0", "active_mean_pct"] == pytest.approx(95, abs=0.1)
    causes = measure_causes(one).by_cause["gpu_s"]
    assert causes["unknown"] == pytest.approx(0.05 * worked_s, rel=0.02)
    verdicts = verdicts_of(one, "gpu-low-utilization", "stalls-aperiodic", "gpu-fluctuating")
    assert all(verdict.status is not Status.FOUND for verdict in verdicts)


def test_a_training_is_not_as_long_as_with_the_test_before_it() -> None:
    """What a log from the first step on does not tell of is not all one training: its total is unknown."""
    begin_s = 60 + TEST_S + PAUSE_S + LOAD_S
    one = logged(recorded(), begin_s, begin_s + TRAIN_S)
    alone = logged(recorded(again=0), 60 + LOAD_S, 60 + LOAD_S + TRAIN_S)
    assert training_spans(Side(Analysis(alone), "alone"))
    assert not training_spans(Side(Analysis(one), "with a test"))


@pytest.mark.parametrize(
    ("before_s", "train_s", "gpus"), [(180.0, 190.0, 1), (190.0, 180.0, 2), (550.0, 60.0, 2), (550.0, 3000.0, 1)]
)
def test_of_two_jobs_either_may_be_the_longer(before_s: float, train_s: float, gpus: int) -> None:
    one = recorded(before_s=before_s, train_s=train_s, gpus=gpus)
    assert stalled_s(one) == 0
    assert measure_ledger(one).total_gpu_s == pytest.approx((120 + LOAD_S + before_s + train_s) * gpus, abs=10 * gpus)


@pytest.mark.parametrize(
    ("how", "stalls_s"),
    [
        ({"left_mib": HELD_MIB}, PAUSE_S + LOAD_S),  # nothing was freed: it waited
        ({"left_mib": 900.0}, PAUSE_S + LOAD_S),  # a CUDA context is left
        ({"before_s": 700.0}, PAUSE_S + LOAD_S),  # a training that may have crashed
        ({"again": 8}, 8 * PAUSE_S + LOAD_S),  # tests of 16 min, as trials of a search
        ({"again": 2, "train_s": TEST_S}, 2 * PAUSE_S + LOAD_S),
        ({"pause_s": 40.0}, 40.0 + LOAD_S),  # a script goes on to its next part
    ],
)
def test_what_may_be_one_job_waits(how: dict[str, float], stalls_s: float) -> None:
    one = recorded(**how)  # type: ignore[arg-type]
    assert between_jobs(one) == []
    assert stalled_s(one) == pytest.approx(stalls_s, abs=10)
    assert measure_ledger(one).total_gpu_s == pytest.approx(len(one.gpu) * 5, abs=10)


def test_a_log_that_goes_on_or_a_command_that_runs_makes_it_one_job() -> None:
    one = recorded()
    behind_s = 60 + TEST_S + PAUSE_S + LOAD_S + TRAIN_S
    assert stalled_s(logged(one, 60, behind_s)) == pytest.approx(PAUSE_S + LOAD_S, abs=10)
    for times, is_one in (((0.0, behind_s), True), ((0.0, 190.0, 300.0, behind_s), False)):
        kinds = ["command_start", "command_end"] * (len(times) // 2)
        events = conform(pd.DataFrame({"time": at(times), "kind": kinds, "detail": "", "path": "gpu.csv"}), EVENTS)
        assert (stalled_s(replace(one, events=events)) > 0) == is_one
