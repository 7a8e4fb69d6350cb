"""Numbers and places of evidence that are no column and no scalar of a profile: a rule makes them of several."""

from __future__ import annotations

from gpudiag.facts import Column, Row, column


class EvidenceNames(Row):
    """What only evidence holds."""

    # where
    trials_failed_within: Column[int] = column(
        "trials that ended FAIL within the gap", label="trials that failed meanwhile"
    )
    columns_: Column[object] = column("columns that never moved, by GPU", label="columns")
    # utilization and the ledger
    busiest_mean_pct: Column[float] = column(
        "mean utilization of the busiest of the other GPUs", label="mean of the busiest GPU"
    )
    busiest_max_pct: Column[float] = column("its highest utilization", label="highest of the busiest GPU")
    active_idle_pct: Column[float] = column(
        "time below 10 % utilization from a GPU's first to its last activity, of that time",
        label="idle from its first to its last work",
    )
    unused_gpu_h: Column[float] = column(
        "100 % less the mean utilization of the time", label="without a kernel (100 % less the mean)"
    )
    max_util_pct: Column[float] = column("highest utilization of a GPU called unused", label="highest utilization")
    least_pct: Column[float] = column("mean utilization of the least busy GPU", label="least busy GPU")
    most_pct: Column[float] = column("mean utilization of the busiest GPU", label="busiest GPU")
    no_trial_s: Column[float] = column("idle time without a trial, of all GPUs", label="idle without a trial")
    no_trial_pct: Column[float] = column("its share of the observed time", label="share of the time")
    foreign_s: Column[float] = column("time at 10 % or more without a trial", label="busy without a trial")
    clock_mhz: Column[float] = column("median clock of the time in which it was slowed down", label="clock meanwhile")
    # events, failures, search
    xids: Column[object] = column("numbers of the Xids", label="Xid codes")
    sxids: Column[object] = column("numbers of the SXids", label="SXid codes")
    followers: Column[int] = column("failures right after another on the same worker", label="followed another")
    repeats_pct: Column[float] = column(
        "trials with the parameters of an earlier one, of those that have any", label="share of the trials"
    )
    n_outliers: Column[int] = column("trials far longer than their like", label="trials")
    longest_s: Column[float] = column("the longest of them", label="the longest")
    # the record
    gap_pct: Column[float] = column("share of the GPU's span that gaps leave unobserved", label="not observed")
    conflicts: Column[object] = column("settings that the data contradict", label="contradictions")
