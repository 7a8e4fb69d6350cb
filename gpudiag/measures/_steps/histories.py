"""Histories of Hugging Face's Trainer: one in each checkpoint, and what they tell of the pauses of another log."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.measures._steps.lines import floats
from gpudiag.measures._steps.whole_time import evaluations_by_step
from gpudiag.readers._steps.trainer_line import HISTORY
from gpudiag.run import Run
from gpudiag.schema import text_dtype

SHOWN = 0.8
"""Part of a stated evaluation that an interval is longer by than its steps where it holds it, at least."""


def without_earlier_histories(lines: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The lines without those of histories that begin with the same line as a longer one, and how many files these
    are. A checkpoint repeats all that was logged before.
    """
    own = lines[lines["series"].eq(HISTORY)] if len(lines) else lines
    if own.empty:
        return lines, 0
    first = (
        own.sort_values("line")
        .groupby("path")
        .agg(step=("step", "first"), s=("elapsed_s", "first"), n=("step", "size"))
    )
    kept = first.sort_values("n", ascending=False, kind="stable").drop_duplicates(["step", "s"]).index
    left = set(first.index) - set(kept)
    return lines[~lines["path"].isin(left)], len(left)


def with_named_pauses(part: pd.DataFrame, run: Run) -> pd.DataFrame:
    """The intervals of a training with the evaluations of which a history without a clock tells at its steps, if each
    lies in an interval that is as much longer than usual.
    """
    if (part["evaluation_s"] > 0).any() or part["attempt"].max() > 0:
        return part
    done, took, n = floats(part, "done"), floats(part, "took_s"), floats(part, "n")
    usual_s = float(np.nanmedian(took[n > 0] / n[n > 0])) if (took[n > 0] >= 0).any() else np.nan
    for at, evaluated_s in evaluations_by_step(run):
        within = at < done.max()
        if not within.any():
            continue
        held = pd.Series(evaluated_s[within]).groupby(np.searchsorted(done, at[within], side="right")).sum()
        here = held.index.to_numpy()
        if (took[here] - n[here] * usual_s >= SHOWN * held.to_numpy()).all():
            stated, since = floats(part, "evaluation_s").copy(), part["since"].astype(object).to_numpy(copy=True)
            stated[here] = held.to_numpy()
            since[here] = [
                ", ".join(sorted({*text.split(", "), "evaluation"} - {""}, reverse=True)) for text in since[here]
            ]
            return part.assign(evaluation_s=stated, since=pd.Series(since, part.index, dtype=text_dtype()))
    return part
