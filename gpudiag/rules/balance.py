"""Does every GPU do its share?"""

from __future__ import annotations

import math

from gpudiag.errors import NotMeasurable
from gpudiag.measures.balance import BalanceProfile, measure_balance
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, Outcome, Passed, worst_gpu
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import WORST_GPU, Given
from gpudiag.rules._engine.verdict import Severity

OF_ONE_TRAINING = (
    "See what ran on each: nvidia-smi --query-compute-apps=gpu_uuid,pid,name --format=csv. In one training, look for a "
    "rank with less work or a slower input than the others. Of several, each has its own cause: diagnose them apart "
    "(--gpus)."
)
"""Without trials."""
APART = (
    "Diagnose each training by its own log and its own GPUs (--gpus). If they are ranks of one, let their lines or the "
    "names of their files say so (rank0)."
)


@rule(
    measure=measure_balance,
    severity="warning",
    title="The GPUs share the work unevenly",
    checks="Balance between GPUs",
    says=(
        "{least} averaged {least_pct}, {most} {most_pct}",
        Given("models", "; they are of different models ({models}), whose equal shares are no equal loads"),
        Given("few", "; with {n_tasks:task} on {n_gpus:GPU} that may be chance"),
        ".",
    ),
    remedy="Check which GPU each trial was given (CUDA_VISIBLE_DEVICES, device arguments). Hand each new trial to the "
    "GPU with the fewest; a fixed GPU for each worker lets GPUs wait for long trials.",
    refuted_by="Not a problem if the GPUs differ in speed, or the job was meant for some of them.",
    explained_by=(
        "rank-missing",
        "gpu-idle-beside-busy",
        "gpu-unused",
        "trials-abandoned",
        "study-tail",
        "trial-duration-outliers",
    ),
)
def gpu_imbalance(
    share: BalanceProfile, *, min_jain_ratio: float = 0.8, min_tasks_per_gpu_ratio: float = 2.0
) -> Outcome:
    """What one GPU does not do, the others have to.

    Jain's index of mean utilization below 0.8: two GPUs at 3 and 20 % give 0.65 (METHODS 8). The index is taken over
    all GPUs, or of the least used one against the median of the others, as one idle GPU of many hardly moves the
    first (90, 90, 90, 10 % give 0.80 and 0.61). With fewer than two tasks a GPU an uneven share is expected by
    chance, and between GPUs of different models by their speed: then it is a note. Work that a GPU did not do yet
    needs a minute of record, as an unused GPU does. Trainings of their own share no work: where as many logs tell of
    steps at once, and not that they are of ranks, it is not assessed.
    """
    if share.n_gpus < 2:
        raise NotApplicable("There is only one GPU.")
    jain = share.jain_least if share.jain_least < share.jain else share.jain
    if not jain < min_jain_ratio:
        unknown = share.per_gpu.index[share.per_gpu["mean_pct"].isna()]
        if len(unknown):
            raise NotMeasurable(
                "Utilization of {gpus} is not reported.", "Record utilization of every GPU.", gpus=unknown
            )
        return Passed.least(
            share.per_gpu,
            "mean_pct",
            "{mean_pct} to {most_pct} on average, with a Jain index of {jain:as ratio}",
            "limit {min_jain_ratio:as ratio}",
            most_pct=float(share.per_gpu["mean_pct"].max()),
            jain=jain,
        )
    if share.n_at_once > 1 and not share.n_tasks > 0:
        raise NotMeasurable(
            "{n} logs tell of steps at once. They may be of trainings of their own, which share no work.",
            APART,
            n=share.n_at_once,
        )
    mean = share.per_gpu["mean_pct"].dropna()
    least, most = mean.idxmin(), mean.idxmax()
    few = share.n_tasks < min_tasks_per_gpu_ratio * share.n_gpus
    models = [str(share.per_gpu.at[gpu, "model"]) for gpu in (least, most)]
    differ = all(models) and models[0] != models[1]
    # What the least used one did less than the others may be all that is low about it.
    behind_h = (
        float(mean.drop(least).median() - mean[least]) / 100 * float(share.per_gpu.at[least, "observed_s"]) / 3600
    )
    return Evidence(
        values={
            "jain": share.jain,
            "jain_least": share.jain_least,
            "gini": share.gini,
            "least_pct": float(mean[least]),
            "most_pct": float(mean[most]),
        },
        where={"gpu": str(least)},
        margin=min_jain_ratio - jain,
        severity=Severity.NOTE if few or differ else None,
        held_gpu_h=behind_h if behind_h >= 0 else None,
        absence=True,
        remedy=OF_ONE_TRAINING if math.isnan(share.n_tasks) else "",
        extra={
            "models": ", ".join(models) if differ else "",
            "least": f"GPU {least}",
            "most": f"GPU {most}",
            "by_least": share.n_gpus > 2 and jain < share.jain,
            "few": few,
            "n_tasks": share.n_tasks,
            "n_gpus": share.n_gpus,
            "chance_pct": share.chance_pct,
        },
    )


@rule(
    measure=measure_balance,
    severity="warning",
    title="GPUs run slower than their peers",
    checks="Clock differences between GPUs",
    says=(*WORST_GPU, " ran at {busy_clock_mhz} while busy, {clock_pct} of the clock of its peers."),
    remedy="Compare temperature, power limit, throttle reasons and PCIe link of that GPU with the others. In "
    "synchronized training the slowest GPU sets the pace of all.",
    refuted_by="Not a problem if clocks or power limits were lowered on purpose, or that GPU ran lighter kernels.",
    explained_by=("thermal-throttling", "hardware-slowdown", "power-throttling", "power-fault-throttling"),
)
def gpu_straggler(share: BalanceProfile, *, min_clock_ratio: float = 0.85, min_busy_s: float = 300.0) -> Outcome:
    """The GPU with the lowest utilization is often the fast one that waits, so clocks decide.

    Median SM clock while busy (utilization of 50 % or more) below 0.85 times that of the other GPUs of the same name;
    0.85 of the sustained clock counts as throttling (METHODS 8). Five minutes of busy time are needed (a default
    without a published source).
    """
    if share.n_gpus < 2:
        raise NotApplicable("There is only one GPU.")
    table = share.per_gpu
    slow = table[(table["clock_ratio"] < min_clock_ratio) & (table["busy_s"] >= min_busy_s)]
    if slow.empty:
        if not table["clock_ratio"].notna().any():
            raise NotMeasurable(
                "No two GPUs of one name have SM clocks while busy.", "Record clocks.sm and the name of every GPU."
            )
        if (table["clock_ratio"] < min_clock_ratio).any():
            return None
        compared = table[table["clock_ratio"].notna()]
        return Passed.least(
            compared.assign(clock_pct=100 * compared["clock_ratio"]),
            "clock_pct",
            "{clock_pct} of the clock of the others",
            "limit {limit_pct}",
            limit_pct=100 * min_clock_ratio,
        )
    worst = slow["clock_ratio"].idxmin()
    ratio = float(slow.at[worst, "clock_ratio"])
    return worst_gpu(
        worst,
        slow,
        ("busy_clock_mhz", "clock_ratio", "power_ratio", "busy_s"),
        margin=min_clock_ratio - ratio,
        extra={"clock_pct": 100 * ratio},
    )
