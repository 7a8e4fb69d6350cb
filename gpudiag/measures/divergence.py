"""Trainings whose loss became NaN or infinite and stayed so: from then on they give no result."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gpudiag._run.allocated_gpus import of_a_search
from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._ends.logged import log_ends, rerun_of
from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._steps.lines import floats
from gpudiag.measures._steps.logs import training_logs
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures.base import Profile
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT

COLUMNS = [
    "training", "n_not_finite", "since", "since_step", "since_epoch", "total_steps", "wasted_pct", "wasted_s", "rerun",
]  # fmt: skip


class DivergedTraining(Row):
    """A log whose last losses are NaN or infinite after finite ones, the one with most of them first, and behind all
    others those that ran through later. NaN is unknown.
    """

    training: Column[str] = column("file of the log, the first where it goes on in others", label="training")
    n_not_finite: Column[float] = column("these lines", label="last lines without a finite loss")
    since: Column[pd.Timestamp] = column("when the first of them was logged; NaT without a timestamp")
    since_step: Column[float] = column("its step; NaN where each epoch counts its own", label="from step")
    since_epoch: Column[float] = column("its epoch, where each counts its steps", label="from epoch")
    total_steps: Column[float] = column("steps that the log states", label="steps stated")
    wasted_pct: Column[float] = column(
        "share of the training from the first of them on: of its time, without timestamps of its steps, and without "
        "these of its lines",
        label="share of the training",
    )
    wasted_s: Column[float] = column("time from the first to the last of them", label="time without a finite loss")
    rerun: Column[str] = column("file of a later log that did all of its steps, '' without one")


class DivergenceProfile(Profile, topic="divergence"):
    """Losses that are no finite number to the end of the log. Logs of trials are none of these, whose states tell."""

    trainings: Rows = table_of(DivergedTraining)
    n_logs: Fact[int] = fact("logs that state losses")
    n_never: Fact[int] = fact("logs without a finite one, of which nobody knows whether it is what is trained on")
    n_not_finite: Fact[float] = fact(
        "last lines of the first training; 0 without one", label="last lines without a finite loss"
    )
    wasted_gpu_h: Fact[float] = fact(
        "GPU time from the first of these lines to the last, on the GPUs that worked then; NaN unknown, and of several "
        "trainings",
        label="GPU time without a finite loss",
    )
    has_trials: Fact[bool] = fact("there are trials of a search, so that no log is looked at")


@memoized
def measure_divergence(run: Run) -> DivergenceProfile:
    """Trainings that lost their loss for good. Needs log lines on steps that state one."""
    has_trials = len(of_a_search(run.trials)) > 0
    lines = _with_loss(run)
    if lines.empty and not has_trials:
        raise NotMeasurable(
            "No line on a step states a loss.",
            "Let the training log its loss in its lines on steps, and put the log into the run folder.",
        )
    logs = [] if has_trials else [part for _, part in lines.groupby("log", sort=True)]
    rows = [row for part in logs if (row := _diverged(part, run)) is not None]
    table = pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(COLUMNS[3:-1], float) | {"n_not_finite": float})
    table["since"] = pd.to_datetime(table["since"], utc=True)
    table["rerun"] = _reruns(run, list(table["training"]))
    order = table.assign(again=table["rerun"] != "").sort_values(
        ["again", "n_not_finite", "training"], ascending=[True, False, True], kind="stable"
    )
    table = table.loc[order.index].reset_index(drop=True)
    return DivergenceProfile(
        trainings=table,
        n_logs=len(logs),
        n_never=sum(not (part["not_finite"] == 0).any() for part in logs),
        n_not_finite=float(table["n_not_finite"].iloc[0]) if len(table) else 0.0,
        wasted_gpu_h=_gpu_h(run, table.iloc[0]) if len(logs) == len(table) == 1 else math.nan,
        has_trials=has_trials,
    )


def _with_loss(run: Run) -> pd.DataFrame:
    """Lines that state a loss, with the log that their file is part of and its place in it; those of a file that tells
    of a log's steps again only where no other states the loss.
    """
    lines = run.steps
    if "not_finite" not in lines:
        return lines.iloc[:0]
    lines = lines[lines["not_finite"].notna()].drop_duplicates()
    logs = training_logs(run)
    of_logs, told_by, stating = logs.lines, dict(logs.told_by), set(lines["path"])
    lines = lines[np.array([told_by.get(str(path)) not in stating for path in lines["path"]], bool)]
    known = of_logs.drop_duplicates("path").set_index("path") if len(of_logs) else pd.DataFrame(columns=["log", "part"])
    paths = lines["path"].map(lambda path: told_by.get(str(path), str(path)))
    log, part = (paths.map(known[name].to_dict()) for name in ("log", "part"))
    return lines.assign(log=log.astype(object).where(log.notna(), lines["path"]), part=part.astype(float).fillna(0.0))


def _diverged(lines: pd.DataFrame, run: Run) -> dict[str, object] | None:
    """Of one log; None where its last line states a finite loss, or none does: bars may show NaN for no loss at all."""
    lines = lines.sort_values(["part", "line"], kind="stable")
    finite = np.flatnonzero(floats(lines, "not_finite") == 0)
    begin = int(finite[-1]) + 1 if len(finite) else len(lines)
    if begin == len(lines):
        return None
    first = lines.iloc[begin]
    # Where there are several epochs, steps are counted anew in each.
    epoch, in_order = floats(lines, "epoch"), bool((np.diff(floats(lines, "step")) >= 0).all())
    counts_steps = bool((lines["unit"] == "step").all()) and len(np.unique(epoch)) == 1 and in_order
    wasted_s, part = _wasted(lines, begin, counts_steps=counts_steps)
    if math.isnan(wasted_s) and in_order:
        wasted_s = part * _whole_s(run, set(lines["path"]))
    return {
        "training": str(first["log"]),
        "n_not_finite": len(lines) - begin,
        "since": first["time"],
        "since_step": float(first["step"]) if counts_steps else math.nan,
        "total_steps": float(floats(lines[-1:], "total")[0]) if counts_steps else math.nan,
        "since_epoch": math.nan if counts_steps else float(epoch[begin]),
        "wasted_pct": 100 * part,
        "wasted_s": wasted_s if wasted_s > 0 else math.nan,
    }


def _reruns(run: Run, diverged: list[str]) -> list[str]:
    """By training the later log that did all of its steps, with a finite loss in the end."""
    if not diverged:
        return []
    ends = log_ends(run)
    known = {end.training: rerun_of(end, [one for one in ends if one.training not in diverged]) for end in ends}
    return [known.get(training, "") for training in diverged]


def _wasted(lines: pd.DataFrame, begin: int, *, counts_steps: bool) -> tuple[float, float]:
    """Seconds from that line to the last, and the part of the log that lies behind it."""
    if lines["time"].notna().all():
        time_us = microseconds(lines["time"])
        begun_s = float(np.nan_to_num(floats(lines, "begun_s")[0]))
        whole_s = (time_us[-1] - time_us[0]) / SECOND_US + begun_s
        wasted_s = max(float(time_us[-1] - time_us[begin]) / SECOND_US, 0.0)
        return wasted_s, wasted_s / whole_s if whole_s > 0 else math.nan
    step = floats(lines, "step")
    if counts_steps and step[-1] > 0:
        return math.nan, float(step[-1] - step[begin]) / step[-1]
    return math.nan, (len(lines) - 1 - begin) / len(lines)


def _whole_s(run: Run, paths: set[str]) -> float:
    """What a file states of how long its one training took; NaN unknown."""
    lines = run.steps[run.steps["path"].isin(paths)]
    elapsed_s = floats(lines, "elapsed_s")
    one = len(paths) == 1 and lines["series"].nunique() == 1 and len(np.unique(floats(lines, "epoch"))) == 1
    return float(np.nanmax(elapsed_s)) if one and (elapsed_s > 0).any() else math.nan


def _gpu_h(run: Run, row: pd.Series) -> float:
    """On the GPUs that worked meanwhile, or at all where no timestamp tells when that was."""
    if not {"util_pct", "time"} <= set(run.gpu.columns) or not row["wasted_s"] > 0:
        return math.nan
    samples, found_s = cells(run, "util_pct"), []
    for _, own in slices(samples):
        part = samples.iloc[own]
        if pd.notna(row["since"]) and run.info.clock.joined:
            since_us = int(row["since"].value // 1000)
            start_us = part["start_us"].clip(lower=since_us)
            end_us = part["end_us"].clip(upper=since_us + int(row["wasted_s"] * SECOND_US))
            inside_s = (end_us - start_us).clip(lower=0) / SECOND_US
        else:
            inside_s = part["weight_s"]
        if ((part["util_pct"] >= IDLE_PCT) & (inside_s > 0)).any():
            found_s.append(min(float(inside_s.sum()), float(row["wasted_s"])))
    return sum(found_s) / 3600 if found_s else math.nan
