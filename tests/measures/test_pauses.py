"""No worker waited while nothing ran for an hour, nor from one study to the next."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from smallruns import run, trials

from gpudiag.measures._time.pauses import PAUSE_S, holds_pause, pauses
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.parallelism import measure_parallelism
from gpudiag.measures.search import measure_search
from gpudiag.run import Run

Row = tuple[str, float, float]


def launched_twice(between_s: float) -> list[Row]:
    """Two launches of 15 trials of 100 s, 7 s apart, on one worker."""
    first = [("COMPLETE", 107.0 * i, 107.0 * i + 100) for i in range(15)]
    later = first[-1][2] + between_s
    return [*first, *((state, later + start, later + end) for state, start, end in first)]


def gap_worker_h(given: Run) -> set[float]:
    costs = measure_costs(given).worker_time.set_index("outcome").at["gap", "worker_s"] / 3600
    return {round(h, 6) for h in (costs, measure_parallelism(given).gap_worker_h, measure_search(given).gap_worker_h)}


@pytest.mark.slow
@pytest.mark.parametrize(("between_s", "n_gaps"), [(PAUSE_S - 1, 29), (PAUSE_S, 28), (50_000.0, 28)])
def test_a_gap_across_a_launch_is_none_of_a_worker(between_s: float, n_gaps: int) -> None:
    given = run(trials=trials(launched_twice(between_s)))
    found = measure_parallelism(given)
    assert len(found.gaps) == measure_search(given).n_gaps == n_gaps and found.median_gap_s == 7
    assert found.mean_gap_s == pytest.approx(7 if n_gaps == 28 else (28 * 7 + between_s) / 29)
    assert gap_worker_h(given) == {round((28 * 7 + (n_gaps == 29) * between_s) / 3600, 6)}


def test_while_another_worker_runs_there_is_no_pause() -> None:
    rows = [*launched_twice(9000.0), ("COMPLETE", 0.0, 15_000.0)]
    table = trials(rows, worker=[*["w0"] * 30, "w1"])
    found = measure_parallelism(run(trials=table))
    assert len(found.gaps) == 29 and found.gaps["gap_s"].max() == 9000


@pytest.mark.slow
def test_from_study_to_study_no_worker_waits() -> None:
    table = trials(launched_twice(600.0)).assign(study=pd.Series(["a"] * 15 + ["b"] * 15, dtype="string"))
    given = run(trials=table)
    assert len(measure_parallelism(given).gaps) == 2 * measure_search(given).n_gaps == 28
    assert gap_worker_h(given) == {round(28 * 7 / 3600, 6)}


def test_a_stretch_holds_a_pause_only_whole() -> None:
    hour = int(PAUSE_S * 1e6)
    found = pauses(np.array([0, 2 * hour]), np.array([hour, 3 * hour]))
    assert [part.tolist() for part in found] == [[hour], [2 * hour]]
    ends = np.array([[hour, 2 * hour], [hour + 1, 2 * hour], [hour, 2 * hour - 1], [0, 3 * hour], [2 * hour, 3 * hour]])
    assert holds_pause(ends[:, 0], ends[:, 1], found).tolist() == [True, False, False, True, False]
