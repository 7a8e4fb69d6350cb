"""Trials that were marked FAIL or PRUNED long after they had ended: of these the recorded end is when somebody marked
them.

A killed trial stays RUNNING until a restarted worker, Optuna's heartbeats or a person marks it, and the storage takes
that moment for its end. A trial that raised an exception ends when it says; so does one that hung. The end is believed
unless something contradicts it. That of a COMPLETE trial is: it has a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from gpudiag._load.let_go import held_until, let_go_before, sampled_gpus
from gpudiag._run.worker_names import worker_names
from gpudiag.report.format import listed, plural
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT, dtype

TOGETHER_S = 5.0
"""Trials that were marked by one loop, or by one start of a worker, have ends no further from the next."""
RESTART_S = 10.0
"""Who marks dead trials and goes on has begun the next trial by then; a program that is started again takes longer."""
HANDOVER_S = 2.0
LEAST_SILENT_S = 60.0
"""No trial is doubted for heartbeats that stopped so shortly before its end, or twice what ended trials show."""
FACTOR, MORE_S, FEWEST = 5.0, 600.0, 3
"""A doubtful end is so many times later than the longest of three or more finished trials of its study would have it
(Optuna's own factor), and so many seconds (defaults without a published source)."""
ENOUGH = 5
"""So many trials began though with a doubtful one more ran than ever did: one or two may be of a second worker."""
ALIKE = 0.05
"""Failures whose lengths differ by no more may have met a time limit."""
MOST_NAMED = 5

Sign = Callable[[Run, pd.DataFrame], pd.Series]


def without_marked_ends(run: Run) -> Run:
    """The run with ends of FAIL trials, and of PRUNED ones that reported nothing, unknown that heartbeats, workers or
    the number at once contradict.
    """
    signs: dict[str, Sign] = {
        "heartbeats had stopped long before": _silent,
        "the worker had begun another trial before": _reused,
        "otherwise more trials ran at once than at any other time": _crowded,
    }
    for why, sign in signs.items():
        run = _doubted(run, why, sign, ends=_ends_without_work)
    return run


def without_ends_after_silence(run: Run) -> Run:
    """The run with ends of FAIL trials unknown that came after a long time in which no trial began or ended and no GPU
    was active, or in which its own GPU was idle with its memory freed. Clocks must be joined for GPUs to tell.
    """
    run = _doubted(run, "no trial began or ended for long before, and no GPU is known to have worked", _alone)
    return _doubted(run, "its GPU had been idle, and its memory freed, for long before", _let_go)


def _failures(_: Run, trials: pd.DataFrame) -> pd.Series:
    return trials["state"] == "FAIL"


def _ends_without_work(run: Run, trials: pd.DataFrame) -> pd.Series:
    """FAIL, and PRUNED without any report in a study of which FEWEST or more others have them: nothing that a pruner
    could judge shows that it ran.
    """
    pruned = trials["state"] == "PRUNED"
    if not pruned.any():
        return _failures(run, trials)
    reported = trials["value"].notna() if "value" in trials else pd.Series(False, trials.index)
    keys = pd.MultiIndex.from_frame(trials[["study", "trial"]])
    reported |= keys.isin(pd.MultiIndex.from_frame(run.reports[["study", "trial"]]))
    n_reported = (pruned & reported).groupby(trials["study"]).transform("sum")
    return _failures(run, trials) | (pruned & ~reported & (n_reported >= FEWEST))


def _of_searches(run: Run, trials: pd.DataFrame) -> pd.Series:
    """Trials of studies that have a direction or prune: jobs, and tasks of a table, end when it says so."""
    directed = run.studies.loc[run.studies["directions"].fillna("") != "", "study"]
    return trials["study"].isin([*directed, *trials.loc[trials["state"] == "PRUNED", "study"]])


def _doubted(run: Run, why: str, sign: Sign, ends: Sign = _failures) -> Run:
    if run.trials.empty:
        return run
    trials = run.trials.reset_index(drop=True)
    doubtful = ends(run, trials) & trials["start"].notna() & trials["end"].notna()
    if not doubtful.any():
        return run
    doubtful &= _of_searches(run, trials)
    if "added" in trials:
        doubtful &= trials["added"].isna()
    if not doubtful.any():
        return run
    with_times = trials.assign(doubtful=doubtful, lasted_s=_seconds(trials["end"] - trials["start"]))
    doubted = sign(run, with_times) & doubtful
    if not doubted.any():
        return run
    marked = trials["marked"] if "marked" in trials else pd.Series(pd.NaT, trials.index, dtype=dtype("time"))
    note = _note(trials[doubted], why)
    trials = trials.assign(marked=marked.where(~doubted, trials["end"]), end=trials["end"].where(~doubted))
    return replace(run, trials=trials, info=replace(run.info, notes=(*run.info.notes, note)))


def _note(doubted: pd.DataFrame, why: str) -> str:
    names = [str(number) for number in doubted["trial"].head(MOST_NAMED)]
    n, states = len(doubted), sorted(set(doubted["state"]))
    more = f" and {n - MOST_NAMED:,} more" if n > MOST_NAMED else ""
    which = f"trial{'s' if n > 1 else ''} {', '.join(names) + more if more else listed(names)}"
    noun = "failed trial" if states == ["FAIL"] else "trial"
    return (
        f"{plural(n, noun)} may have ended long before being marked {' or '.join(states)} ({which}): {why}. Of the "
        "time until the mark only what the data prove is counted."
    )


def _seconds(lengths: pd.Series) -> pd.Series:
    return lengths.dt.total_seconds()


def _silent(run: Run, trials: pd.DataFrame) -> pd.Series:
    """Heartbeats stop with the process: within one interval of the end of a trial that ended by itself."""
    if "last_seen" not in trials:
        return pd.Series(False, trials.index)
    late_s = _seconds(trials["end"] - trials["last_seen"])
    ended = trials["state"].isin(["COMPLETE", "PRUNED"]) & ~trials["doubtful"]
    usual_s = late_s.where(ended).groupby(trials["study"]).transform("max")
    return late_s > np.maximum(2 * usual_s.fillna(LEAST_SILENT_S), LEAST_SILENT_S)


def _reused(run: Run, trials: pd.DataFrame) -> pd.Series:
    """A worker that runs one trial at a time began another one before the end."""
    out = pd.Series(False, trials.index)
    names = worker_names(run).reset_index(drop=True)
    named = trials.assign(name=names)[names.notna() & trials["start"].notna()].sort_values("start", kind="stable")
    handover = pd.Timedelta(seconds=HANDOVER_S)
    for _, own in named.groupby("name", sort=False):
        following = own["start"].shift(-1)
        early = own["end"] > following + handover
        ended = own[~own["doubtful"] & own["end"].notna()]
        if not (ended["end"] > ended["start"].shift(-1) + handover).any():
            out[own.index[early & (following > own["start"])]] = True
    return out


def _longest_s(trials: pd.DataFrame) -> pd.Series:
    """The longest finished trial of each trial's study; NaN where too few have finished."""
    finished = trials["state"].isin(["COMPLETE", "PRUNED"]) & ~trials["doubtful"]
    lasted = trials["lasted_s"].where(finished & (trials["lasted_s"] > 0))
    by_study = lasted.groupby(trials["study"])
    return by_study.transform("max").where(by_study.transform("count") >= FEWEST)


def _untold(trials: pd.DataFrame) -> pd.Series:
    """Doubtful ones of which no error is known, and that lasted longer than any trial that finished."""
    told = trials["detail"].notna() if "detail" in trials else False
    return trials["doubtful"] & ~(pd.Series(told, trials.index)) & (trials["lasted_s"] > _longest_s(trials))


def _too_long(trials: pd.DataFrame, untold: pd.Series) -> pd.Series:
    """Those of them that lasted far too long, and not as long as another, as a time limit makes them last."""
    longest_s = _longest_s(trials)
    long = untold & (trials["lasted_s"] > np.maximum(FACTOR * longest_s, longest_s + MORE_S))
    lasted = trials.loc[long, "lasted_s"].sort_values()
    near = lasted.diff() <= ALIKE * lasted
    end = trials.loc[lasted.index, "end"]
    same_end = (end - end.shift()).abs() <= pd.Timedelta(seconds=TOGETHER_S)
    limited = near & ~same_end
    limited |= limited.shift(-1, fill_value=False)
    long[limited.index[limited]] = False
    return long


def _crowded(run: Run, trials: pd.DataFrame) -> pd.Series:
    """With them more trials ran at once than ever did without: those marked together, or that lasted far too long while
    several others began in their place.
    """
    untold = _untold(trials)
    known = trials["start"].notna() & trials["end"].notna()
    if "added" in trials:
        known &= trials["added"].isna()
    if not untold.any() or not (known & ~untold).any():
        return pd.Series(False, trials.index)
    start, end = (trials[name].to_numpy("datetime64[us]") for name in ("start", "end"))
    end = np.maximum(end - np.timedelta64(int(HANDOVER_S * 1e6), "us"), start)
    mine, others = untold.to_numpy(), (known & ~untold).to_numpy()
    most = max(_at_once(start[others], start[others], end[others]).max(), run.info.settings.parallel or 0)
    begun = np.sort(start[known.to_numpy()])
    full = begun[_at_once(begun, start[known.to_numpy()], end[known.to_numpy()]) > most]
    n_full = np.searchsorted(full, end) - np.searchsorted(full, start)
    ends = trials.loc[untold, "end"].sort_values()
    near = ends.diff() <= pd.Timedelta(seconds=TOGETHER_S)
    together = pd.Series(False, trials.index)
    together[ends.index[near | near.shift(-1, fill_value=False)]] = True
    sure = _too_long(trials, untold) & (n_full >= ENOUGH)
    return pd.Series(mine & (n_full > 0), trials.index) & (together | sure)


def _at_once(when: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    begun = np.searchsorted(np.sort(start), when, "right")
    return np.asarray(begun - np.searchsorted(np.sort(end), when, "right"))


def _alone(run: Run, trials: pd.DataFrame) -> pd.Series:
    """Far too long, with nothing else in the run for as long before the end, and no GPU at work meanwhile.

    Either nothing follows, or the next trial does at once: who restarts a search marks first. Between a hung trial that
    is interrupted and the next one a program starts, which takes longer.
    """
    far = _too_long(trials, _untold(trials))
    moments = [trials["start"], trials["end"].where(~far)]
    if "time" in run.reports:
        moments.append(run.reports["time"])
    at = np.sort(pd.concat(moments).dropna().to_numpy("datetime64[us]"))
    end = trials.loc[far, "end"].to_numpy("datetime64[us]")
    before = at[np.searchsorted(at, end - np.timedelta64(int(TOGETHER_S * 1e6), "us")) - 1]
    silent_s = (end - before) / np.timedelta64(1, "s")
    least_s = np.maximum(FACTOR * _longest_s(trials)[far].to_numpy(), MORE_S)
    begun = np.append(np.sort(trials["start"].dropna().to_numpy("datetime64[us]")), np.datetime64("NaT", "us"))
    next_s = (begun[np.searchsorted(begun[:-1], end)] - end) / np.timedelta64(1, "s")
    long = (silent_s > least_s) & ~(next_s > RESTART_S)
    sampled = sampled_gpus(run) if long.any() else {}
    alone = [
        bool(is_long)
        and not _at_work(run, low, high)
        and not held_until(sampled, int(low.astype(int)), int(high.astype(int)))
        for low, high, is_long in zip(before, end, long, strict=True)
    ]
    return pd.Series(alone, trials.index[far], dtype=bool).reindex(trials.index, fill_value=False)


def _let_go(run: Run, trials: pd.DataFrame) -> pd.Series:
    """Longer than any trial that finished, with its GPU idle and its memory freed for long before the end."""
    out = _untold(trials)
    rows = np.flatnonzero(out)
    if len(rows):
        out.iloc[rows] = let_go_before(run, rows, MORE_S)
    return out


def _at_work(run: Run, low: np.datetime64, high: np.datetime64) -> bool:
    """Whether some GPU was active for most of what was recorded between two moments."""
    if not run.info.clock.joined or "util_pct" not in run.gpu:
        return False
    time = run.gpu["time"].to_numpy("datetime64[us]")
    within = run.gpu[(time >= low) & (time < high) & run.gpu["util_pct"].notna()]
    active = (within["util_pct"] >= IDLE_PCT).groupby(within["gpu"]).mean()
    return bool((active > 0.5).any())
