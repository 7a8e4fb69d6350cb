"""What the logs of jobs say of the clock of the scheduler: a job writes nothing before its start or after its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
import pandas as pd

from gpudiag._run.allocated_gpus import JOB
from gpudiag.alignment.logged_steps import logged_stretches, of_one_rank, placed, times_of_work
from gpudiag.run import Run
from gpudiag.spans import seconds
from gpudiag.timezones import QUARTER_S

ROUNDING_S = 2.0
"""Slurm and most logs give whole seconds."""
ON_WORK = 0.5
"""A log has the telemetry's clock where half of its steps, and all but what ``placed`` allows, lie on work of GPUs."""
_DATE = re.compile(r"(?:19|20)\d\d([-_.]?)[01]\d\1[0-3]\d(?:[-_.T]?\d\d[-_.:]?\d\d(?:[-_.:]?\d\d)?)?")


@dataclass(frozen=True)
class Bounds:
    """Of ``n`` logs each lies within the job that its name states at these offsets (jobs + offset = log), and no other.

    One bound, at least, is less than a quarter of an hour from the other.
    """

    low_s: float
    high_s: float
    n: int

    @property
    def as_shown(self) -> bool:
        """Whether the logs lie within their jobs as the timestamps are."""
        return self.low_s - ROUNDING_S <= 0 <= self.high_s + ROUNDING_S

    @property
    def quarter_s(self) -> float:
        """The whole quarter of an hour at which they do; NaN for none."""
        near = QUARTER_S * round((self.low_s + self.high_s) / 2 / QUARTER_S)
        return near if self.low_s - ROUNDING_S <= near <= self.high_s + ROUNDING_S else float("nan")


def bounds_by_logs(run: Run, period_s: float) -> Bounds | None:
    """Between which offsets the logs lie within the jobs that they name; None where they are no evidence.

    They are none where they do not lie on work of the GPUs, so that their clock may be another, where no offset suits
    all, or where so many do that another time zone does too.
    """
    steps = of_one_rank(run.steps) if len(run.steps) else run.steps
    if len(steps) < 2 or "util_pct" not in run.gpu:
        return None
    named = pd.DataFrame(_spans(run, steps), columns=["path", "low_s", "high_s"])
    own = steps[steps["path"].isin(named["path"])]
    stretches, line_s = logged_stretches(own) if len(own) > 1 else (pd.DataFrame(), 0.0)
    if stretches.empty:
        return None
    where = placed(stretches, 0.0, times_of_work(run, period_s, line_s))
    low_s, high_s = float(named["low_s"].max()), float(named["high_s"].min())
    if where.is_wrong or where.on_work_s < ON_WORK * where.logged_s:
        return None
    if not -ROUNDING_S <= high_s - low_s < QUARTER_S:
        return None
    return Bounds(min(low_s, high_s), max(low_s, high_s), len(named))


def _spans(run: Run, steps: pd.DataFrame) -> Iterator[tuple[str, float, float]]:
    """Of each log that names a job: how far its last line lies behind the end of the job, and its first behind the
    start. A job that was requeued writes on into one log.
    """
    jobs = run.trials[run.trials["start"].notna()]
    spans = {
        str(job): (float(seconds(part["start"]).min()), float(seconds(part["end"]).max()))
        for job, part in jobs.groupby(JOB)
        if part["end"].notna().all()
    }
    for path, log in steps.groupby("path", sort=True):
        job = _named(PurePath(str(path)), list(spans))
        if job is None:
            continue
        at = seconds(log["time"])
        since_s = log["begun_s"].to_numpy(float, na_value=0.0) if "begun_s" in log else np.zeros(len(log))
        start_s, end_s = spans[job]
        yield str(path), float(at.max()) - end_s, float((at - np.nan_to_num(since_s)).min()) - start_s


def _named(path: PurePath, jobs: list[str]) -> str | None:
    """The job whose id stands in the name of the file or of its folder, dates aside; the longest of several."""
    for part in (path.name, path.parent.name):
        name = _DATE.sub("", part)
        found = [job for job in jobs if len(job) > 2 and re.search(rf"(?<!\d){re.escape(job)}(?!\d)", name)]
        if found:
            return max(found, key=len)
    return None
