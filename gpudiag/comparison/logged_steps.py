"""Times of a step by the logs of two trainings without trials: of a sample or a token where steps differ in these."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from gpudiag.comparison.intervals import Mean, Ratio, log_ratio, series_mean, unpaired_ratio
from gpudiag.comparison.quantity import INVALID, PRICE, TIME, Quantity, make
from gpudiag.comparison.side import Side
from gpudiag.comparison.step_work import StepWork, n_gpus, step_work
from gpudiag.measures._steps.courses import courses
from gpudiag.measures._steps.ranks import in_lock_step, one_of_each
from gpudiag.measures._steps.whole_time import whole_times
from gpudiag.statement import Statement

MOST_STRETCHES = 400
"""More lines than these are taken together, in their order: an interval needs no more of them."""
SAME_STEP_WORK = 0.1
"""Part by which the tokens or samples of a step may differ, and it is still the same work (a default without a
published source)."""
OF_TWO_RUNS = "The interval is of these two runs: by how much the same training differs from run to run is not in it."
NO_PAUSES = Statement(f"Pauses are left out. {OF_TWO_RUNS}")
WITH_PAUSES = Statement(f"Evaluations, checkpoints and other pauses are in it; restarts are not. {OF_TWO_RUNS}")
LEARNS = "A batch of another size learns otherwise: how many samples a result takes, this does not say."
WHOLE = "logged_whole_time"
LOGGED = ("logged_wall_time", "logged_work_time", "logged_step_time", WHOLE)
"""Times by the logs of trainings without trials, in the order in which a verdict is about them."""
OTHER_STEPS = Statement("A step is other work in the two runs.")
AMOUNTS = {"token": (1000.0, "1,000 tokens"), "sample": (1.0, "a sample")}


@dataclass(frozen=True, eq=False)
class Logged:
    """The lines of two logs as intervals, what a step holds where both state it, and what times are said to be of."""

    sides: tuple[Side, Side]
    lines: tuple[pd.DataFrame, pd.DataFrame]

    @property
    def comparable(self) -> bool:
        """Whether both count the same: one unit, and one kind of line or one total. A bar's kind is its name."""
        a, b = self.lines
        if a.empty or b.empty or a["unit"].iloc[0] != b["unit"].iloc[0]:
            return False
        return any(set(a[name].dropna()) & set(b[name].dropna()) for name in ("kind", "total"))

    @cached_property
    def work(self) -> StepWork | None:
        return step_work(self.sides, self.lines)

    @property
    def other_work(self) -> bool:
        """True if a step is known to be another amount of work."""
        return self.work is not None and not math.isclose(self.work.ratio, 1, rel_tol=SAME_STEP_WORK)

    @property
    def step(self) -> str:
        """What the lines count, one of it."""
        return "a step" if self.lines[0]["unit"].iloc[0] == "step" else "an epoch"

    @property
    def per_step(self) -> tuple[tuple[float, float], str]:
        """By what times of a step are divided, and what they are of then."""
        if self.work is not None and self.other_work:
            amount, what = AMOUNTS[self.work.unit]
            return (self.work.baseline / amount, self.work.experiment / amount), what
        return (1.0, 1.0), self.step


def logged(baseline: Side, experiment: Side) -> Logged:
    """What the logs of two trainings say of their steps."""
    return Logged((baseline, experiment), (_lines(baseline), _lines(experiment)))


def logged_times(baseline: Side, experiment: Side) -> list[Quantity]:
    """Time of a step, of a sample or token where steps hold other numbers of these, and the same with all pauses; where
    the logs do not tell these, the time that both state of a training of one length.
    """
    found = logged(baseline, experiment)
    if not found.comparable:
        return _whole_time(baseline, experiment)
    out = [_step_time("logged_step_time", found, (1.0, 1.0), found.step)]
    if found.other_work:
        per, what = found.per_step
        out = [replace(out[0], verdict=INVALID, tested=False, note=OTHER_STEPS)]
        work = _step_time("logged_work_time", found, per, what)
        out.append(replace(work, note=Statement("{note} {learns}", note=work.note, learns=LEARNS)))
    return out + _wall_time(found)


def n_logged(*sides: Side) -> list[int]:
    """Stretches of steps by side; nothing where they are not compared."""
    found = logged(*sides)
    return [len(_each_s(part)) for part in found.lines] if found.comparable else []


def _step_time(name: str, found: Logged, per: tuple[float, float], of: str) -> Quantity:
    a, b = (_each_s(part) / amount for part, amount in zip(found.lines, per, strict=True))
    values = [float(np.exp(np.log(x).mean())) for x in (a, b)]
    title = Statement("Time of {of} by the training logs, geometric mean", of=of)
    made = make(name, title, "s", TIME, values, unpaired_ratio(a, b), note=NO_PAUSES)
    return replace(made, n_baseline=float(len(a)), n_experiment=float(len(b)))


def _wall_time(found: Logged) -> list[Quantity]:
    """The mean time with its pauses where there are any, and its GPU time where the runs have other numbers of GPUs."""
    per, what = found.per_step
    gpus = [n_gpus(side) for side in found.sides]
    out = []
    if any((part["paused_s"] > 0).any() for part in found.lines):
        title = Statement("Time of {of} by the training logs, pauses included", of=what)
        out.append(_of_means("logged_wall_time", title, "s", TIME, found, (1 / per[0], 1 / per[1])))
    if gpus[0] != gpus[1] and not math.isnan(sum(gpus)):
        title = Statement("GPU time of {of} by the training logs, pauses included", of=what)
        out.append(_of_means("logged_gpu_time", title, "GPU-s", PRICE, found, (gpus[0] / per[0], gpus[1] / per[1])))
    return out


def _of_means(
    name: str, title: Statement, unit: str, kind: str, found: Logged, factors: tuple[float, float]
) -> Quantity:
    means = [_with_pauses(part) for part in found.lines]
    a, b = (replace(one, mean=one.mean * factor) for one, factor in zip(means, factors, strict=True))
    ratio = log_ratio(a, b, "means of a series, t with effective sample size")
    made = make(name, title, unit, kind, (a.mean, b.mean), ratio, note=WITH_PAUSES)
    return replace(made, n_baseline=a.n, n_experiment=b.n)


def _whole_time(baseline: Side, experiment: Side) -> list[Quantity]:
    told = [whole_times(side.run) if side.run.trials.empty else [] for side in (baseline, experiment)]
    if any(len(trainings) != 1 for trainings in told):
        return []
    (a,), (b,) = told
    done, unit = float(a["done"].iloc[0]), str(a["unit"].iloc[0])
    if not done > 0 or (float(b["done"].iloc[0]), str(b["unit"].iloc[0])) != (done, unit):
        return []
    seconds = [float(course["took_s"].sum()) for course in (a, b)]
    title = Statement(f"Time that the training logs state of {{n:{unit}}}, evaluations included", n=round(done))
    made = make(WHOLE, title, "s", TIME, seconds, Ratio(seconds[1] / seconds[0], method="one observation a side"))
    return [replace(made, n_baseline=1.0, n_experiment=1.0, tested=False)]


def _with_pauses(lines: pd.DataFrame) -> Mean:
    """Mean time of a step, pauses included; n is one more than its degrees of freedom (Welch and Satterthwaite).

    As many pauses as the log explains are taken to come again, so the spread of their lengths counts (of a single one
    none is known). One that it does not explain came by chance, so its whole length counts: the variance of a sum over
    a Poisson number of pauses.
    """
    n = float(lines["n"].sum())
    each = series_mean(_each_s(lines), float((lines["each_s"] * lines["n"]).sum()) / n)
    if not each.n > 1:
        return Mean(each.mean + float(lines["paused_s"].sum()) / n, math.nan, each.n)
    parts = [((each.log_se * each.mean * n) ** 2, each.n - 1)]
    paused = lines[lines["paused_s"] > 0]
    for (why, _), some in paused.groupby(["since", paused["n"] > 0]):  # behind the last step less, or more, is done
        length = some["paused_s"].to_numpy(float)
        if not why:
            parts.append((float(length @ length), len(length)))
        elif len(length) > 1:
            parts.append((len(length) * float(length.var(ddof=1)), len(length) - 1))
    variance = sum(part for part, _ in parts)
    spent = sum(part**2 / freedom for part, freedom in parts)
    mean = each.mean + float(lines["paused_s"].sum()) / n
    return Mean(mean, math.sqrt(variance) / n / mean, variance**2 / spent + 1 if spent else each.n)


def _lines(side: Side) -> pd.DataFrame:
    """Intervals of the steps of the run's training, with the kind and the total of its lines; empty where there are
    trials, or several trainings at once.
    """
    return side.memo.once("logged steps", lambda: _lines_of(side))


def _lines_of(side: Side) -> pd.DataFrame:
    told = courses(side.run) if side.run.trials.empty else []
    if not told or not in_lock_step(told):
        return pd.DataFrame()
    whole = pd.concat(one_of_each(told), ignore_index=True)
    timed = (whole["n"] > 0) & (whole["each_s"] > 0)
    whole = whole[~whole["first"].astype(bool) & (timed | (whole["n"].eq(0) & (whole["paused_s"] > 0)))]
    if not timed[whole.index].any():
        return pd.DataFrame()
    steps = side.run.steps.reindex(columns=["path", "series", "total", "unit"])
    steps = steps[steps["path"].isin(whole["path"]) & steps["unit"].isin(whole["unit"])]
    kinds = steps.groupby("path").agg({"series": lambda s: s.mode().iloc[0], "total": "max"})
    kinds["kind"] = kinds["series"].str.partition("|")[0]  # the total of a bar is part of its series
    return whole.merge(kinds[["kind", "total"]], left_on="path", right_index=True)


def _each_s(lines: pd.DataFrame) -> np.ndarray:
    """Mean time of a step over each of some stretches, in order; seconds."""
    lines = lines[lines["n"] > 0]
    stretch = np.arange(len(lines)) * min(MOST_STRETCHES, len(lines)) // max(len(lines), 1)
    by = lines.assign(work_s=lines["each_s"] * lines["n"]).groupby(stretch)
    return (by["work_s"].sum() / by["n"].sum()).to_numpy(float)
