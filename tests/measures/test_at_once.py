"""Trainings at once, by their logs."""

from __future__ import annotations

import pandas as pd
import pytest
from smallruns import run, steps_of

from gpudiag.measures._steps.at_once import trainings_at_once
from gpudiag.run import Run


def logs(*begins: float, **more: object) -> Run:
    """Each of 40 lines 30 s apart, of 10 steps; the pace of no two is the same."""
    told = [
        steps_of([(begin + at * (30 + number), 10 * at) for at in range(1, 41)], path=f"job{number}.log", **more)
        for number, begin in enumerate(begins)
    ]
    return run(steps=pd.concat(told, ignore_index=True))


@pytest.mark.parametrize(
    ("begins", "n"), [((0.0,), 1), ((0.0, 0.0), 2), ((0.0, 10.0, 20.0), 3), ((0.0, 2000.0), 1), ((0.0, 1000.0), 1)]
)
def test_logs_side_by_side_are_as_many_trainings(begins: tuple[float, ...], n: int) -> None:
    assert trainings_at_once(logs(*begins)) == n


def test_ranks_and_no_logs() -> None:
    of_ranks = logs(0.0, 0.0).steps
    of_ranks["rank"] = of_ranks["path"].eq("job1.log").astype("Int64")
    assert trainings_at_once(run(steps=of_ranks)) == 1 and trainings_at_once(run()) == 0
