"""Can the record be trusted?"""

from __future__ import annotations

from gpudiag.errors import NotMeasurable
from gpudiag.measures.recorder import Mix, RecorderProfile, measure_recorder
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, Outcome, Passed, worst_gpu
from gpudiag.rules._engine.rule import rule
from gpudiag.statement import Statement

MIXED = {
    Mix.SEVERAL: "GPU {owners} has {n} values of {name}",
    Mix.SHARED: "GPU {owners} share one {name}",
    Mix.TOTAL: "GPU {owners} has a total of memory that changes",
}


@rule(
    measure=measure_recorder,
    severity="warning",
    title="The power sensor is stuck",
    checks="Power sensor",
    says="{gpu} reported the same power for {stuck_s}, idle or busy.",
    remedy="Do not use power and energy of this record. Reload the driver, and check whether clocks are low.",
    refuted_by="Not a problem if power is reported in such coarse steps that idle and busy read alike.",
    explained_by=("power-fault-throttling", "power-implausible"),
)
def sensor_stuck(rec: RecorderProfile, *, max_stuck_s: float = 60.0) -> Evidence | None:
    """A sensor that reads the same for an idle and a busy GPU does not measure.

    One and the same power reading for more than 60 s and 20 samples (METHODS 8), in which the GPU was both idle (10 %
    or less) and busy (50 % or more) for a tenth of the time each. Readings at the power limit are exempt: a capped
    GPU is meant to stay there.
    """
    table = rec.per_gpu
    if not table["stuck_s"].notna().any():
        raise NotMeasurable(
            "There are no power readings beside utilization.", "Record power.draw and utilization.gpu of every GPU."
        )
    stuck = table[table["stuck_s"] > max_stuck_s]
    if stuck.empty:
        return None
    worst = stuck["stuck_s"].idxmax()
    return worst_gpu(worst, stuck, ("stuck_s",), margin=float(stuck.at[worst, "stuck_s"] - max_stuck_s))


@rule(
    measure=measure_recorder,
    severity="note",
    title="The recorder slows down under load",
    checks="Sampling rate under load",
    says="{gpu} was sampled every {busy_period_s} while busy and every {idle_period_s} while idle.",
    remedy="Do not average over rows; gpudiag weights by time. Record in a process of its own at higher priority, or "
    "at a lower rate.",
    refuted_by="Not a problem if the rate was set by hand according to load.",
)
def sampler_slows_down(rec: RecorderProfile, *, max_slow_ratio: float = 1.3) -> Outcome:
    """Fewer samples while busy make a busy GPU look idle in every mean over rows.

    The median step between samples while busy is more than 1.3 times that while idle (a default without a published
    source). At a ratio that is common the bias is -16 points (METHODS 0).
    """
    table = rec.per_gpu
    slow = table[table["slow_ratio"] > max_slow_ratio]
    if slow.empty:
        if not table["slow_ratio"].notna().any():
            raise NotApplicable(
                "No GPU was both idle and busy long enough to compare the sampler's steps, in samples of one log."
            )
        return Passed.most(
            table[table["slow_ratio"].notna()],
            "slow_ratio",
            "Samples under load are {slow_ratio:as ratio} times as far apart as when idle",
            "limit {max_slow_ratio:as ratio}",
        )
    worst = slow["slow_ratio"].idxmax()
    return worst_gpu(
        worst,
        slow,
        ("busy_period_s", "idle_period_s", "slow_ratio"),
        margin=float(slow.at[worst, "slow_ratio"] - max_slow_ratio),
    )


@rule(
    measure=measure_recorder,
    severity="note",
    title="A column never changes",
    checks="Constant columns",
    says="{n_columns:column} never changed: {listed}.",
    remedy="Treat the column as missing, and check the recorder: a constant often stands for a metric that could not "
    "be read.",
    refuted_by="Not a problem if the quantity really stood still.",
)
def placeholder_columns(rec: RecorderProfile, *, max_columns: float = 0.0) -> Evidence | None:
    """A placeholder looks like a measurement, and every conclusion from it is made up.

    Power, temperature or memory activity of one value throughout although the GPU was idle and busy (a tenth of the
    samples each), or a CPU load of one value, over 20 samples or more (defaults without a published source). A CPU at
    100 % throughout may be one that has too much to do.
    """
    if not len(rec.constants) > max_columns:
        if rec.n_blind:
            raise NotMeasurable(
                "Utilization was not recorded, so whether the GPU's figures had to change is unknown.",
                "Record utilization.gpu of every GPU.",
            )
        if not rec.n_judged:
            raise NotApplicable("No GPU was seen both idle and busy, so that no column had to move.")
        return None
    distinct = rec.constants.drop_duplicates(["table", "column", "value"])
    listed = [f"{row.table}.{row.column} = {row.value:g}" for row in distinct.itertuples()]
    of_gpus = dict.fromkeys(rec.constants["gpu"].dropna())
    return Evidence(
        values={"columns": listed},
        where={"gpu": ", ".join(of_gpus)} if of_gpus else {},
        margin=len(listed) - max_columns,
        extra={"n_columns": len(listed), "listed": ", ".join(listed)},
    )


@rule(
    measure=measure_recorder,
    severity="warning",
    title="GPUs changed their identity in the record",
    checks="GPU identity",
    says="{first_conflicts}.",
    remedy="Split the record where the machine or the order of GPUs changed, and give each part as its own run. "
    "CUDA_DEVICE_ORDER=PCI_BUS_ID keeps the order.",
    refuted_by="Not a problem if a card was replaced during the run.",
)
def identity_mixed(rec: RecorderProfile, *, max_conflicts: float = 0.0) -> Evidence | None:
    """One index that stands for two cards mixes two histories into one.

    One uuid, or one bus id of a machine, on several GPUs, several on one GPU, or a total of memory that changes by more
    than 2 %: index order may differ from CUDA's, and memory.total must not vary (METHODS 1 and 8). A log that names
    uuids is followed by them, so that indices which change on the way mix nothing; a note on the input names them.
    """
    if not len(rec.mixed) > max_conflicts:
        return None
    conflicts = [
        Statement(MIXED[row.kind], owners=row.gpu, name=row.name, n=row.n) for row in rec.mixed.itertuples(index=False)
    ]
    return Evidence(
        values={"conflicts": conflicts},
        where={"gpu": ", ".join(rec.mixed["gpu"])},
        margin=len(conflicts) - max_conflicts,
        extra={"first_conflicts": "; ".join(map(str, conflicts[:4]))},
    )
