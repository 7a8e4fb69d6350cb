"""Did the GPU's load change for good during the run?"""

from __future__ import annotations

from gpudiag.errors import NotMeasurable
from gpudiag.measures.shift import MIN_BLOCKS, ShiftProfile, measure_shift
from gpudiag.rules._engine.evidence import Evidence
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given

START_AGAIN = "Start the worker again whose trial is still marked RUNNING, and find out what ended it."


@rule(
    measure=measure_shift,
    severity="warning",
    title="Utilization dropped for good during the run",
    checks="Lasting drop in utilization",
    says=(
        "{gpu} fell by {fall_pct:=points} to {last_pct} and stayed there for its last {fall_s} of work.",
        Given("dead_trial", " Trial {dead_trial} died about then, and fewer ran at once since."),
    ),
    remedy="See what changed when the last segment starts: a worker that died, another job on the host, heat, a full "
    "cache, or larger inputs.",
    refuted_by="Not a problem if the search moved to lighter models by itself.",
    explained_by=("thermal-throttling", "hardware-slowdown", "power-throttling", "cpu-bound-input", "io-wait"),
)
def gpu_level_shift(shift: ShiftProfile, *, min_fall_pct: float = 20.0, min_share_pct: float = 10.0) -> Evidence | None:
    """A run that slows down half-way through has a cause with a time.

    PELT with l2 cost and penalty 3 log n on block means of utilization at work, segments of 3 blocks or more
    (METHODS 8); blocks are one period long where there is one, 60 s at least. The last segment must lie 20 points
    below the mean of what was before it, and hold a tenth of the work (defaults without a published source).
    Evaluations and checkpoints that a log tells of are left out. Where so few trials began since, or before, that
    the lowest of them may have come last by chance in one search of a hundred, it is not assessed.
    """
    table = shift.per_gpu
    share = 100 * table["fall_s"] / (table["fall_s"] + table["before_s"])
    earlier = 100 - share
    found = table[(table["fall_pct"] >= min_fall_pct) & (share >= min_share_pct) & (earlier >= min_share_pct)]
    if found.empty:
        if not (table["n_segments"] > 0).any():
            raise NotMeasurable(
                "There is too little work to judge its course, which is compared in stretches of {block_s}.",
                "Judge a run with {needed_s} of work.",
                block_s=float(table["block_s"].min()),
                needed_s=MIN_BLOCKS * float(table["block_s"].min()),
            )
        return None
    few = found.index[found["is_few"].eq(True)]
    if len(few) == len(found):
        raise NotMeasurable(
            "{gpus} fell by {fall_pct:=points}, in so few trials that those which need less may have come last.",
            "Judge a search of more trials, or run one of the first again.",
            gpus=few,
            fall_pct=float(found["fall_pct"].max()),
        )
    found = found.drop(few)
    worst = (found["fall_pct"] * found["fall_s"]).idxmax()
    row = found.loc[worst]
    last = shift.segments[shift.segments["gpu"] == worst].iloc[-1]
    return Evidence(
        values={
            name: float(row[name]) for name in ("fall_pct", "first_pct", "last_pct", "fall_s", "n_segments", "block_s")
        },
        where={"gpu": ", ".join(found.index), "time": last["start"].isoformat()},
        lost_gpu_h=float((found["fall_pct"] / 100 * found["fall_s"]).sum() / 3600),
        margin=float(row["fall_pct"] - min_fall_pct),
        remedy=START_AGAIN if row["dead_trial"] else "",
        extra={"gpu": str(worst), "dead_trial": row["dead_trial"]},
    )
