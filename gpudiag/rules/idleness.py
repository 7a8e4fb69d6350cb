"""Is a GPU held while nothing runs on it?"""

from __future__ import annotations

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures.idleness import IdlenessProfile, measure_idleness
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, worst_gpu
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import WORST_GPU, Given, Sentence
from gpudiag.rules._engine.verdict import Severity


def _end_says(when: str) -> Sentence:
    """The sentence about one end of the record."""
    return (
        "{gpus} ",
        Given("several", ("were idle for ", Given("spread", "{least_s} to "), "{most_s}"), "was idle for {most_s}"),
        f" {when}",
        Given("holding", ", with {held_mib} held on GPU {holding}"),
        ".",
    )


@rule(
    measure=measure_idleness,
    severity="note",
    title="The GPU was idle long before its work began",
    checks="Idle time before the work",
    says=_end_says("before the first work"),
    remedy="Download, unpack, preprocess and compile on the CPU before the GPU is taken.",
    refuted_by="Not a problem if the recorder was started long before the job.",
)
def idle_before_work(idle: IdlenessProfile, *, max_lead_s: float = 1200.0) -> Evidence | None:
    """A GPU that is reserved while data are prepared is paid for all the same.

    More than 20 minutes from the first sample to the first activity: MaxInitializationTime of SageMaker's profiler
    rules. With memory held meanwhile (1 GiB and a tenth of the total) a process had the GPU already: a warning. Where
    trials tell when the job ran, what lies outside is not the job's and has no cost.
    """
    return _end(idle, "lead", max_lead_s)


@rule(
    measure=measure_idleness,
    severity="note",
    title="The GPU was idle long after its work ended",
    checks="Idle time after the work",
    says=_end_says("after the last work"),
    remedy="End the job and release the GPU when the last trial has ended. Look for a process that still holds memory.",
    refuted_by="Not a problem if the recorder ran on after the job.",
    explained_by=("rank-missing",),
)
def idle_after_work(idle: IdlenessProfile, *, max_trail_s: float = 600.0) -> Evidence | None:
    """The end of the work is not the end of the bill.

    More than 10 minutes from the last activity to the last sample, as long as memory held without work counts as a
    zombie (METHODS 8). A hole in the record of a tenth of that may hide work: only what follows it counts. With memory
    held meanwhile (1 GiB and a tenth of the total) it is a warning. Its cost is counted as that of the time before.
    """
    return _end(idle, "trail", max_trail_s)


@rule(
    measure=measure_idleness,
    severity="warning",
    title="An idle GPU held memory",
    checks="Memory held by an idle GPU",
    says=(*WORST_GPU, " held memory for {allocated_idle_s} without work, up to {longest_allocated_idle_s} at a time."),
    remedy="Find the process and end or move it: a notebook kernel, a child of a crashed job, or a model server "
    "without requests (nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv).",
    refuted_by="Not a problem if it is a server that must answer at once.",
    explained_by=("rank-missing", "idle-before-work", "idle-after-work"),
)
def gpu_allocated_idle(idle: IdlenessProfile, *, max_idle_s: float = 600.0) -> Evidence | None:
    """Memory that an idle process holds is lost to everybody else.

    At least 1 GiB and a tenth of the total in use at 0-1 % utilization for more than 10 minutes without a break, as a
    zombie or a forgotten notebook does (METHODS 8).
    """
    table = idle.per_gpu
    found = table[table["longest_allocated_idle_s"] > max_idle_s]
    if found.empty:
        unknown = table.index[table["allocated_idle_s"].isna()]
        if len(unknown):
            raise NotMeasurable("Memory in use on {gpus} is unknown.", "Record memory.used of every GPU.", gpus=unknown)
        return None
    worst = found["allocated_idle_s"].idxmax()
    return worst_gpu(
        worst,
        found,
        ("allocated_idle_s", "longest_allocated_idle_s", "held_mib"),
        lost_gpu_h=float(found["allocated_idle_s"].sum() / 3600),
        margin=float(found.at[worst, "longest_allocated_idle_s"] - max_idle_s),
    )


def _end(idle: IdlenessProfile, end: str, limit_s: float) -> Evidence | None:
    """The finding about one end of the record."""
    table = idle.per_gpu
    seconds = table[f"{end}_s"]
    if not seconds.notna().any():
        raise NotApplicable("No GPU was active in this record.")
    long: pd.DataFrame = table[seconds > limit_s]
    if long.empty:
        return None
    worst = long[f"{end}_s"].idxmax()
    held = long[long[f"{end}_mib"] >= long["held_mib"]]
    least_s, most_s = float(long[f"{end}_s"].min()), float(long.at[worst, f"{end}_s"])
    held_gpu_h = float(long[f"{end}_s"].sum() / 3600)
    return Evidence(
        values={f"{end}_s": most_s, f"{end}_memory_mib": float(long.at[worst, f"{end}_mib"])},
        where={"gpu": ", ".join(long.index)},
        lost_gpu_h=None if idle.has_trials else held_gpu_h,
        held_gpu_h=held_gpu_h,
        margin=most_s - limit_s,
        severity=Severity.WARNING if len(held) else None,
        extra={
            "several": len(long) > 1,
            "spread": least_s < 0.99 * most_s,
            "least_s": least_s,
            "most_s": most_s,
            "held_mib": held[f"{end}_mib"].max(),
            "holding": list(held.index),
        },
    )
