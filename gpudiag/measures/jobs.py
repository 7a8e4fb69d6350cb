"""Jobs of a scheduler: the use of their GPUs where the scheduler's own record holds it, as jobstats leaves it."""

from __future__ import annotations

import pandas as pd

from gpudiag._run.allocated_gpus import JOB
from gpudiag.errors import NotGiven
from gpudiag.facts import Fact, fact
from gpudiag.measures.base import Profile
from gpudiag.memo import memoized
from gpudiag.run import Run

RECORDED, UNUSED, MEAN = "user_attrs.gpus_recorded", "user_attrs.gpus_unused", "user_attrs.gpu_util_pct"
"""Attributes of a job from sacct: GPUs of known mean utilization, those of them at 0 %, and the mean of all."""


class JobsProfile(Profile, topic="jobs"):
    """How well jobs used their GPUs, by means over each whole job. NaN is unknown."""

    n_recorded_jobs: Fact[int] = fact("jobs of known length whose GPUs have a mean utilization on record")
    recorded_gpus: Fact[float] = fact("GPUs on record, those of each job counted anew")
    recorded_gpu_h: Fact[float] = fact("GPU time of these: the length of the job for each")
    mean_util_pct: Fact[float] = fact("mean utilization over this GPU time")
    unused_gpus: Fact[float] = fact("GPUs on record at 0 % over their whole job")
    unused_gpu_h: Fact[float] = fact("GPU time of these")


@memoized
def measure_jobs(run: Run) -> JobsProfile:
    """By length of a job and the mean utilization of its GPUs. Needs sacct with what jobstats left in AdminComment."""
    if not {RECORDED, UNUSED, MEAN} <= set(run.trials):
        raise NotGiven("No job has a record of its GPUs by jobstats.", "Give sacct's table with AdminComment.")
    jobs = run.trials.drop_duplicates([JOB, "start"]) if JOB in run.trials else run.trials
    length_s = (jobs["end"] - jobs["start"]).dt.total_seconds()
    if "duration_s" in jobs:
        length_s = length_s.fillna(jobs["duration_s"])
    n, unused, mean_pct = (pd.to_numeric(jobs[name], errors="coerce") for name in (RECORDED, UNUSED, MEAN))
    known = length_s.gt(0) & n.gt(0) & mean_pct.notna() & unused.notna()
    if not known.any():
        raise NotGiven("No job with a record of its GPUs by jobstats has a known length.", "")
    length_h, n, unused, mean_pct = (column[known].astype(float) for column in (length_s / 3600, n, unused, mean_pct))
    gpu_h = length_h * n
    return JobsProfile(
        n_recorded_jobs=len(n),
        recorded_gpus=float(n.sum()),
        recorded_gpu_h=float(gpu_h.sum()),
        mean_util_pct=float((gpu_h * mean_pct).sum() / gpu_h.sum()),
        unused_gpus=float(unused.sum()),
        unused_gpu_h=float((length_h * unused).sum()),
    )
