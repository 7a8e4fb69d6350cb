"""The table as a block of a report: all trials, and a few of them where no script runs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.analysis import Analysis
from gpudiag.measures._time.trial_intervals import intervals_of, trial_names
from gpudiag.measures._trials.outcomes import outcomes_of
from gpudiag.measures.failures import measure_failures
from gpudiag.measures.trials import measure_trials
from gpudiag.report._render.blocks import Block, Number, TableBlock, TableCell, TrialTable
from gpudiag.report.format import duration, listed, parameter, safe
from gpudiag.report.noun import noun_of
from gpudiag.report.timeline.trials import MOST_CHARS, endings
from gpudiag.report.trial_table.columns import NO_END
from gpudiag.report.trial_table.packed import packed
from gpudiag.schema import has_values

MOST_STILL = 3
"""Of the longest and of the last that failed."""


def trial_table(analysis: Analysis) -> list[Block]:
    """The block; nothing for a run without trials."""
    trials = analysis.run.trials
    return [TrialTable(len(trials), _still(analysis), packed(analysis), noun_of(analysis.run))] if len(trials) else []


def _still(analysis: Analysis) -> TableBlock:
    """The best of each study, the longest, and the last that failed."""
    trials, intervals = analysis.run.trials.reset_index(drop=True), intervals_of(analysis.run)
    intervals["state"] = outcomes_of(analysis.run)
    why: dict[int, list[str]] = {}
    for name, rows in (
        ("best", _best(analysis, trials)),
        ("longest", _longest(intervals)),
        ("failed", _failed(intervals)),
    ):
        for row in rows:
            why.setdefault(row, []).append(name)
    places = list(why)
    few, named = trials.loc[places], trial_names(trials)
    ended = intervals.loc[places, ["study", "trial", "state"]].assign(open=False)
    ended["open"] = intervals.loc[places, "end"].isna() & intervals.loc[places, "start"].notna()
    reasons = list(endings(analysis.run, ended, few, analysis.get(measure_failures), NO_END))
    values = few["value"] if has_values(few, "value") else None
    head = (
        noun_of(analysis.run).capitalize(),
        "Which",
        "State",
        *(("Value",) if values is not None else ()),
        "Duration",
        "Ended",
    )
    body: list[tuple[TableCell, ...]] = []
    for row, reason in zip(places, reasons, strict=True):
        value = () if values is None else (Number(parameter(float(values[row]))),)
        lasted = Number(duration(float(intervals.at[row, "duration_s"])))
        trial = safe(named[row])[:MOST_CHARS]
        body.append((trial, listed(why[row]), safe(intervals.at[row, "state"]), *value, lasted, reason or "–"))
    keep = [at for at in range(len(head)) if at != len(head) - 1 or any(row[-1] != "–" for row in body)]
    return TableBlock(tuple(head[at] for at in keep), tuple(tuple(row[at] for at in keep) for row in body))


def _best(analysis: Analysis, trials: pd.DataFrame) -> list[int]:
    profile = analysis.get(measure_trials)
    if profile is None or profile.best.empty:
        return []
    keys = pd.MultiIndex.from_frame(profile.best[["study", "trial"]])
    return np.flatnonzero(pd.MultiIndex.from_frame(trials[["study", "trial"]]).isin(keys))[:MOST_STILL].tolist()


def _longest(intervals: pd.DataFrame) -> list[int]:
    return intervals["duration_s"].dropna().nlargest(MOST_STILL).index.tolist()


def _failed(intervals: pd.DataFrame) -> list[int]:
    return intervals.index[intervals["state"] == "FAIL"][-MOST_STILL:].tolist()
