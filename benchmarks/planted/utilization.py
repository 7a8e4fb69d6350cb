"""Planted faults of use: GPUs that were not used, little used, unevenly used, or used by something else."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.run import Run
from gpudiag.schema import PROCESSES, STEPS, conform
from planted.base import Edge, fault, log, run, scattered, ticks, timestamps, trials

BASE_MIB = 350.0


@fault(
    "gpu-unused",
    edges={
        "max_util_pct": Edge({"peak_pct": 2.0}, {"peak_pct": 1.0}),
        "min_periods": Edge({"n": 9, "period_s": 10.0}, {"n": 10, "period_s": 10.0}, Status.NOT_ASSESSED),
        "min_run_s": Edge({"n": 11}, {"n": 12}, Status.NOT_ASSESSED),
    },
    bigger=({"n": 120}, {"peak_pct": 0.0}, {"n": 720, "peak_pct": 0.0}),
)
def unused(*, peak_pct: float = 1.0, n: int = 60, period_s: float = 5.0) -> Run:
    """GPU 1 runs nothing while GPU 0 works."""
    at = ticks(n * period_s, period_s)
    return run(log(at), log(at, "1", util_pct=peak_pct, mem_used_mib=BASE_MIB, power_w=22.0))


@fault(
    "gpu-idle-beside-busy",
    edges={
        "idle_pct": Edge({"peak_pct": 10.0}, {"peak_pct": 9.0}),
        "min_work_pct": Edge({"n": 100, "duty": 0.09}, {"n": 100, "duty": 0.10}),
        "min_periods": Edge({"n": 9, "period_s": 10.0}, {"n": 10, "period_s": 10.0}, Status.NOT_ASSESSED),
        "min_run_s": Edge({"n": 11}, {"n": 12}, Status.NOT_ASSESSED),
    },
    bigger=({"peak_pct": 5.0}, {"peak_pct": 0.0, "n": 720}),
)
def idle_beside(*, peak_pct: float = 9.0, n: int = 60, period_s: float = 5.0, duty: float = 1.0) -> Run:
    """GPU 1 peaks at ``peak_pct`` while GPU 0 works ``duty`` of the time."""
    at = ticks(n * period_s, period_s)
    works = np.where(np.arange(n) < round(duty * n), 80.0, 0.0)
    return run(log(at, util_pct=works), log(at, "1", util_pct=peak_pct, mem_used_mib=BASE_MIB))


@fault(
    "gpu-low-utilization",
    edges={
        "very_low_pct": Edge({"mean_pct": 16.0}, {"mean_pct": 15.0}, Severity.WARNING, Severity.CRITICAL),
        "low_pct": Edge({"mean_pct": 25.0}, {"mean_pct": 24.0}, Severity.NOTE, Severity.WARNING),
        "below_par_pct": Edge({"mean_pct": 50.0}, {"mean_pct": 49.0}, Status.OK, Severity.NOTE),
        "min_run_s": Edge({"seconds": 1795.0}, {"seconds": 1800.0}, Severity.NOTE, Severity.CRITICAL),
    },
    bigger=({"mean_pct": 12.0}, {"mean_pct": 6.0}),
)
def low(*, mean_pct: float = 14.0, seconds: float = 1800.0) -> Run:
    """A trial runs throughout, and its GPU works and waits by turns, at ``mean_pct`` on average."""
    at = ticks(seconds)
    return run(
        log(at, util_pct=scattered(len(at), 0.5, 0.0, 2 * mean_pct)), trials=trials([("COMPLETE", 0.0, seconds)])
    )


@fault(
    "gpu-fluctuating",
    edges={
        "high_pct": Edge({"peak_pct": 69.0}, {"peak_pct": 70.0}),
        "low_pct": Edge({"floor_pct": 10.0}, {"floor_pct": 9.0}),
        "min_run_s": Edge({"seconds": 295.0}, {"seconds": 300.0}, Status.NOT_ASSESSED),
        "max_sampling_s": Edge({"peak_pct": 69.0}, {"peak_pct": 70.0}, Status.NOT_ASSESSED, limit=0.1),
        "severe_idle_pct": Edge({"share": 0.19}, {"share": 0.2}, Severity.NOTE, Severity.WARNING),
        "min_periods": Edge({"phases": 2}, {"phases": 3}),
    },
    bigger=({"share": 0.3}, {"share": 0.4, "floor_pct": 0.0}, {"share": 0.5, "floor_pct": 0.0}),
)
def fluctuating(
    *, peak_pct: float = 95.0, floor_pct: float = 5.0, seconds: float = 500.0, share: float = 0.25, phases: int = 0
) -> Run:
    """Of the samples ``share``, never the first or the last, are at ``floor_pct``, the others at ``peak_pct``."""
    at = ticks(seconds)
    util = scattered(len(at), share, floor_pct, peak_pct)
    if phases:  # of 10 samples each, without a trial
        idle = (np.arange(len(at)) % 20 >= 10) & (np.arange(len(at)) < 20 * phases)
        return run(log(at, util_pct=np.where(idle, floor_pct, peak_pct)))
    return run(log(at, util_pct=util), trials=trials([("COMPLETE", 0.0, seconds)]))


@fault(
    "foreign-load",
    edges={
        "max_foreign_pct": Edge({"pause_s": 2000.0, "load_s": 100.0}, {"pause_s": 2000.0, "load_s": 105.0}),
        "min_foreign_s": Edge({"load_s": 55.0}, {"load_s": 60.0}),
        "min_slower_ratio": Edge({"slower": 1.09}, {"slower": 1.11}),
        "max_slower_p_pct": Edge({"slower": 1.3, "as_slow": 1}, {"slower": 1.3}),
    },
    bigger=({"load_s": 150.0}, {"load_s": 500.0}, {"slower": 2.0}),
)
def foreign(*, pause_s: float = 600.0, load_s: float = 90.0, slower: float = 0.0, as_slow: int = 0) -> Run:
    """Another job uses the GPU for ``load_s`` in a pause between two trials."""
    if slower:  # or, so much slower by it, in the second half of a training, with so many lines before as slow
        return _beside(slower, as_slow)
    at = ticks(1200.0 + pause_s)
    paused = (at > 600.0) & (at < 600.0 + pause_s)
    util = np.where(paused, np.where(at < 600.0 + load_s, 60.0, 0.0), 95.0)
    rows = [("COMPLETE", 0.0, 600.0), ("COMPLETE", 600.0 + pause_s, 1200.0 + pause_s)]
    return run(log(at, util_pct=util), trials=trials(rows, gpu="0"))


def _beside(slower: float, as_slow: int, lines: int = 40) -> Run:
    """Lines each ten steps of a second or more, the processes each five seconds."""
    late = np.arange(lines) >= lines // 2
    each_s = np.where(late, slower, 1.0)
    each_s[lines // 2 - 5 : lines // 2 - 5 + as_slow] = 1.01 * slower
    done = 10.0 * np.append(1.0, each_s).cumsum()
    step = 10 * (np.arange(lines + 1) + 1)
    frame = pd.DataFrame({"time": timestamps(done), "step": step, "line": step})
    steps = conform(frame.assign(unit="step", series="steps", meant="", path="train.log"), STEPS)
    at = ticks(float(done[-1]))
    rows = [(at, 7, "/opt/a/python"), (at[at > done[lines // 2]], 8, "/home/b/python")]
    there = [pd.DataFrame({"time": timestamps(when), "gpu": "0", "pid": pid, "name": name}) for when, pid, name in rows]
    return run(log(at), steps=steps, processes=conform(pd.concat(there, ignore_index=True), PROCESSES))


@fault(
    "idle-without-trial",
    edges={
        "max_no_trial_pct": Edge({"trial_s": 4500.0, "pause_s": 995.0}, {"trial_s": 4500.0, "pause_s": 1005.0}),
        "min_no_trial_s": Edge({"pause_s": 595.0}, {"pause_s": 600.0}),
    },
    bigger=({"pause_s": 3600.0}, {"pause_s": 36000.0}),
)
def night(*, trial_s: float = 600.0, pause_s: float = 1200.0) -> Run:
    """Nothing runs for ``pause_s`` between two trials."""
    at = ticks(2 * trial_s + pause_s)
    util = np.where((at > trial_s) & (at < trial_s + pause_s), 0.0, 95.0)
    rows = [("COMPLETE", 0.0, trial_s), ("COMPLETE", trial_s + pause_s, 2 * trial_s + pause_s)]
    return run(log(at, util_pct=util), trials=trials(rows, gpu="0"))


@fault(
    "work-outside-trials",
    edges={
        "min_of_work_pct": Edge({"load_s": 65.0}, {"load_s": 70.0}),
        "min_outside_s": Edge({"load_s": 55.0, "trial_s": 300.0}, {"load_s": 60.0, "trial_s": 300.0}),
    },
    bigger=({"load_s": 150.0}, {"load_s": 500.0}),
)
def outside(*, load_s: float = 120.0, trial_s: float = 600.0) -> Run:
    """Another job runs for ``load_s`` after the only trial."""
    at = ticks(trial_s + 900.0)
    util = np.where(at < trial_s + load_s, 60.0, 0.0)
    return run(log(at, util_pct=util), trials=trials([("COMPLETE", 0.0, trial_s)], gpu="0"))


def _tasks(n: int, seconds: float) -> list[tuple[str, float, float]]:
    """``n`` tasks one after the other."""
    return [("COMPLETE", i * seconds / n, (i + 1) * seconds / n) for i in range(n)]


@fault(
    "gpu-imbalance",
    edges={
        "min_jain_ratio": Edge({"least_pct": 34.0}, {"least_pct": 33.0}),
        "min_tasks_per_gpu_ratio": Edge({"n_tasks": 3}, {"n_tasks": 4}, Severity.NOTE, Severity.WARNING),
    },
    bigger=({"least_pct": 20.0}, {"least_pct": 12.0}, {"least_pct": 0.0}),
)
def imbalance(*, least_pct: float = 30.0, n_tasks: int = 8) -> Run:
    """GPU 0 is at 100 %, GPU 1 at ``least_pct``."""
    at = ticks(1200.0)
    logs = (log(at, util_pct=100.0), log(at, "1", util_pct=least_pct))
    return run(*logs, trials=trials(_tasks(n_tasks, 1200.0)))


@fault(
    "gpu-straggler",
    edges={
        "min_clock_ratio": Edge({"clock_mhz": 2295.0}, {"clock_mhz": 2290.0}),
        "min_busy_s": Edge({"seconds": 295.0}, {"seconds": 300.0}),
    },
    bigger=({"clock_mhz": 1500.0}, {"clock_mhz": 500.0}),
)
def straggler(*, clock_mhz: float = 2000.0, seconds: float = 600.0) -> Run:
    """GPU 1 works at a clock of ``clock_mhz``, GPU 0 at 2,700 MHz."""
    at = ticks(seconds)
    return run(log(at), log(at, "1", sm_clock_mhz=clock_mhz))
