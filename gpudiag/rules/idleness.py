"""Is a GPU held while nothing runs on it?"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures.idleness import IdlenessProfile, measure_idleness
from gpudiag.rules._engine.evidence import (
    Evidence,
    NotApplicable,
    Outcome,
    Passed,
    lengths,
    need_fast_samples,
    worst_gpu,
)
from gpudiag.rules._engine.judging import MIN_SAMPLES
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import EACH, WORST_GPU, Given, Sentence
from gpudiag.rules._engine.verdict import Severity
from gpudiag.values import Value

IDLE: tuple[Sentence, ...] = (
    "{gpus} ",
    Given("several", "were", "was"),
    " idle for ",
    *EACH,
)
HOLDING = Given("holding", (", with {held_mib} held", Given("some_hold", " on {holding}")))
RESERVED: Sentence = " If it was reserved for the job, that cost {reserved_gpu_h}."
MOSTLY = 0.5
RECORDED_BESIDE = (
    "Change nothing if only the recorder ran then. If the job had the GPU, take it later, or let the job end with its "
    "training. gpudiag record -o gpu.csv -- COMMAND records as long as COMMAND runs."
)
PART_OF_A_JOB = (
    "Find out why work stopped there while other GPUs went on: it may be part of the same job (see the log of its rank "
    "or worker, and py-spy dump --pid PID). End nothing before you know. If its part is done, release the GPU."
)
PART_OF_A_SEARCH = (
    "See whether the search had trials left. If so, the worker of that GPU stopped: its log may say why, and a loop "
    "around its command starts it again. If not, release the GPU."
)
OWN_MEMORY = (
    "Find out what the job waited for then, in its log or while it lasts (py-spy dump --pid PID): validation on the "
    "CPU, storage, another process, or in a notebook its author. End nothing before you know."
)


@rule(
    measure=measure_idleness,
    severity="note",
    title="The GPU was idle long before its work began",
    checks="Idle time before the work",
    says=(
        *IDLE,
        " before the first work",
        HOLDING,
        ".",
        Given(
            "free", (" Nothing held its memory then: most likely the recorder was started before the job.", RESERVED)
        ),
    ),
    remedy="Download, unpack, preprocess and compile on the CPU before the GPU is taken.",
    refuted_by="Not a problem if the recorder was started long before the job.",
)
def idle_before_work(idle: IdlenessProfile, *, max_lead_s: float = 1200.0) -> Outcome:
    """A GPU that is reserved while data are prepared is paid for all the same.

    More than 20 minutes and 10 samples from the first sample to the first activity: MaxInitializationTime of
    SageMaker's profiler rules. With memory held meanwhile (1 GiB and a tenth of the total) a process had the GPU
    already: a warning. Where trials tell when the job ran, what lies outside is not the job's and has no cost. Nor
    has it where no GPU had a GiB in use, or a tenth of its memory beside a log that tells of all steps: no process
    was there, and whether a job had reserved the GPU is not known. What it would cost then is said.
    """
    return _end(idle, "lead", max_lead_s)


@rule(
    measure=measure_idleness,
    severity="note",
    title="The GPU was idle long after its work ended",
    checks="Idle time after the work",
    says=(
        *IDLE,
        " after the last work",
        HOLDING,
        ".",
        Given("beside_s", " Another GPU worked on for {beside_s} of that time."),
        Given(
            "free",
            (
                " Nothing held its memory then",
                Given("all_done", ", and the log tells of all steps"),
                ": most likely the job had ended and the recorder ran on.",
                RESERVED,
            ),
        ),
    ),
    remedy="End the job and release the GPU when its work has ended. Look for a process that still holds memory.",
    refuted_by="Not a problem if the recorder ran on after the job.",
    explained_by=("rank-missing", "log-silent", "trials-abandoned", "study-tail", "trial-duration-outliers"),
)
def idle_after_work(idle: IdlenessProfile, *, max_trail_s: float = 600.0) -> Outcome:
    """The end of the work is not the end of the bill.

    More than 10 minutes and 10 samples from the last activity to the last sample, as long as memory held without
    work counts as a zombie (METHODS 8). A hole in the record of a tenth of that may hide work: only what follows it
    counts. With memory held meanwhile (1 GiB and a tenth of the total) it is a warning. Its cost is counted as that
    of the time before. Time up to which a log tells of an evaluation or a checkpoint behind its last step is time
    outside of steps. Where another GPU worked on for more than that, both may be one job, which nobody is advised
    to end. Where no GPU had memory held, as before the work, the job had most likely ended: a note without a cost.
    Not so where its log stops short or at an error: it may have kept the GPU.
    """
    found = _end(idle, "trail", max_trail_s)
    if not isinstance(found, Evidence):
        return found
    beside: pd.DataFrame = idle.per_gpu.query("trail_s > @max_trail_s and trail_beside_s > @max_trail_s")
    most_s = float(beside["trail_beside_s"].max())
    part = PART_OF_A_SEARCH if idle.has_trials else PART_OF_A_JOB
    return replace(found, extra={**found.extra, "beside_s": most_s}, remedy=part if len(beside) else found.remedy)


@rule(
    measure=measure_idleness,
    severity="note",
    title="The GPU was idle for long in the middle of the record",
    checks="Idle time between the work",
    says=(
        *IDLE,
        " between the first and the last work",
        Given("n_times", (", in {n_times:pause} of up to {longest_s}", Given("every_s", ", about every {every_s}"))),
        Given("beside", ", while another GPU worked"),
        HOLDING,
        ". ",
        Given("n_times", "The longest", "The pause"),
        " began at {since} UTC.",
        Given(
            "kept",
            " Memory was the same before and after: most likely the job itself waited.",
            Given(
                "freed",
                " Memory was freed meanwhile: most likely a job ended or crashed, and it or another began later.",
                " The samples do not show whether one job waited, or one ended and another began.",
            ),
        ),
    ),
    remedy="See in the logs what happened then. A job that waited: do that work beside the training, or less often. A "
    "job that crashed: let the scheduler resume it at once from a checkpoint. Time between two jobs: queue the next "
    "one, or release the GPU.",
    refuted_by="Not a problem if the GPU was free for others meanwhile, or the pause was meant.",
    explained_by=("rank-missing", "steps-lost", "steps-paused", "cpu-bound-input", "io-wait"),
)
def idle_between_work(
    idle: IdlenessProfile,
    *,
    max_pause_s: float = 600.0,
    severe_pause_pct: float = 10.0,
    max_sampling_s: float = 60.0,
) -> Outcome:
    """Hours without work in the middle of a record are paid for as those at its ends are.

    An unbroken stretch below 10 % utilization of more than 10 minutes, from which on an idle stretch without trials
    is no wait within one job, and memory held counts as a zombie (METHODS 8). It needs 10 samples, as jobstats'
    unused GPU does, and more than follow each other by chance where samples far apart meet a GPU that is idle in
    part; with more than 60 s between samples, shorter pauses go unseen. Below 10 minutes it is a wait at any
    setting. Where trials tell when the GPU was meant to work, idle time without a trial and waits are asked for
    instead. A warning from a tenth of the time between first and last activity on, as for idle time without a
    trial, or with memory held, as at the ends. Whether one job waited or one ended and another began is not known
    without its log. Memory that was the same before and after (5 % of the total or 300 MiB) tells that it most
    likely waited: then nobody is advised to end it.
    """
    table = idle.per_gpu
    if idle.has_trials:
        raise NotApplicable("Trials tell when the GPU was meant to work: see idle time without a trial, and waits.")
    if not table["between_s"].notna().any():
        raise NotApplicable("No GPU was active in this record.")
    found: pd.DataFrame = table[table["longest_between_s"] > max_pause_s]
    if found.empty:
        need_fast_samples(idle.sampling_period_s, max_sampling_s)
        return Passed.most(
            table[table["between_s"].notna()],
            "longest_between_s",
            "{longest_between_s} at a time",
            "limit {max_pause_s}",
        )
    worst = found["between_s"].idxmax()
    row = found.loc[worst]
    total_s = float(found["between_s"].sum())
    kept = bool((found["between_kept_s"] == found["between_s"]).all())
    n_most, held = int(found["n_between"].max()), found[found["between_mib"] >= found["held_mib"]]
    return Evidence(
        values={name: float(row[name]) for name in ("between_s", "between_pct", "n_between", "longest_between_s")},
        where={"gpu": ", ".join(found.index)},
        lost_gpu_h=total_s / 3600,
        margin=float(found["longest_between_s"].max() - max_pause_s),
        severity=Severity.WARNING if len(held) or found["between_pct"].max() >= severe_pause_pct else None,
        extra={
            **lengths(found["between_s"]),
            **_holding(found, held, "between_mib"),
            "n_times": n_most if n_most > 1 else 0,
            "every_s": float(row["between_every_s"]),
            "longest_s": float(found["longest_between_s"].max()),
            "since": found.at[found["longest_between_s"].idxmax(), "longest_between_start"],
            "beside": float(found["between_beside_s"].sum()) >= MOSTLY * total_s,
            "kept": kept,
            "freed": bool((found["between_freed_s"] == found["between_s"]).all()),
        },
        remedy=OWN_MEMORY if kept else "",
    )


@rule(
    measure=measure_idleness,
    severity="warning",
    title="An idle GPU held memory",
    checks="Memory held by an idle GPU",
    says=(
        *WORST_GPU,
        " held {allocated_mib} for {allocated_idle_s} without work, up to {longest_allocated_idle_s} at a time.",
        Given("kept", " It held as much before and after: most likely the work itself waited."),
    ),
    remedy="Find the process (nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv). If it is no part of "
    "your job, end or move it: a notebook kernel, a child of a crashed job, or a model server without requests.",
    refuted_by="Not a problem if it is a server that must answer at once.",
    explained_by=("rank-missing", "trials-abandoned", "trial-duration-outliers"),
)
def gpu_allocated_idle(idle: IdlenessProfile, *, max_idle_s: float = 600.0) -> Outcome:
    """Memory that an idle process holds is lost to everybody else.

    At least 1 GiB and a tenth of the total in use at 0-1 % utilization for more than 10 minutes without a break, as
    a zombie or a forgotten notebook does (METHODS 8). That takes as many samples as a pause between the work. Idle
    time before, after and, without trials, between the work is counted there, with the memory held. Memory that was
    the same before and after a stretch between work is most likely the work's own: then nothing is to be ended.
    """
    table = idle.per_gpu
    found = table[table["longest_allocated_idle_s"] > max_idle_s]
    if found.empty:
        unknown = table.index[table["allocated_idle_s"].isna()]
        if len(unknown):
            raise NotMeasurable("Memory in use on {gpus} is unknown.", "Record memory.used of every GPU.", gpus=unknown)
        return Passed.most(
            table,
            "longest_allocated_idle_s",
            "{longest_allocated_idle_s} at a time",
            "limit {max_idle_s}",
        )
    worst = found["allocated_idle_s"].idxmax()
    kept = found["allocated_kept_s"] >= MOSTLY * found["allocated_idle_s"]
    return worst_gpu(
        worst,
        found,
        ("allocated_idle_s", "longest_allocated_idle_s", "allocated_mib"),
        lost_gpu_h=float(found["allocated_idle_s"].sum() / 3600),
        margin=float(found.at[worst, "longest_allocated_idle_s"] - max_idle_s),
        extra={"kept": bool(kept[worst])},
        remedy=OWN_MEMORY if kept.any() else "",
    )


def _end(idle: IdlenessProfile, end: str, limit_s: float) -> Outcome:
    """The finding about one end of the record."""
    table = idle.per_gpu
    seconds = table[f"{end}_s"]
    if not seconds.notna().any():
        raise NotApplicable("No GPU was active in this record.")
    long: pd.DataFrame = table[seconds > max(limit_s, (MIN_SAMPLES - 1) * idle.sampling_period_s)]
    if long.empty and (seconds > limit_s).any():
        raise NotMeasurable(
            "Fewer than {n:sample} show that the GPU was idle: work may lie between them.",
            "Sample every 1 to 5 s (nvidia-smi -l 1).",
            n=MIN_SAMPLES,
        )
    if long.empty:
        return Passed.most(table[seconds.notna()], f"{end}_s", f"{{{end}_s}}", "limit {limit_s}", limit_s=limit_s)
    worst = long[f"{end}_s"].idxmax()
    held = long[long[f"{end}_mib"] >= long["held_mib"]]
    most_s = float(long.at[worst, f"{end}_s"])
    free = idle.lead_free if end == "lead" else idle.trail_free
    end_gpu_h = float(long[f"{end}_s"].sum() / 3600)
    held_gpu_h = 0.0 if free else end_gpu_h
    return Evidence(
        values={f"{end}_s": most_s, f"{end}_memory_mib": float(long.at[worst, f"{end}_mib"])},
        where={"gpu": ", ".join(long.index)},
        lost_gpu_h=None if idle.has_trials or free else held_gpu_h,
        held_gpu_h=held_gpu_h,
        margin=most_s - limit_s,
        severity=Severity.WARNING if len(held) else None,
        extra={
            **lengths(long[f"{end}_s"]),
            **_holding(long, held, f"{end}_mib"),
            "free": free,
            "all_done": idle.all_done,
            "reserved_gpu_h": end_gpu_h,
        },
        remedy=RECORDED_BESIDE if free else "",
    )


def _holding(found: pd.DataFrame, held: pd.DataFrame, mib: str) -> dict[str, Value]:
    """What a sentence says of those GPUs that held memory meanwhile."""
    names = [f"GPU {gpu}" for gpu in held.index]
    return {"holding": names, "some_hold": len(held) < len(found), "held_mib": float(held[mib].max())}
