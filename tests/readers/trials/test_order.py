"""Ends before starts: unknown and counted; refused where every trial has it."""

from __future__ import annotations

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._studies.end_order import checked_ends


def timestamps(*texts: str | None) -> pd.Series:
    return pd.Series(pd.to_datetime(list(texts), utc=True)).astype("datetime64[us, UTC]")


def test_only_the_impossible_end_becomes_unknown() -> None:
    start = timestamps("2026-03-01 10:00", "2026-03-01 11:00", None, "2026-03-01 10:00", "2026-03-01 10:00")
    end = timestamps("2026-03-01 10:00", "2026-03-01 10:59", "2026-03-01 09:00", None, "2026-03-01 10:30")
    problems = ProblemLog()
    out = checked_ends(start, end, "x.csv", problems, lines=[3, 5, 7, 9, 11])
    assert out.isna().tolist() == [False, True, False, True, False]
    assert out[[0, 2, 4]].tolist() == end[[0, 2, 4]].tolist()
    (problem,) = problems.all
    assert (problem.kind, problem.count, problem.line, problem.lost) == ("end before start", 1, 5, False)
    assert problem.example == "2026-03-01 10:59:00 ends what started 2026-03-01 11:00:00 UTC"


def test_where_all_are_swapped_nothing_is_guessed() -> None:
    start, end = timestamps("2026-03-01 11:00", "2026-03-01 11:00", None), timestamps("2026-03-01 10:00", None, None)
    with pytest.raises(InputError, match=r"x\.csv: each of the 1 trials .* swap the two columns"):
        checked_ends(start, end, "x.csv", ProblemLog())


def test_without_ended_trials_there_is_nothing_to_say() -> None:
    problems = ProblemLog()
    assert checked_ends(timestamps(None), timestamps(None), "x", problems).isna().all()
    assert problems.all == ()
