"""The offset between the clock of training logs and the telemetry's, in a run without trials."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from gpudiag.alignment.apply import later
from gpudiag.alignment.establish import correlate, zone_of
from gpudiag.alignment.signals import SampleTimes, seconds
from gpudiag.run import ClockRecord, Run
from gpudiag.schema import IDLE_PCT
from gpudiag.spans import held_within
from gpudiag.statement import Statement

PAUSE_TIMES, PAUSE_S = 2.0, 5.0
TOLD_TIMES, TOLD_S = 1.1, 2.0
"""Between two lines there was more than steps where they lie five seconds more than twice as far apart as usual; where
the log tells of other work in between, two seconds more than 1.1 times (as in METHODS 9.1)."""
PERIODS, LINES = 20.0, 3.0
"""A GPU is without work where none is seen for 20 samples, and for the time of three lines (defaults without a
published source): one that waits within its steps works in each of them."""
MISPLACED = 0.1
MISPLACED_S = 60.0
"""From a tenth of the logged steps on, and a minute, something is wrong with the clock (defaults without a published
source)."""

GIVEN = "Stated as clock_offset_s in run.toml."
APART = (
    "{misplaced_s} of {logged_s} of logged steps lie where no GPU was seen at work, and GPUs worked for {elsewhere_s} "
    "before or after the log. So the log has another clock, or is of other work, and is not joined with the telemetry."
)
FITS = (
    "{misplaced_s} of {logged_s} of logged steps lay where no GPU was seen at work. {signals} fit the log best at "
    "{best_s:as shift} (correlation {fit:as ratio}; other whole quarters of an hour reach {rival_fit:as ratio} at "
    "most)."
)

AS_WRITTEN = ClockRecord(method="none")


@dataclass(frozen=True)
class _Placed:
    """Seconds of logged steps: all, and those on work of GPUs; and of work before and after the logs."""

    logged_s: float
    on_work_s: float
    elsewhere_s: float

    @property
    def misplaced_s(self) -> float:
        return self.logged_s - self.on_work_s

    @property
    def is_wrong(self) -> bool:
        """True where steps lie beside the work, and work beside the steps: either alone may be for want of a record."""
        least_s = max(MISPLACED * self.logged_s, MISPLACED_S)
        return self.misplaced_s > least_s and self.elsewhere_s > least_s


def establish_logs_clock(run: Run) -> ClockRecord:
    """How the clock of the logs stands to the telemetry's.

    Tested are runs without trials whose logs carry timestamps: where steps lie on idle or unrecorded GPUs while others
    work elsewhere, the two are not joined, unless one whole quarter of an hour fits as clearly as trials must
    (METHODS 2) and puts the steps on the work. Timestamps that carry a zone on both sides are taken at their word.
    """
    steps = _of_one_rank(run.steps)
    if len(run.trials) or run.gpu.empty or "util_pct" not in run.gpu or len(steps) < 2:
        return ClockRecord()
    given = run.info.given_offset_s
    if given is not None:
        return ClockRecord(given, "strong", "given", Statement(GIVEN), applied_s=given)
    if _zones_known(run):
        return ClockRecord(method="utc")
    stretches, line_s = _stretches(steps)
    if stretches.empty:
        return ClockRecord()
    samples = SampleTimes.of(run)
    work = _work(run, max(PERIODS * np.nan_to_num(samples.period_s), LINES * line_s))
    as_written = _placed(stretches, 0.0, work)
    if not as_written.is_wrong:
        return AS_WRITTEN
    made = correlate(run, samples, stretches, zone_of(run))
    if made.confidence == "strong" and not made.offset_s:
        return replace(AS_WRITTEN, confidence="strong", candidates=made.candidates)
    if made.confidence == "strong" and not _placed(stretches, made.offset_s, work).is_wrong:
        fit = made.evidence.values["evidence"]  # of another time zone, which seconds do not matter to
        assert isinstance(fit, Statement)
        said = {name: fit.values[name] for name in ("signals", "best_s", "fit", "rival_fit")}
        told = Statement(FITS, misplaced_s=as_written.misplaced_s, logged_s=as_written.logged_s, **said)
        return ClockRecord(made.offset_s, "strong", "correlation", told, made.offset_s, made.candidates)
    told = Statement(
        APART,
        misplaced_s=as_written.misplaced_s,
        logged_s=as_written.logged_s,
        elsewhere_s=as_written.elsewhere_s,
    )
    return ClockRecord(confidence="undetermined", method="none", evidence=told, joined=False)


def apply_logs_clock(run: Run, record: ClockRecord) -> Run:
    """The run with ``record`` kept and its ``applied_s`` added to the timestamps of the logs that tell of steps."""
    info = replace(run.info, logs_clock=record)
    if not record.applied_s:
        return replace(run, info=info)
    logs = run.events["path"].isin(run.steps["path"]) if "path" in run.events else np.zeros(len(run.events), bool)
    moved = np.where(logs, record.applied_s, 0.0)
    return replace(
        run,
        steps=later(run.steps, ("time",), np.full(len(run.steps), record.applied_s)),
        events=later(run.events, ("time",), moved),
        info=info,
    )


def _of_one_rank(steps: pd.DataFrame) -> pd.DataFrame:
    """The lines with a timestamp; of ranks, which take their steps together, those of the first."""
    dated = steps[steps["time"].notna()]
    if "rank" not in dated or dated["rank"].isna().all():
        return dated
    return dated[dated["rank"].isna() | (dated["rank"] == dated["rank"].min())]


def _zones_known(run: Run) -> bool:
    logs = set(run.steps["path"])
    clocks = [one.clock for one in run.info.inputs if one.kind == "telemetry" or one.path in logs]
    return bool(clocks) and all(clock == "utc" for clock in clocks)


def _stretches(steps: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """Starts and ends of steps without a pause, by log, and how far apart lines are; seconds.

    Where in a long interval the pause lies, no line says: the steps in it are taken to follow it.
    """
    starts, ends, apart = [], [], []
    for _, log in steps.groupby(["path", "series"], sort=False):
        log = log.sort_values("line", kind="stable")
        at, done = seconds(log["time"]), log["step"].to_numpy(float)
        took, n = np.diff(at), np.diff(done)
        timed = (took > 0) & (n > 0)
        if not timed.any():
            continue
        each_s = float(np.median(took[timed] / n[timed]))
        own_s = np.maximum(n, 0) * each_s
        told = (log["since"].fillna("") != "").to_numpy()[1:] if "since" in log else np.zeros(len(n), bool)
        longest_s = np.where(told, TOLD_TIMES * own_s + TOLD_S, PAUSE_TIMES * own_s + PAUSE_S)
        broken = np.flatnonzero((n < 0) | (took > longest_s))
        before_s = done[0] * each_s if done[0] <= PAUSE_TIMES * np.median(n[timed]) else 0.0
        starts += [at[0] - before_s, *np.maximum(at[broken + 1] - own_s[broken], at[broken])]
        ends += [*at[broken], at[-1]]
        apart.append(float(np.median(took[timed])))
    times = [pd.to_datetime(np.round(np.array(edge) * 1e6).astype("int64"), unit="us", utc=True)
             for edge in (starts, ends)]  # fmt: skip
    return pd.DataFrame({"start": times[0], "end": times[1]}), max(apart, default=0.0)


def _work(run: Run, longest_s: float) -> np.ndarray:
    """Starts and ends of the times at which any GPU worked, but for pauses of so many seconds; rows of two."""
    active = np.sort(seconds(run.gpu.loc[run.gpu["util_pct"] >= IDLE_PCT, "time"]))
    if not len(active):
        return np.zeros((0, 2))
    cuts = np.flatnonzero(np.diff(active) > longest_s)
    return np.column_stack([active[np.append(0, cuts + 1)], active[np.append(cuts, len(active) - 1)]])


def _placed(stretches: pd.DataFrame, offset_s: float, work: np.ndarray) -> _Placed:
    """Where the logged steps lie if that is added to their timestamps."""
    start, end = seconds(stretches["start"]) + offset_s, seconds(stretches["end"]) + offset_s
    began, ended = work.T
    logged = held_within(began, ended, np.array([start.min()]), np.array([end.max()]))
    return _Placed(
        logged_s=float((end - start).sum()),
        on_work_s=float(held_within(start, end, began, ended).sum()),
        elsewhere_s=float((ended - began).sum() - logged.sum()),
    )
