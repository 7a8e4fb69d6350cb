"""Results that were added to a study, in which they did not run: by hand, or as copies of trials of another study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from gpudiag.report.format import plural
from gpudiag.run import Run
from gpudiag.schema import family, text_dtype

RESULTS = ("COMPLETE", "PRUNED")
LEAST_S = 1.0
"""Where trials usually last less, one that lasts no time may have run between two ticks of its clock."""
LEAST_TICKS = 10.0
"""Of timestamps in whole seconds or minutes: where no whole trial lasts less, one that lasts none is another kind."""
FEWEST_COPIES = 3
"""Of timestamps in whole seconds: fewer trials that are alike in two studies may be so by chance."""


def without_added(run: Run) -> Run:
    """The run with ``trials.added`` for what did not run in its study, and a note on each study that has some.

    ``study.add_trial(create_trial(...))`` gives a result one moment for its start and end, and
    ``study.add_trials(other.trials)`` copies parameters, start and end. Whatever ran takes time, and no two trials
    share both moments to the microsecond.
    """
    trials = run.trials
    params = family(trials.columns, ("params.",))
    if trials.empty or not params:
        return run
    chosen = trials[params].notna().any(axis=1) & trials["start"].notna() & trials["end"].notna()
    fine = _in_parts_of_seconds(trials)
    results = chosen & _without_length(trials, fine)
    copies, of = _copies(trials[chosen & ~results], params, fine)
    if not results.any() and not len(copies):
        return run
    added = pd.Series(None, trials.index, dtype=object)
    added[results] = "result"
    added[copies] = "copy"
    notes = (*_notes_of_results(trials, results), *_notes_of_copies(trials, copies, of))
    return replace(
        run,
        trials=trials.assign(added=added.astype(text_dtype())),
        info=replace(run.info, notes=(*run.info.notes, *notes)),
    )


def _in_parts_of_seconds(trials: pd.DataFrame) -> pd.Series:
    """By trial whether its study writes timestamps in parts of seconds."""
    parts = (trials[["start", "end"]].apply(lambda times: times.dt.microsecond) > 0).any(axis=1)
    return parts.groupby(trials["study"]).transform("any")


def _tick_s(trials: pd.DataFrame) -> pd.Series:
    """By trial the seconds to which its study writes timestamps, where these are no parts of one: 1, or 60 for whole
    minutes, as spreadsheets save them.
    """
    within = (trials[["start", "end"]].apply(lambda times: times.dt.second) > 0).any(axis=1)
    return 60.0 - 59.0 * within.groupby(trials["study"]).transform("any")


def _without_length(trials: pd.DataFrame, fine: pd.Series) -> pd.Series:
    """Results that start and end at one moment, in a study whose trials last long enough to tell."""
    seconds = (trials["end"] - trials["start"]).dt.total_seconds()
    lasting = seconds.where((seconds > 0) & trials["state"].isin(RESULTS))
    by_study = lasting.groupby(trials["study"])
    long_enough = ~(by_study.transform("median") < LEAST_S)
    shortest = lasting.where(trials["state"] == "COMPLETE").groupby(trials["study"]).transform("min")
    whole = shortest >= LEAST_TICKS * _tick_s(trials)
    told = (fine & long_enough & trials["state"].isin(RESULTS)) | (~fine & whole & (trials["state"] == "COMPLETE"))
    return told & (seconds == 0)


def _copies(trials: pd.DataFrame, params: list[str], fine: pd.Series) -> tuple[pd.Index, pd.Series]:
    """Rows of copies, and by row the study of the trial that ran: that of which the copied ones are the larger part,
    the first of equals.
    """
    if trials["study"].nunique() < 2:
        return trials.index[:0], trials["study"].iloc[:0]
    texts = trials[params].astype(object).map(str).where(trials[params].notna(), "")
    key = pd.util.hash_pandas_object(texts.assign(start=trials["start"], end=trials["end"]), index=False)
    key = key.groupby([key, trials["state"]], sort=False).ngroup()
    shared = trials["study"].groupby(key).transform("nunique") > 1
    size = trials["study"].map(trials["study"].value_counts())
    part = shared.groupby(trials["study"]).transform("sum") / size
    by_chance = ~fine[trials.index] & ~(part.groupby(key).transform("max") >= 0.5)
    by_chance |= ~fine[trials.index] & (shared.groupby(trials["study"]).transform("sum") < FEWEST_COPIES)
    rows = trials.assign(key=key, part=part, place=np.arange(len(trials)))[shared & ~by_chance]
    rows = rows.sort_values(["part", "place"], ascending=[False, True], kind="stable")
    twice = rows.duplicated("key")
    ran_in = rows.drop_duplicates("key").set_index("key")["study"]
    return rows.index[twice], rows.loc[twice, "key"].map(ran_in)


def _notes_of_results(trials: pd.DataFrame, results: pd.Series) -> list[str]:
    n, of = trials.loc[results, "study"].value_counts(sort=False), trials["study"].value_counts()
    return [
        f"Study '{study}': {plural(of[study], 'trial')}, of which {count:,} are results that were added to it: each "
        "starts and ends at one moment. They count for the best value, and not as trials that ran."
        for study, count in n.items()
    ]


def _notes_of_copies(trials: pd.DataFrame, copies: pd.Index, of: pd.Series) -> list[str]:
    pairs = pd.DataFrame({"study": trials.loc[copies, "study"], "of": of}).value_counts(sort=False)
    return [
        f"Study '{study}': {plural(n, 'trial')} with the parameters, start and end of trials of study '{ran_in}'. "
        "These are copies, so their time is counted once."
        for (study, ran_in), n in pairs.items()
    ]
