"""A record of several sessions is said to be one, and where the longest of them lies."""

from __future__ import annotations

import pandas as pd
import pytest
from smallruns import at, gpu, run, trials

import gpudiag as gd
from gpudiag._diagnosis.result import Diagnosis
from gpudiag.run import Run
from gpudiag.schema import GPU, conform

HOUR_S = 3600.0


def sampled(*spans: tuple[str, float, float]) -> pd.DataFrame:
    """A GPU at a time: from and to these hours, once a minute."""
    parts = [
        pd.DataFrame({"time": at(range(int(a * HOUR_S), int(b * HOUR_S), 60)), "gpu": gpu, "util_pct": 90.0})
        for gpu, a, b in spans
    ]
    return conform(pd.concat(parts).sort_values(["gpu", "time"], ignore_index=True), GPU)


def diagnosed(*spans: tuple[str, float, float], **tables: pd.DataFrame) -> tuple[Run, Diagnosis]:
    made = run(gpu=sampled(*spans), **tables)
    return made, gd.diagnose(made)


def advised(found: Diagnosis) -> set[str]:
    return {one.id for one in found.recommendations if one.id in ("record-run", "judge-sessions")}


@pytest.mark.parametrize(
    ("spans", "n"),
    [
        ((("0", 0, 1), ("0", 7.1, 9)), 2),
        ((("0", 0, 1), ("0", 6.9, 9)), 1),
        ((("0", 0, 1), ("0", 10, 12), ("0", 20, 21)), 3),
        ((("0", 0, 1), ("0", 10, 12), ("1", 0, 9)), 1),  # the other one was sampled meanwhile
        ((("0", 0, 1), ("0", 10, 12), ("1", 0, 3), ("1", 9.5, 12)), 2),
    ],
)
def test_hours_of_silence_of_all_gpus_part_sessions(spans: tuple[tuple[str, float, float], ...], n: int) -> None:
    _, found = diagnosed(*spans)
    assert advised(found) == ({"judge-sessions"} if n > 1 else {"record-run"})
    if n > 1:
        (one,) = (one for one in found.recommendations if one.id == "judge-sessions")
        assert (one.changes[0].present, one.changes[0].proposed) == (n, "each by itself")


def test_other_gpus_after_a_silence_are_held_for_their_own_time() -> None:
    """As where a job was requeued onto another node: nothing is missing."""
    _, found = diagnosed(("0", 0, 1), ("1", 7.1, 9))
    assert not advised(found) and found.profiles["sampling"].coverage_pct == pytest.approx(100)


@pytest.mark.slow
def test_the_longest_session_is_cut_out_as_shown() -> None:
    made, found = diagnosed(("0", 0, 1), ("0", 10, 12.5), ("0", 20, 21))
    (one,) = (one for one in found.recommendations if one.id == "judge-sessions")
    span = one.changes[0].code.split('"')[1]
    alone = gd.diagnose(made.between(*span.split(",")))
    assert len(alone.run.gpu) == 150 and alone.profiles["sampling"].coverage_pct == pytest.approx(100, abs=1)
    assert not advised(alone)


@pytest.mark.slow
def test_trials_hold_a_record_together() -> None:
    _, found = diagnosed(("0", 0, 1), ("0", 10, 12), trials=trials([("COMPLETE", 0, 12 * HOUR_S)]))
    assert advised(found) == {"record-run"}


@pytest.mark.slow
def test_of_studies_that_ran_at_other_times_the_recorded_one_is_to_be_judged_by_itself() -> None:
    lives = [("COMPLETE", 10 + 100 * i, 100 + 100 * i) for i in range(10)]
    late = [(state, start + 86_400, end + 86_400) for state, start, end in lives]
    log = gpu(range(0, 1020, 2), "0", util_pct=60.0)
    both = run(gpu=log, trials=trials(lives + late, study=["recorded"] * 10 + ["a day later"] * 10))
    found = {one.id: one for one in gd.diagnose(both).recommendations}
    assert "record-run" not in found
    assert "--study recorded " in found["judge-recorded-study"].changes[0].code
    alone = run(gpu=log, trials=trials(lives, study="recorded"))
    assert "judge-recorded-study" not in {one.id for one in gd.diagnose(alone).recommendations}
