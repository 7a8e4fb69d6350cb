"""Trainings that state how long they took as a whole and how long their evaluations did, and nothing of their steps."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.measures._steps.lines import floats
from gpudiag.memo import memoized
from gpudiag.readers._steps.trainer_line import WHOLE_TIME
from gpudiag.run import Run
from gpudiag.schema import text_dtype

SAME = 6e-4
"""Part by which two statements of one time differ at most, where one is of four digits."""
SAME_EVALUATION = 1e-2
"""The same of an evaluation, which each node times by itself."""


class _Stated(NamedTuple):
    """``line``: the one that states the time of all, ``whole_s``; ``evaluated_s`` and ``at``: time and place of each
    evaluation in it; ``behind_s``: of those after it.
    """

    line: pd.Series
    whole_s: float
    evaluated_s: np.ndarray
    at: np.ndarray
    behind_s: float

    @property
    def counts_steps(self) -> bool:
        return str(self.line["unit"]) == "step"

    @property
    def training(self) -> str:
        number = str(self.line["series"]).partition("|")[2]
        return str(self.line["path"]) if number == "1" else f"{self.line['path']} ({number})"


def says_whole_times(run: Run) -> bool:
    """Whether there are lines of such trainings, with their times or without."""
    return bool(_of_whole(run.steps).any())


def without_whole_times(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines that tell of steps by some clock."""
    return lines[~_of_whole(lines)]


def whole_times(run: Run) -> list[pd.DataFrame]:
    """The course of each such training: all of its time but for the evaluations as one interval, and each of these as
    one without steps. How long a step took is unknown, and how much of the rest passed outside of steps.

    One that is told of twice, as in what was printed and in the history, counts once: its time is the same, and those
    of its evaluations are among the other's. The fuller one is taken.
    """
    lines = run.steps[_of_whole(run.steps)].drop_duplicates().sort_values(["path", "line"])
    every = [_stated(part) for _, part in lines.groupby(["path", "series"], sort=True)]
    found: list[_Stated] = []
    for one in sorted((one for one in every if one), key=_fullest_first):
        if not any(_is_same(other, one) for other in found):
            found.append(one)
    return [_course(one) for one in sorted(found, key=lambda one: one.training)]


@memoized
def evaluations_by_step(run: Run) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each such training that counts its steps: where its evaluations were, and how long they took."""
    lines = run.steps[_of_whole(run.steps) & run.steps["unit"].eq("step").to_numpy(bool)]
    every = [part[floats(part, "evaluation_s") > 0] for _, part in lines.groupby(["path", "series"], sort=True)]
    return sorted(
        ((floats(part, "step"), floats(part, "evaluation_s")) for part in every), key=lambda one: -len(one[0])
    )


def _of_whole(lines: pd.DataFrame) -> np.ndarray:
    if lines.empty:
        return np.zeros(len(lines), bool)
    kinds = [kind for kind in lines["series"].unique() if str(kind).partition("|")[0] == WHOLE_TIME]
    return lines["series"].isin(kinds).to_numpy(bool)


def _stated(lines: pd.DataFrame) -> _Stated | None:
    """None where its time is not stated, or no longer than its evaluations."""
    elapsed = floats(lines, "elapsed_s")
    ends = np.flatnonzero(elapsed > 0)
    if not len(ends):
        return None
    within, line = lines.iloc[: ends[-1]], lines.iloc[ends[-1]]
    within = within[floats(within, "evaluation_s") > 0]
    evaluated_s, whole_s = floats(within, "evaluation_s"), float(elapsed[ends[-1]])
    behind_s = float(np.nan_to_num(floats(lines, "then_evaluation_s")[ends[-1]]))
    return (
        _Stated(line, whole_s, evaluated_s, floats(within, "step"), behind_s) if evaluated_s.sum() < whole_s else None
    )


def _fullest_first(one: _Stated) -> tuple[int, bool, bool, str]:
    return -len(one.evaluated_s), not one.counts_steps, not one.behind_s, one.training


def _is_same(fuller: _Stated, one: _Stated) -> bool:
    """Whether both state the same time, and the one no evaluation that the fuller one does not, in its order."""
    if not math.isclose(fuller.whole_s, one.whole_s, rel_tol=SAME):
        return False
    left = iter(fuller.evaluated_s)
    return all(any(math.isclose(took, other, rel_tol=SAME_EVALUATION) for other in left) for took in one.evaluated_s)


def _course(one: _Stated) -> pd.DataFrame:
    rest_s, done = one.whole_s - float(one.evaluated_s.sum()), float(one.line["step"])
    behind = [one.behind_s] if one.behind_s else []
    paused = np.array([0.0, *one.evaluated_s, *behind])
    course = pd.DataFrame(
        {
            "took_s": [rest_s, *paused[1:]],
            "paused_s": paused,
            "evaluation_s": paused,
            "n": [done if one.counts_steps else math.nan, *np.zeros(len(paused) - 1)],
            "done": [done, *one.at, *([done] if behind else [])],
            "since": ["", *["evaluation"] * (len(paused) - 1)],
            "unseen": [True, *[False] * (len(paused) - 1)],
        }
    )
    path = str(one.line["path"])
    return course.assign(
        path=path, training=one.training, unit=str(one.line["unit"]), rank=np.nan, trial=np.nan, attempt=0,
        recounted=0, tick_s=0.0, undated=0.0, first=False, new_epoch=False, opens=False, down_open=False,
        repeated=0.0, checkpoint_s=0.0, resumed=0.0, usual=False, apart_s=0.0, open_s=0.0,
        **dict.fromkeys(_UNKNOWN, np.nan),
        **dict.fromkeys(("start", "end"), pd.Series(pd.NaT, course.index, dtype="datetime64[us, UTC]")),
    ).astype(dict.fromkeys(("path", "training"), text_dtype()))  # fmt: skip


_UNKNOWN = (
    "stated_s", "alike_s", "loader_s", "loader_lines", "loader_most_s", "tokens_s", "begun_s", "each_s", "told_s",
    "work_s", "usual_s", "pace_s", "down_s", "again_s",
)  # fmt: skip
"""Columns of a course that need a clock."""
