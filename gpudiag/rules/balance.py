"""Does every GPU do its share?"""

from __future__ import annotations

from gpudiag.errors import NotMeasurable
from gpudiag.measures.balance import BalanceProfile, measure_balance
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, worst_gpu
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity


@rule(
    measure=measure_balance,
    severity="warning",
    title="The GPUs share the work unevenly",
    says=(
        "Mean utilization runs from {least_pct} ({least}) to {most_pct} ({most}): Jain's index is {jain}",
        Given("by_least", ", and {jain_least} for the least used against the others"),
        ", where even work gives 1",
        Given(
            "few",
            "; {n_tasks:task} on {n_gpus:GPU} are uneven by chance (all on one with {chance_pct} probability)",
        ),
        ".",
    ),
    remedy="Look at which GPU each trial was given (CUDA_VISIBLE_DEVICES, device arguments, the list of devices) and "
    "hand trials to the GPU with the fewest; a fixed assignment by worker leaves GPUs to wait for long trials.",
    refuted_by="GPUs of different speed, or a job that was meant for some of them only.",
    explained_by=("gpu-idle-beside-busy", "gpu-unused"),
)
def gpu_imbalance(
    share: BalanceProfile, *, min_jain_ratio: float = 0.8, min_tasks_per_gpu_ratio: float = 2.0
) -> Evidence | None:
    """What one GPU does not do the others have to.

    Jain's index of mean utilization below 0.8 (METHODS 8: two GPUs with 3 and 20 % give 0.65), over all GPUs or of the
    least used one against the median of the others, as one idle GPU of many hardly moves the first (90, 90, 90, 10 %
    give 0.80 and 0.61). With fewer than two tasks a GPU an uneven share is expected by chance: then it is a note.
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
        return None
    mean = share.per_gpu["mean_pct"].dropna()
    least, most = mean.idxmin(), mean.idxmax()
    few = share.n_tasks < min_tasks_per_gpu_ratio * share.n_gpus
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
        severity=Severity.NOTE if few else None,
        extra={
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
    title="One GPU runs slower than its peers",
    says="{gpu} ran at {busy_clock_mhz} while busy, {clock_pct} of the clock of its peers.",
    remedy="Compare temperature, power limit, clocks-event reasons and PCIe link of that GPU with the others; in "
    "synchronised training the slowest one sets the pace of all.",
    refuted_by="Clocks or power limits that were set lower on purpose, or lighter kernels on that GPU.",
    explained_by=("thermal-throttling", "power-throttling", "power-fault-throttling"),
)
def gpu_straggler(
    share: BalanceProfile, *, min_clock_ratio: float = 0.85, min_busy_s: float = 300.0
) -> Evidence | None:
    """The lowest utilization is usually the fast GPU that waits, so clocks decide, not utilization.

    Median SM clock while busy (utilization >= 50) below 0.85 times that of the other GPUs of the same name: METHODS 8
    takes 0.85 of the sustained clock for throttling. Five minutes of busy time are needed (a default
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
        return None
    worst = slow["clock_ratio"].idxmin()
    ratio = float(slow.at[worst, "clock_ratio"])
    return worst_gpu(
        worst,
        slow,
        ("busy_clock_mhz", "clock_ratio", "power_ratio", "busy_s"),
        margin=min_clock_ratio - ratio,
        extra={"clock_pct": 100 * ratio},
    )
