"""What the GPUs waited for: all their time without a kernel by cause, in bounds, from every source that tells."""

from __future__ import annotations

import math

import pandas as pd

from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._time.gpu_time import gpu_time
from gpudiag.measures._waits.by_trace import profiled_step
from gpudiag.measures._waits.divided import divided, logged_gpus
from gpudiag.measures.base import Profile, need_gpu, need_two_samples
from gpudiag.memo import memoized
from gpudiag.run import Run

CAUSES = (
    "outside", "startup", "tail", "restart", "first_steps", "evaluation", "checkpoint", "evaluation_checkpoint",
    "pause", "loader", "copy", "launch", "sync", "memory", "setup", "host", "cpu_bound", "io_wait", "launch_bound",
    "small_work", "unknown",
)  # fmt: skip
"""In the order in which a run meets them; the last is what no source explains."""


SECONDS = {"gpu_s": "share_pct", "low_gpu_s": "low_pct", "high_gpu_s": "high_pct"}


class GpuCause(Row):
    """A cause on a GPU. All of a GPU add up to its time without a kernel exactly."""

    gpu: Column[str] = column("GPU")
    cause: Column[str] = column("what it waited for")
    source: Column[str] = column("what says so: record, log, trace, signature; '' for unknown")
    gpu_s: Column[float] = column("GPU time that waited for it")
    low_gpu_s: Column[float] = column("at least")
    high_gpu_s: Column[float] = column("at most")


class CauseTotal(Row):
    """A cause over all GPUs, in the order of ``CAUSES``."""

    source: Column[str] = column("what says so")
    gpu_s: Column[float] = column("GPU time that waited for it")
    low_gpu_s: Column[float] = column("at least")
    high_gpu_s: Column[float] = column("at most")
    share_pct: Column[float] = column("its share of the observed GPU time")
    low_pct: Column[float] = column("the least of it likewise")
    high_pct: Column[float] = column("the most of it likewise")


class CausesProfile(Profile, topic="causes"):
    """Where the GPU time without a kernel went, which is all that is missing from 100 % utilization."""

    by_cause: Rows = table_of(CauseTotal)
    causes: Rows = table_of(GpuCause)
    observed_gpu_s: Fact[float] = fact("observed GPU time")
    unused_gpu_s: Fact[float] = fact("its part without a kernel")
    unused_pct: Fact[float] = fact("its share")
    unknown_pct: Fact[float] = fact("share of the time without a kernel that no source explains", label="not explained")
    has_log: Fact[bool] = fact("a training's log tells of time between its lines")
    trace_fit: Fact[str] = fact(
        "'' where profiled steps stand for all, none without a trace, else why they do not: few_steps, other_time, "
        "no_step_times, other_steps, other_work"
    )
    has_trials: Fact[bool] = fact("trials on the telemetry's clock tell when work was meant to run")


@memoized
def measure_causes(run: Run) -> CausesProfile:
    """Divide the time without a kernel among its causes. Needs gpu.util_pct; trials, logs, traces and the host are used
    where they are.
    """
    need_gpu(run, "util_pct")
    gpus = logged_gpus(run)
    observed = sum(of_gpu.part.observed_s for of_gpu in gpus.values())
    need_two_samples(observed > 0)
    step, fit = profiled_step(run)
    found = {}
    for gpu, of_gpu in gpus.items():
        found[gpu], fits = divided(run, gpu, of_gpu, step)
        fit = fits if step and of_gpu.logs else fit
    causes = pd.DataFrame([
        {
            "gpu": gpu, "cause": wait.cause, "source": wait.source,
            "gpu_s": wait.s, "low_gpu_s": wait.low_s, "high_gpu_s": wait.high_s,
        }
        for gpu, waits in found.items() for wait in waits
    ])  # fmt: skip
    unused = sum(of_gpu.part.unused_s for of_gpu in gpus.values())
    by_cause = _by_cause(causes, observed)
    return CausesProfile(
        by_cause=by_cause,
        causes=causes,
        observed_gpu_s=observed,
        unused_gpu_s=unused,
        unused_pct=100 * unused / observed,
        unknown_pct=100 * float(by_cause.at["unknown", "gpu_s"]) / unused if unused else math.nan,
        has_log=any(of_gpu.logs for of_gpu in gpus.values()),
        trace_fit=fit,
        has_trials=gpu_time(run).joined,
    )


def _by_cause(causes: pd.DataFrame, observed_s: float) -> pd.DataFrame:
    """Sums over the GPUs, and their shares of the observed time."""
    groups = causes.groupby("cause", sort=False)
    out = groups[list(SECONDS)].sum()
    out.insert(0, "source", groups["source"].agg(lambda sources: ", ".join(dict.fromkeys(filter(None, sources)))))
    for seconds, share in SECONDS.items():
        out[share] = 100 * out[seconds] / observed_s
    return out.reindex([cause for cause in CAUSES if cause in out.index])
