"""What the GPU of each trial waited for, of trials whose own training log tells."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._time.gpu_time import GpuTime, gpu_time
from gpudiag.measures._time.no_waits import between_jobs
from gpudiag.measures._waits.bounds import Share
from gpudiag.measures._waits.divided import LoggedGpu, divided_by_log, logged_gpus
from gpudiag.measures._waits.logged import LoggedTraining, behind_steps
from gpudiag.measures._waits.pieces import unused_time
from gpudiag.measures.base import Profile, need_gpu
from gpudiag.memo import memoized
from gpudiag.run import Run

LEAST_PCT = 5.0
"""Share of a trial's GPU time below which a wait is not worth a name (a default without a published source)."""
INSIDE = 0.9
"""Share of a log's time that lies within its trial: clocks and the printing of last lines reach a little beyond."""


class TrialCause(Row):
    """A cause in the time of a trial on a GPU. All of a trial add up to its time without a kernel exactly."""

    study: Column[str] = column("name of the study")
    trial: Column[int] = column("number of the trial", label="trial")
    gpu: Column[str] = column("GPU")
    cause: Column[str] = column("what it waited for, as in measure causes")
    source: Column[str] = column("what says so: record, log, signature; '' for unknown")
    gpu_s: Column[float] = column("GPU time that waited for it")
    low_gpu_s: Column[float] = column("at least")
    high_gpu_s: Column[float] = column("at most")
    share_pct: Column[float] = column("its share of the observed time of the trial on this GPU")


class LargestWait(Row):
    """A cause that is the largest wait of some trials, 5 % of their time or more; those of most trials first."""

    n_trials: Column[int] = column("trials of which it is the largest wait", label="trials")
    least_pct: Column[float] = column("the least share of a trial's GPU time among these")
    most_pct: Column[float] = column("the most likewise")


class TrialWaitsProfile(Profile, topic="trial_waits"):
    """What trials waited for, where each has a log of its own."""

    causes: Rows = table_of(TrialCause)
    largest: Rows = table_of(LargestWait)
    n_told: Fact[int] = fact("trials whose log tells", label="trials with a log")
    unused_pct: Fact[float] = fact("share of their GPU time without a kernel")
    unknown_pct: Fact[float] = fact("share of that which no source explains", label="not explained")


@memoized
def measure_trial_waits(run: Run) -> TrialWaitsProfile:
    """Divide the time of each trial without a kernel among its causes. Needs gpu.util_pct, trials on the telemetry's
    clock and training logs with timestamps that lie within one trial each.
    """
    need_gpu(run, "util_pct")
    rows, observed_s = [], 0.0
    for about, of_trial, shares in _told(run):
        observed_s += of_trial.part.observed_s
        for one in shares:
            share_pct = 100 * one.s / of_trial.part.observed_s
            values = {"cause": one.cause, "source": one.source, "gpu_s": one.s, "low_gpu_s": one.low_s}
            values |= {"high_gpu_s": one.high_s, "share_pct": share_pct, "observed_s": of_trial.part.observed_s}
            rows.append(about | values)
    if not rows:
        raise NotMeasurable(
            "No training log tells of one trial alone, on a GPU that is known to be its own.",
            "Let each trial write a log with timestamps (a file of its own, or lines that name the trial), and record "
            "on which GPU it runs.",
        )
    causes = pd.DataFrame(rows)
    unused_s = float(causes["gpu_s"].sum())
    unknown_s = float(causes["gpu_s"][causes["cause"] == "unknown"].sum())
    return TrialWaitsProfile(
        causes=causes.drop(columns="observed_s"),
        largest=_largest(causes),
        n_told=len(causes.drop_duplicates(["study", "trial"])),
        unused_pct=100 * unused_s / observed_s,
        unknown_pct=100 * unknown_s / unused_s if unused_s else math.nan,
    )


def _told(run: Run) -> Iterator[tuple[dict[str, object], LoggedGpu, list[Share]]]:
    """Each trial that is alone on its GPU and has a log: what it is, its time there, and the causes in it."""
    time, gpus = gpu_time(run), logged_gpus(run)
    told = {gpu: of_gpu for gpu, of_gpu in gpus.items() if of_gpu.logs and of_gpu.surely and gpu in time.places}
    for gpu, of_gpu in told.items():
        for at in time.places[gpu].tolist():
            logs = _logs_of(time, at, of_gpu)
            if not logs:
                continue
            own = time.timelines[gpu].during(int(time.trials.start_us[at]), int(time.trials.end_us[at]))
            part = unused_time(own, time, gpu, [one.span_us for one in logs], between_jobs(run), behind_steps(logs))
            if part.observed_s > 0 and not bool((part.running > 1).any()):
                row = time.trials.rows.iloc[at]
                of_trial = LoggedGpu(part, logs, surely=True)
                about = {"study": str(row["study"]), "trial": int(row["trial"]), "gpu": gpu}
                yield about, of_trial, divided_by_log(run, gpu, of_trial)


def _logs_of(time: GpuTime, at: int, of_gpu: LoggedGpu) -> list[LoggedTraining]:
    """The logs that lie within the trial, and name it where they name any."""
    start, end = int(time.trials.start_us[at]), int(time.trials.end_us[at])
    number = float(time.trials.rows["trial"].iloc[at])
    found = []
    for one in of_gpu.logs:
        low, high = one.span_us
        inside = min(high, end) - max(low, start)
        if inside >= INSIDE * (high - low) and (math.isnan(one.trial) or one.trial == number):
            found.append(one)
    return found


def _largest(causes: pd.DataFrame) -> pd.DataFrame:
    """By cause: the trials of which it is the largest wait, on all their GPUs."""
    waits = causes.groupby(["study", "trial", "cause"], sort=False)["gpu_s"].sum().reset_index()
    on_all = causes.drop_duplicates(["study", "trial", "gpu"]).groupby(["study", "trial"])["observed_s"].sum()
    waits["share_pct"] = 100 * waits["gpu_s"] / on_all.loc[waits.set_index(["study", "trial"]).index].to_numpy()
    waits = waits[waits["share_pct"] >= LEAST_PCT].sort_values("gpu_s", ascending=False, kind="stable")
    top = waits.drop_duplicates(["study", "trial"])
    found = top.groupby("cause", sort=False)["share_pct"].agg(n_trials="size", least_pct="min", most_pct="max")
    return (
        found.sort_values("n_trials", ascending=False, kind="stable").astype({"n_trials": np.int64}).rename_axis("wait")
    )
