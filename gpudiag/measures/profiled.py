"""Profiled steps: what each GPU did in them, which rank kept the others waiting, and whether they stand for the run."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from gpudiag.errors import NotGiven, NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._waits.logged import logged_trainings
from gpudiag.measures.base import Profile
from gpudiag.measures.causes import CausesProfile, measure_causes
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import TABLES, text_dtype

PROFILE = (
    "Profile ten steps: with torch.profiler.profile(schedule=torch.profiler.schedule(wait=20, warmup=2, active=10)) as "
    "prof, call prof.step() after each step, and then prof.export_chrome_trace('trace.json.gz')."
)

UNLIKE = ("other_steps", "other_work")
"""Fits of a trace that differs from what the log and the telemetry say of the run's steps."""


class ProfiledRank(Row):
    """A GPU in one trace: a rank, or a file and its GPU where ranks do not tell them apart. Shares of the profiled
    time; what the host did is NaN where the trace does not have it.
    """

    n_steps: Column[float] = column("profiled steps, 0 where all that was recorded is one window")
    step_s: Column[float] = column("median time of a step")
    compute_pct: Column[float] = column("computing")
    communication_pct: Column[float] = column("communicating with nothing computed beside it")
    communication_total_pct: Column[float] = column("communicating, with and without computing beside it")
    copy_pct: Column[float] = column("only copying, or idle while the host copied pageable memory")
    data_pct: Column[float] = column("idle while the host waited for data")
    launch_pct: Column[float] = column("idle while the host prepared kernels")
    sync_pct: Column[float] = column("idle while the host was in a blocking call")
    memory_pct: Column[float] = column("idle while the host took or freed memory, or set CUDA up")
    other_pct: Column[float] = column("idle while the host did what the trace does not name")
    queued_pct: Column[float] = column("idle between queued kernels: the host held up none")


class ProfiledProfile(Profile, topic="profiled"):
    """Profiled steps of all traces; shares are means over their GPUs. NaN is unknown."""

    by_rank: Rows = table_of(ProfiledRank)
    n_traces: Fact[int] = fact("traces")
    n_gpus: Fact[int] = fact("GPUs in them")
    n_ranks: Fact[float] = fact("ranks that they name; NaN where one of several traces names none")
    n_profiled_steps: Fact[float] = fact("profiled steps of a trace, the fewest", label="profiled steps")
    profiled_step_s: Fact[float] = fact("median time of a profiled step", label="time of a profiled step")
    window_s: Fact[float] = fact("profiled time of a trace, the shortest", label="profiled time")
    profiled_idle_pct: Fact[float] = fact("share of it in which a GPU did nothing", label="idle in the profiled steps")
    data_pct: Fact[float] = fact("idle while the host waited for data", label="waiting for data")
    launch_pct: Fact[float] = fact("idle while the host prepared kernels", label="launching kernels")
    sync_pct: Fact[float] = fact("idle while the host was in a blocking call", label="blocked")
    memory_pct: Fact[float] = fact("idle while the host took or freed memory, or set CUDA up", label="taking memory")
    copy_pct: Fact[float] = fact(
        "only copying, or idle while the host copied pageable memory; the former at least", label="copying alone"
    )
    communication_pct: Fact[float] = fact("communicating with nothing computed beside it", label="communicating alone")
    communication_low_pct: Fact[float] = fact(
        "share of all communication on the rank with least of it", label="communication, least of a rank"
    )
    communication_high_pct: Fact[float] = fact("the same on the rank with most", label="communication, most of a rank")
    late_rank: Fact[float] = fact("the rank with least, which the others wait for; NaN where ranks are unknown")
    behind_pct: Fact[float] = fact(
        "share that the other ranks spend more than it with communication alone: they wait for it",
        label="waiting for the late rank",
    )
    behind_gpu_h: Fact[float] = fact("GPU time of the run in which profiled ranks waited for it; NaN where unknown")
    late_gpu_h: Fact[float] = fact("the same with its own: at the pace of the others it would be done as much sooner")
    stands_for_run: Fact[bool] = fact("these steps are like all of the run's, by their length and their kernels")
    unlike_run: Fact[bool] = fact("their length is not that of the log's steps, or their kernels not those of the run")
    launch_gpu_h: Fact[float] = fact("GPU time of the run that waited for launches, at least; NaN where they are not")
    copy_gpu_h: Fact[float] = fact("the same for copies")
    sync_gpu_h: Fact[float] = fact("the same for blocking calls")
    memory_gpu_h: Fact[float] = fact("the same for taking memory and setting CUDA up")
    data_gpu_h: Fact[float] = fact("the same for data")


@memoized
def measure_profiled(run: Run) -> ProfiledProfile:
    """Means over the profiled GPUs. Needs a trace of torch.profiler or Nsight Systems."""
    if run.profiled.empty:
        raise NotGiven("The run has no trace of a profiler.", PROFILE)
    known = run.profiled.reindex(columns=list(TABLES["profiled"].names)).drop_duplicates()
    profiled = known.sort_values(["rank", "path", "gpu"])
    rows, ranks = _rows(profiled), _ranks(profiled)
    causes = _causes(run)
    stands = causes is not None and causes.trace_fit == ""
    talks = rows["communication_total_pct"]
    late = str(talks.idxmin()) if ranks and len(rows) > 1 and talks.notna().all() else None
    waits = _waits_for(rows, late)
    behind_gpu_h = float(waits.sum()) / 100 * _steps_s(run) / 3600 if late and stands else math.nan
    return ProfiledProfile(
        by_rank=rows,
        n_traces=profiled["path"].nunique(),
        n_gpus=len(rows),
        n_ranks=_n_ranks(profiled),
        n_profiled_steps=float(rows["n_steps"].min()),
        profiled_step_s=float(rows["step_s"].median()),
        window_s=float(profiled["window_s"].min()),
        profiled_idle_pct=float(profiled["idle_pct"].mean()),
        **{f"{name}_pct": float(rows[f"{name}_pct"].mean()) for name in (
            "data", "launch", "sync", "memory", "copy", "communication"
        )},
        communication_low_pct=float(talks.min()),
        communication_high_pct=float(talks.max()),
        late_rank=float(late) if late else math.nan,
        behind_pct=float(waits.drop(late).mean()) if late else math.nan,
        behind_gpu_h=behind_gpu_h,
        late_gpu_h=behind_gpu_h * len(rows) / (len(rows) - 1) if late else math.nan,
        stands_for_run=stands,
        unlike_run=causes is not None and causes.trace_fit in UNLIKE,
        launch_gpu_h=_hours(causes, stands, "launch"),
        copy_gpu_h=_hours(causes, stands, "copy"),
        sync_gpu_h=_hours(causes, stands, "sync"),
        memory_gpu_h=_hours(causes, stands, "memory", "setup"),
        data_gpu_h=_hours(causes, stands, "loader"),
    )  # fmt: skip


def _rows(profiled: pd.DataFrame) -> pd.DataFrame:
    """The columns of :class:`ProfiledRank`; states that are one cause to a reader are one."""

    def known(*names: str) -> pd.Series:
        return profiled[list(names)].sum(axis=1, min_count=len(names)).astype(float)

    out = {
        **{name: known(name) for name in ("n_steps", "step_s", "compute_pct", "communication_pct")},
        **{name: known(name) for name in ("communication_total_pct", "data_pct")},
        "copy_pct": known("copy_pct") + profiled["pageable_pct"].fillna(0.0),
        "launch_pct": known("operator_pct", "optimizer_pct"),
        "sync_pct": known("sync_pct"),
        "memory_pct": known("memory_pct", "setup_pct"),
        "other_pct": known("other_pct"),
        "queued_pct": known("queued_pct"),
    }
    names = [str(rank) for rank in profiled["rank"]] if _ranks(profiled) else _files(profiled)
    return pd.DataFrame(out).set_axis(pd.Index(names, name="rank", dtype=text_dtype()))


def _waits_for(rows: pd.DataFrame, late: str | None) -> pd.Series:
    """Share of the profiled time that each rank communicates alone beyond what the late one does."""
    alone = rows["communication_pct"]
    return (alone - alone[late]).clip(lower=0.0) if late else alone * math.nan


def _steps_s(run: Run) -> float:
    """Seconds that the training which spans most was in its steps, pauses and restarts left out."""
    steps = [sum(one.least_steps_s for one in training.intervals) for training in logged_trainings(run)]
    return max(steps, default=math.nan)


def _n_ranks(profiled: pd.DataFrame) -> float:
    """How many ranks the traces name."""
    ranks = profiled["rank"]
    return float(ranks.nunique()) if ranks.notna().all() else math.nan


def _ranks(profiled: pd.DataFrame) -> bool:
    """Whether ranks tell the GPUs apart."""
    return bool(profiled["rank"].notna().all()) and profiled["rank"].is_unique


def _files(profiled: pd.DataFrame) -> list[str]:
    """File and GPU of each; files of one name by their number."""
    names = [f"{Path(path).name} GPU {gpu}" for path, gpu in zip(profiled["path"], profiled["gpu"], strict=True)]
    return [
        name if names.count(name) == 1 else f"{name} ({names[:at].count(name) + 1})" for at, name in enumerate(names)
    ]


def _causes(run: Run) -> CausesProfile | None:
    try:
        return measure_causes(run)
    except NotMeasurable:
        return None


def _hours(causes: CausesProfile | None, stands: bool, *names: str) -> float:
    """GPU-hours of the run that waited for these at least."""
    if causes is None or not stands:
        return math.nan
    return float(causes.by_cause["low_gpu_s"].reindex(list(names)).sum()) / 3600
