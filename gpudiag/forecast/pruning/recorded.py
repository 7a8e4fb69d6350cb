"""What a study recorded, in the form and the order that a pruner saw it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag._run.directions import STATE_DIRECTION
from gpudiag.errors import MOST_NAMES, ConfigError, NotMeasurable
from gpudiag.forecast.pruning.startup_bounds import StartupBounds, startup_bounds
from gpudiag.measures._time.concurrency import assign_workers
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.trial_intervals import intervals_of, trial_intervals
from gpudiag.measures._trials.constraints import infeasible
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import STOPPED
from gpudiag.spans import seconds

DIRECTIONS = {"MINIMIZE": "minimize", "MAXIMIZE": "maximize"}
NO_REPORTS = "No trial reported an intermediate value, so there is no curve to replay."
REPORT = "Call trial.report(value, epoch) after each epoch."

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Recorded:
    """One study: arrays over its trials in the order of their starts.

    ``steps`` and ``values`` are lists, one report an entry, in the order reported; a step that was reported twice
    counts once, the first time, as Optuna's ``report`` has it. ``times_s`` are seconds on the trials' clock when each
    was reported: recorded (``timed``), or else spread evenly over the life after the typical start-up. ``done`` is the
    last step of each, counted from 1, ``every`` the steps from one report to the next. ``ordered`` is True where the
    order of reports among trials is known: they carry times, or no two trials overlap. ``value`` is the objective of
    COMPLETE trials, ``infeasible`` whether one broke a constraint. ``ran`` is False for what was added to the study, by
    hand or as a copy: the pruner sees it, and neither cuts it nor saves its time, which is unknown here. ``workers`` is
    the most that ran at once, or the number that was asked for if that is less; ``gap_s`` the median wait between two
    trials of a worker.
    """

    study: str
    direction: str
    number: Array
    state: list[str]
    value: Array
    infeasible: Array
    ran: Array
    steps: list[list[int]]
    values: list[list[float]]
    times_s: list[Array]
    start_s: Array
    end_s: Array
    done: Array
    duration_s: Array
    startup: StartupBounds
    timed: bool
    max_steps: int
    counts_from: int
    every: int
    ordered: bool
    workers: int
    gap_s: float

    def __len__(self) -> int:
        return len(self.number)


@memoized
def recorded_studies(run: Run, *, study: str | None = None, direction: str | None = None) -> tuple[Recorded, ...]:
    """The studies that can be replayed.

    Args:
        run: needs trials and reports.
        study: the one to replay; default all.
        direction: 'minimize' or 'maximize', for studies whose record does not say.

    Raises:
        ConfigError: there is no such study.
        NotMeasurable: there are no intermediate values, the study has several objectives (Optuna does not prune
            those), or nothing says which direction is better.
    """
    if run.reports.empty:
        raise NotMeasurable(NO_REPORTS, REPORT)
    names = [str(name) for name in run.trials["study"].unique()]
    if study is not None and study not in names:
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        raise ConfigError(f"no study '{study}' in this run; its studies are: {', '.join(names[:MOST_NAMES])}{more}.")
    directions = dict(zip(run.studies["study"], run.studies["directions"], strict=True))
    begun = set(run.trials.loc[run.trials["state"] != "WAITING", "study"])
    with_reports = [name for name in run.reports["study"].unique() if study in (None, name) and name in begun]
    if not with_reports:
        raise NotMeasurable(f"Study '{study}' reported no intermediate value." if study else NO_REPORTS, REPORT)
    single = [name for name in with_reports if "," not in str(directions.get(name) or "")]
    if not single:
        raise NotMeasurable(
            f"Study '{with_reports[0]}' has several objectives, and Optuna does not prune such studies.",
            "Replay a study with one objective.",
        )
    out = []
    for name in single:
        way = DIRECTIONS.get(str(directions.get(name) or "").upper(), direction or "")
        if way not in DIRECTIONS.values():
            raise NotMeasurable(
                f"Nothing says whether study '{name}' minimizes or maximizes.",
                f"{STATE_DIRECTION} gd.replay_pruner takes direction= as well.",
            )
        out.append(_record(run, name, way))
    return tuple(out)


def _record(run: Run, study: str, direction: str) -> Recorded:
    intervals = _as_seen(run)
    intervals["value"] = run.trials["value"].to_numpy(float) if "value" in run.trials else np.nan
    intervals["infeasible"] = infeasible(run.trials)
    intervals["ran"] = ~_was_added(run)
    intervals = intervals[(intervals["study"] == study) & (intervals["state"] != "WAITING")]
    dated = bool(intervals["start"].notna().all())
    # without timestamps the numbers are the order
    intervals = intervals.sort_values(["start", "trial"] if dated else "trial")
    step, value, times, timed = _reports(run.reports[run.reports["study"] == study], intervals["trial"])
    n_reports, every = np.array([len(part) for part in step]), _steps_between(step)
    first = _first_step(step, every)
    start_s, end_s = seconds(intervals["start"]), seconds(intervals["end"])
    duration_s = intervals["duration_s"].to_numpy(float)
    if dated:
        startup = startup_bounds(run, intervals, duration_s, n_reports, every)
        start_s, end_s = _filled(start_s, end_s, n_reports, startup.typical_s)
    else:
        startup, (start_s, end_s) = StartupBounds.none(len(intervals)), _in_turn(len(intervals))
    timed &= dated
    if timed:
        first_s = np.array([part[0] if len(part) else math.nan for part in times]) - start_s
        startup = startup.before(np.maximum(first_s, 0.0))
    else:
        times = [_spread(*each) for each in zip(start_s, end_s, n_reports, startup.typical_s, strict=True)]
    # Whatever the clocks say, a trial reports after its start and ends after that.
    times = [np.maximum(part, begun) for part, begun in zip(times, start_s, strict=True)]
    end_s = np.maximum(end_s, start_s)
    workers, gap_s = _pool(start_s, end_s)
    done = np.array([part.max() - first + 1 if len(part) else 0 for part in step])
    final = intervals["value"].to_numpy()
    last = np.array([part[-1] if len(part) else math.nan for part in value])
    return Recorded(
        study=study,
        direction=direction,
        number=intervals["trial"].to_numpy(),
        state=intervals["state"].replace(STOPPED, "FAIL").tolist(),
        value=np.where(np.isnan(final), last, final),
        infeasible=intervals["infeasible"].to_numpy(bool),
        ran=intervals["ran"].to_numpy(bool),
        steps=[part.tolist() for part in step],
        values=[part.tolist() for part in value],
        times_s=times,
        start_s=start_s,
        end_s=end_s,
        done=done,
        duration_s=duration_s,
        startup=startup,
        timed=timed,
        max_steps=max(int(done.max()), run.info.settings.max_steps or 0),
        counts_from=first,
        every=every,
        ordered=timed or workers == 1,
        workers=min(workers, run.info.settings.parallel or workers),
        gap_s=gap_s,
    )


def _reports(reports: pd.DataFrame, trials: pd.Series) -> tuple[list[Array], list[Array], list[Array], bool]:
    """Steps, values and times (s) of each trial's reports in the order of these, and whether the times are known."""
    reports = reports.drop_duplicates(["trial", "step"], keep="first")
    reports = reports[reports["trial"].isin(trials)]
    timed = "time" in reports and bool(reports["time"].notna().all())
    at = pd.Series(np.arange(len(trials)), trials.to_numpy()).reindex(reports["trial"]).to_numpy()
    time_s = microseconds(reports["time"]) / SECOND_US if timed else np.zeros(len(reports))
    order = np.lexsort((np.arange(len(reports)), time_s, at))
    cuts = np.cumsum(np.bincount(at, minlength=len(trials)))[:-1]
    columns = (reports["step"].to_numpy(np.int64), reports["value"].to_numpy(float), time_s)
    step, value, times = (np.split(column[order], cuts) for column in columns)
    return step, value, times, timed


def _steps_between(step: Sequence[Array]) -> int:
    """Steps from one report of a trial to the next, the median; 1 where no trial reported twice."""
    apart = np.concatenate([np.diff(np.sort(part)) for part in step] or [np.zeros(0, np.int64)])
    return max(1, int(np.median(apart))) if len(apart) else 1


def _first_step(step: Sequence[Array], every: int) -> int:
    """0 or 1, the number of a study's first step: who reports every third of steps 0, 1, 2 ... reports 2, 5, 8."""
    whole = np.concatenate(list(step) or [np.zeros(0, np.int64)])
    from_zero = every > 1 and bool(((whole + 1) % every == 0).all())
    return 0 if whole.min(initial=1) <= 0 or from_zero else 1


def _as_seen(run: Run) -> pd.DataFrame:
    """All that the pruner saw, results that were added to the study too: what these took was not here."""
    if "added" not in run.trials:
        return intervals_of(run)
    out = trial_intervals(run.trials.drop(columns="added"))
    return out.assign(duration_s=out["duration_s"].mask(_was_added(run)))


def _was_added(run: Run) -> Array:
    return run.trials["added"].notna().to_numpy() if "added" in run.trials else np.zeros(len(run.trials), bool)


def _filled(start_s: Array, end_s: Array, n_reports: Array, startup_s: Array) -> tuple[Array, Array]:
    """A trial without an end is given one at the usual pace of the study, for the order of its reports alone."""
    known = np.isfinite(end_s) & (n_reports > 0)
    pace_s = np.median((end_s - start_s - startup_s)[known] / n_reports[known]) if known.any() else 1.0
    return start_s, np.where(np.isfinite(end_s), end_s, start_s + startup_s + max(pace_s, 0.0) * n_reports)


def _in_turn(n: int) -> tuple[Array, Array]:
    """Without timestamps: one trial after the other."""
    return np.arange(n, dtype=float), np.arange(1, n + 1, dtype=float)


def _spread(start_s: float, end_s: float, n: int, startup_s: float) -> Array:
    """Evenly from the end of the start-up to the end of the trial, the last one there."""
    first = min(start_s + startup_s, end_s)
    return first + (end_s - first) * np.arange(1, n + 1) / max(n, 1)


def _pool(start_s: Array, end_s: Array) -> tuple[int, float]:
    """The most trials at once, and the median wait of a worker between two of them."""
    start_us, end_us = (np.round(x * SECOND_US).astype(np.int64) for x in (start_s, end_s))
    workers = assign_workers(start_us, end_us)
    gaps = [
        np.diff(np.stack([end_s[workers == k][:-1], start_s[workers == k][1:]]), axis=0) for k in np.unique(workers)
    ]
    gap_s = np.concatenate([gap.ravel() for gap in gaps])
    return len(gaps), max(0.0, float(np.median(gap_s))) if len(gap_s) else 0.0
