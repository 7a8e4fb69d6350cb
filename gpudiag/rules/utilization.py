"""Did the GPUs compute?"""

from __future__ import annotations

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures.base import RECORD_SPLIT
from gpudiag.measures.utilization import UtilizationProfile, measure_utilization
from gpudiag.rules._engine.evidence import (
    Evidence,
    NotApplicable,
    Outcome,
    Passed,
    lengths,
    need_fast_samples,
    worst_gpu,
)
from gpudiag.rules._engine.judging import LONGER, MIN_OBSERVED_S, MIN_SAMPLES
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import EACH, WORST_GPU, Given, template
from gpudiag.rules._engine.verdict import Severity
from gpudiag.schema import IDLE_PCT, UNUSED_PCT
from gpudiag.values import Value

MIN_PERIODS = 10.0
MIN_WORK_PCT = 10.0
HARDLY = 0.1
"""Part of the time without a kernel from which on samples below 10 % are worth a word (a default without a source)."""
LOW_PART_PCT = 5.0
MOSTLY_SEEN = 2 / 3
"""The part of the time that lies below the 5th percentile."""
OF_IT = Given("charged", (", ", Given("charged_spread", "{charged_least_s} to "), "{charged_most_s} of it with trials"))
WHILE_TRIALS = Given("in_trials", " while trials ran")
TOO_SHORT = ("Less than {min_run_s} were observed", WHILE_TRIALS, ".")
NONE_USED = (
    "No GPU was used at all. Ask the job whether it finds one, as it is started: python -c 'import torch; "
    "print(torch.cuda.is_available())', or the like of its library. It may be built for the CPU, be told to use it, or "
    "have run on another host or at another time than was recorded. A job that needs no GPU asks for none."
)
PRINTED = "check that the driver prints utilization.gpu."
NO_UTILIZATION = f"{RECORD_SPLIT}; elsewhere {PRINTED}"


@rule(
    measure=measure_utilization,
    severity="critical",
    title="A GPU was never used",
    checks="Unused GPUs",
    says=("{gpus} never rose above {max_util_pct} utilization in ", *EACH, OF_IT, "."),
    remedy="Check CUDA_VISIBLE_DEVICES as the worker sees it, the library's own device argument and the list of "
    "devices. Or ask for fewer GPUs.",
    refuted_by="Not a problem if the GPU is partitioned (MIG), or runs under WSL without a reading of utilization.",
    explained_by=("gpu-idle-beside-busy",),
    needs_all=("gpus",),
)
def gpu_unused(
    use: UtilizationProfile, *, max_util_pct: float = UNUSED_PCT, min_periods: float = 10.0, min_run_s: float = 60.0
) -> Outcome:
    """A GPU that never ran a kernel is paid for and produces nothing.

    Utilization at most 1 % in every sample and memory never above its baseline, over 10 sampling periods
    or more: "unused GPU" of jobstats (config.py, Princeton), which samples every 30 s. For faster samplers a
    minute is the least (a default without a published source).
    """
    table = use.per_gpu
    never = (table["max_pct"] <= max_util_pct) & (table["mem_at_baseline"] != False)  # noqa: E712 - NaN is unknown
    unused = table[never & (table["n_samples"] >= min_periods) & (table["observed_s"] >= min_run_s)]
    if len(unused):
        seconds, most = float(unused["observed_s"].max()), float(unused["max_pct"].max())
        return Evidence(
            values={"max_util_pct": most, "observed_s": seconds},
            where={"gpu": ", ".join(unused.index)},
            lost_gpu_h=_charged_h(use, unused),
            margin=max_util_pct - most,
            extra=_held(use, unused),
            remedy=NONE_USED if len(unused) == len(table) else "",
        )
    _need_utilization(table, table["least_max_pct"] > max_util_pct)
    if never.any():
        raise NotMeasurable(
            "{gpus} showed no activity, but less than {min_run_s} or {min_periods:sample} were observed.",
            LONGER,
            gpus=table.index[never],
            min_run_s=min_run_s,
            min_periods=min_periods,
        )
    if not (table["max_pct"] > max_util_pct).all():
        return None
    return Passed.least(table, "max_pct", "{max_pct} at the busiest moment", "limit {max_util_pct}")


@rule(
    measure=measure_utilization,
    severity="critical",
    title="A GPU was idle while another one worked",
    checks="Work on every GPU",
    says=(
        "{gpus} ",
        Given("several", "were", "was"),
        " idle for ",
        *EACH,
        Given("max_pct", " (at most {max_pct})"),
        OF_IT,
        ", while {gpu} averaged {busiest_mean_pct}",
        Given("in_trials", " during the trials"),
        ".",
    ),
    remedy="Give each worker its GPU before CUDA starts: set CUDA_VISIBLE_DEVICES in the environment of its process, "
    "and "
    "name the device explicitly as well. Usual causes are CUDA_VISIBLE_DEVICES set in the worker after CUDA was "
    "initialized, a list of devices with one entry, and too few tasks. Or the library's own device id overrides it "
    "(gpu_device_id of LightGBM, device of XGBoost).",
    refuted_by="Not a problem if the job was meant for one GPU: then ask for one.",
    needs_all=("gpus",),
)
def gpu_idle_beside_busy(
    use: UtilizationProfile,
    *,
    idle_pct: float = IDLE_PCT,
    min_work_pct: float = MIN_WORK_PCT,
    min_periods: float = MIN_PERIODS,
    min_run_s: float = 60.0,
) -> Outcome:
    """A GPU that stays idle while the one beside it works is paid for and adds nothing.

    Always below 10 % utilization (idle by SageMaker's LowGPUUtilization) with memory at its baseline, over 10 sampling
    periods or more (jobstats' unused GPU). Meanwhile another GPU was at 10 % or more for at least a tenth of its time
    (a default without a published source: a desktop's flicker is no work). Where there are trials, it costs the time
    with a trial.
    """
    table = use.per_gpu
    if len(table) < 2:
        raise NotApplicable("There is only one GPU.")
    idle = _idle_beside(table, idle_pct, min_work_pct)
    found = table[idle & (table["n_samples"] >= min_periods) & (table["observed_s"] >= min_run_s)]
    if len(found):
        others = table[~idle & (table["duty_pct"] >= min_work_pct)]
        busiest = others["mean_pct"].idxmax()
        most, mean = float(found["max_pct"].max()), float(found["mean_pct"].max())
        return Evidence(
            values={
                "mean_pct": mean,
                "max_pct": most,
                "busiest_mean_pct": float(_at_work(use).at[busiest, "mean_pct"]),
                "busiest_max_pct": float(others.at[busiest, "max_pct"]),
                "observed_s": float(found["observed_s"].max()),
            },
            where={"gpu": ", ".join(found.index)},
            lost_gpu_h=_charged_h(use, found),
            margin=idle_pct - most,
            extra={
                **_held(use, found),
                "gpu": str(busiest),
                "others": [f"GPU {name}" for name in others.index],
                "in_trials": _in_trials(use),
            },
        )
    _need_utilization(table, table["least_max_pct"] >= idle_pct)
    if idle.any():
        raise NotMeasurable(
            "{gpus} " + ("looks" if idle.sum() == 1 else "look") + " idle, but less than {min_run_s} or "
            "{min_periods:sample} were observed.",
            LONGER,
            gpus=table.index[idle],
            min_run_s=min_run_s,
            min_periods=min_periods,
        )
    if not (table["max_pct"] >= idle_pct).all():
        return None
    return Passed.least(table, "max_pct", "{max_pct} at the busiest moment", "limit {idle_pct}")


@rule(
    measure=measure_utilization,
    severity="warning",
    title="GPU utilization is low",
    checks="Mean GPU utilization",
    says=(
        "Mean utilization of {gpus} was {mean_pct}",
        Given("spread", " to {most_pct}"),
        WHILE_TRIALS,
        ": no kernel ran for {unused_pct} of the time",
        Given("hardly_idle", ", in short waits: hardly a sample was below 10 %"),
        Given("mostly_idle", ", nearly all of it idle (below 10 %)"),
        Given("partly_idle", ", in short waits and, for {idle_pct}, idle (below 10 %)"),
        ".",
        Given("short", " The run is short ({observed_s}): judge a longer one."),
    ),
    remedy="Find out what the GPU waits for: first the input (loader workers, CPU cores, disk), then the work per "
    "step (batch size, model). Only then run more trials at once.",
    refuted_by="Not a problem if the run was so short that start-up is a large part of it.",
    explained_by=(
        "cpu-bound-input",
        "io-wait",
        "loader-slow",
        "launch-bound",
        "batch-or-kernels-small",
        "idle-before-work",
        "idle-between-work",
        "log-silent",
        "trials-abandoned",
        "study-tail",
        "trial-duration-outliers",
        "idle-after-work",
        "startup-dominated",
        "stalls-periodic",
        "stalls-aperiodic",
        "steps-paused",
        "gpu-imbalance",
    ),
)
def gpu_low_utilization(
    use: UtilizationProfile,
    *,
    very_low_pct: float = 15.0,
    low_pct: float = 25.0,
    below_par_pct: float = 50.0,
    min_run_s: float = 1800.0,
) -> Outcome:
    """The mean share of time in which the GPU ran at least one kernel, while trials ran where that is known.

    At most 15 %: critical, below 25 %: a warning, below 50 %: a note. 15 is jobstats' red, 25 and 50 are
    job_defense_shield's threshold and target (Princeton). So are the 30 minutes below which a run is too
    short for more than a note; a GPU of which a minute or ten samples are not known is not judged, however many there
    are beside it. PyTorch's profiler and the ICSE'24 study of low utilization use 50 too.
    Lost is the time in which no kernel ran, 100 % less the mean of all of it.
    A GPU that was never used, or idle beside a busy one, is named by the rule for that alone.
    """
    table = _at_work(use)
    named = (use.per_gpu["max_pct"] <= UNUSED_PCT) | _idle_beside(use.per_gpu, IDLE_PCT, MIN_WORK_PCT)
    below = (table["mean_pct"] < below_par_pct) & ~named
    low = table[below & (table["seconds"] >= MIN_OBSERVED_S) & (use.per_gpu["n_samples"] >= MIN_SAMPLES)]
    if low.empty and below.any():
        raise NotMeasurable(
            "{gpus} worked below {below_par_pct}, but less than {least_s} or {least:sample} of each were observed.",
            LONGER,
            gpus=table.index[below],
            below_par_pct=below_par_pct,
            least_s=MIN_OBSERVED_S,
            least=MIN_SAMPLES,
        )
    if low.empty:
        enough = (use.per_gpu["least_mean_pct"] >= below_par_pct) & ~pd.Series(_in_trials(use), use.per_gpu.index)
        _need_utilization(use.per_gpu, enough)
        _need_use(use.per_gpu)
        return Passed.least(
            table[~named],
            "mean_pct",
            "{mean_pct} while trials ran" if _in_trials(use) else "{mean_pct}",
            "limit {below_par_pct}",
        )
    worst = low["mean_pct"].idxmin()
    mean, most = float(low.at[worst, "mean_pct"]), float(low["mean_pct"].max())
    seconds = float(low.at[worst, "seconds"])
    short = seconds < min_run_s
    seen_gpu_h = float(low["seconds"].sum()) / 3600
    unused_gpu_h = float(((1 - low["mean_pct"] / 100) * low["seconds"]).sum()) / 3600
    idle_gpu_h = float(low["idle_gpu_h"].sum(skipna=False))
    part = idle_gpu_h / unused_gpu_h
    return Evidence(
        values={"mean_pct": mean, "observed_s": seconds, "unused_gpu_h": unused_gpu_h, "idle_gpu_h": idle_gpu_h},
        where={"gpu": ", ".join(low.index)},
        lost_gpu_h=unused_gpu_h,
        margin=below_par_pct - mean,
        severity=_level(mean, very_low_pct, low_pct) if not short else Severity.NOTE,
        extra={
            "spread": most - mean >= 0.1,
            "most_pct": most,
            "in_trials": _in_trials(use),
            "short": short,
            "unused_pct": 100 * unused_gpu_h / seen_gpu_h,
            "idle_pct": 100 * idle_gpu_h / seen_gpu_h,
            "hardly_idle": part < HARDLY,
            "mostly_idle": part > 1 - HARDLY,
            "partly_idle": HARDLY <= part <= 1 - HARDLY,
        },
    )


@rule(
    measure=measure_utilization,
    severity="warning",
    title="The GPU alternates between busy and idle",
    checks="Idle phases between busy ones",
    says=(
        *WORST_GPU,
        " was idle for {active_idle_pct} of the time ",
        Given("in_trials", "with trials from its first to its last work", "from its first to its last work"),
        Given("in_trials", "", ", pauses of more than 10 min left out"),
        ", yet it ran at {p95_pct}",
        Given("above", " or more"),
        " for at least 5 % of it.",
        Given("short_waits", " No kernel ran in {no_kernel_pct} of it."),
    ),
    remedy="Find the period. Regular waits point to validation or checkpoints, irregular ones to the input. Overlap "
    "that work with training: prefetch, loader workers, asynchronous checkpoints.",
    refuted_by="Not a problem if short trials start and end one after the other: see start-up.",
    explained_by=(
        "stalls-periodic",
        "stalls-aperiodic",
        "steps-paused",
        "cpu-bound-input",
        "io-wait",
        "startup-dominated",
        "trial-duration-outliers",
    ),
)
def gpu_fluctuating(
    use: UtilizationProfile,
    *,
    high_pct: float = 70.0,
    low_pct: float = 10.0,
    min_run_s: float = 300.0,
    severe_idle_pct: float = 20.0,
    min_periods: float = 3.0,
    max_sampling_s: float = 30.0,
) -> Outcome:
    """A GPU that is busy at times and idle at others waits for something, and the waits can be overlapped.

    95th percentile at least 70 % and 5th percentile below 10 %, each of the time with trials from the GPU's first to
    its last activity: SageMaker LowGPUUtilization(70, 10). Without trials it must fall idle three times, and pauses of
    more than 10 minutes are left out: they may lie between two jobs (idle-between-work). Start-ups and time between
    trials have checks of their own: nothing is found where they leave less idle time than the 5 % of that percentile.
    Waits shorter than what a sample shows lie in samples above 10 % too: where those below hold less than two thirds of
    what is missing from the level of work, the cost is all the time without a kernel. It is a note until a fifth of
    that time is idle. That, the two thirds, the three times, the 5 minutes below which percentiles say little, and the
    30 s between samples above which finding none says nothing, are defaults without a published source.
    """
    table = _figures(use, "active_", "active_s")
    long_enough = _at_work(use)["seconds"] >= min_run_s
    by_turns = _in_trials(use) | (use.per_gpu["active_idle_phases"] >= min_periods)
    high_and_low = (table["p95_pct"] >= high_pct) & (table["p5_pct"] < low_pct) & ~_idle_between_trials(use)
    uneven = table[high_and_low & by_turns & (table["seconds"] >= min_run_s)]
    if uneven.empty:
        _need_utilization(use.per_gpu)
        _need_use(use.per_gpu)
        need_fast_samples(use.sampling_period_s, max_sampling_s)
        if not long_enough.all():
            values = {"min_run_s": min_run_s, "in_trials": _in_trials(use)}
            raise NotMeasurable(template(TOO_SHORT, values), LONGER, **values)
        if not (table["p5_pct"] >= low_pct).all():
            return None
        return Passed.least(table, "p5_pct", "Below {p5_pct} for only 5 % of the time", "limit {low_pct}")
    worst = uneven["idle_gpu_h"].idxmax()
    row = uneven.loc[worst]
    idle_pct = 100 * row["idle_gpu_h"] * 3600 / row["seconds"]
    no_kernel_h = (1 - uneven["mean_pct"] / 100) * uneven["seconds"] / 3600
    missing_h = (1 - uneven["mean_pct"] / uneven["p95_pct"]) * uneven["seconds"] / 3600
    short = uneven["idle_gpu_h"] < MOSTLY_SEEN * missing_h
    return worst_gpu(
        worst,
        uneven.assign(active_idle_pct=idle_pct),
        ("p95_pct", "p5_pct", "active_idle_pct"),
        lost_gpu_h=float(uneven["idle_gpu_h"].mask(short, no_kernel_h).sum()),
        margin=float(low_pct - row["p5_pct"]),
        severity=None if idle_pct >= severe_idle_pct else Severity.NOTE,
        extra={
            "above": row["p95_pct"] < 99.5,
            "in_trials": _in_trials(use),
            "short_waits": bool(short[worst]),
            "no_kernel_pct": float(100 - row["mean_pct"]),
        },
    )


def _idle_between_trials(use: UtilizationProfile) -> pd.Series:
    """True for each GPU whose idle time, but for start-ups and the time between trials, is below LOW_PART_PCT."""
    return 100 * 3600 * use.per_gpu["idle_in_trials_gpu_h"] / use.per_gpu["active_s"] < LOW_PART_PCT


def _idle_beside(table: pd.DataFrame, idle_pct: float, min_work_pct: float) -> pd.Series:
    """True for each GPU without work or memory of its own while another one worked."""
    idle = (table["max_pct"] < idle_pct) & (table["mem_at_baseline"] != False)  # noqa: E712 - NaN is unknown
    works = table["duty_pct"] >= min_work_pct
    return idle & (works & ~idle).any()


def _level(mean_pct: float, very_low_pct: float, low_pct: float) -> Severity:
    if mean_pct <= very_low_pct:
        return Severity.CRITICAL
    return Severity.WARNING if mean_pct < low_pct else Severity.NOTE


def _at_work(use: UtilizationProfile) -> pd.DataFrame:
    """mean_pct, p5_pct, p95_pct, idle_gpu_h, seconds per GPU: while trials ran if that was seen, else throughout."""
    return _figures(use, "trial_", "trial_s") if _in_trials(use) else _figures(use, "", "observed_s")


def _in_trials(use: UtilizationProfile) -> bool:
    return bool((use.per_gpu["trial_s"] > 0).any())


def _charged_h(use: UtilizationProfile, gpus: pd.DataFrame) -> float:
    """GPU-hours for which some GPUs were held: with a trial where that was seen, else observed."""
    return float(gpus["trial_s" if _in_trials(use) else "observed_s"].sum() / 3600)


def _held(use: UtilizationProfile, gpus: pd.DataFrame) -> dict[str, Value]:
    """What a sentence says of how long some GPUs were held, and of the part that is charged where that is not all."""
    charged = lengths(gpus["trial_s"].fillna(0.0))
    part = _in_trials(use) and gpus["trial_s"].sum() < 0.99 * gpus["observed_s"].sum()
    return {
        **lengths(gpus["observed_s"]),
        "charged": part,
        **{f"charged_{name}": charged[name] for name in ("spread", "least_s", "most_s")},
    }


def _figures(use: UtilizationProfile, prefix: str, seconds: str) -> pd.DataFrame:
    names = {f"{prefix}{name}": name for name in ("mean_pct", "p5_pct", "p95_pct", "idle_gpu_h")}
    return use.per_gpu[[*names, seconds]].rename(columns={**names, seconds: "seconds"})


def _need_use(table: pd.DataFrame) -> None:
    """How well a GPU is used cannot be asked where none was used at all."""
    if (table["max_pct"] <= UNUSED_PCT).all():
        raise NotApplicable("No GPU was used at all: see the check on GPUs that were never used (gpu-unused).")


def _need_utilization(table: pd.DataFrame, fine: pd.Series | None = None) -> None:
    """Nothing found is no health where a GPU does not say how busy it was. ``fine``: true for a GPU of which the least
    that it was busy is enough; None where that cannot tell.
    """
    unknown = table["mean_pct"].isna() if fine is None else table["mean_pct"].isna() & ~fine
    silent = table.index[unknown & table["least_mean_pct"].isna()]
    if len(silent):
        raise NotMeasurable(
            "Utilization of {gpus} is not reported (N/A throughout, as under MIG).",
            PRINTED[:1].upper() + PRINTED[1:] if fine is None else NO_UTILIZATION,
            gpus=silent,
        )
    if unknown.any():
        raise NotMeasurable(
            "Utilization of {gpus} is not reported; DCGM's activity, as under MIG, is only the least that it was.",
            gpus=table.index[unknown],
        )
