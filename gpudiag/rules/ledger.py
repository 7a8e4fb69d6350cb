"""What the GPU-time ledger says about who used the GPUs."""

from __future__ import annotations

from gpudiag.measures.ledger import LedgerProfile, measure_ledger
from gpudiag.rules._engine.evidence import Evidence, NotApplicable
from gpudiag.rules._engine.rule import rule


@rule(
    measure=measure_ledger,
    severity="warning",
    title="Something else used the GPU",
    says="{gpus} was above 10 % utilization for {foreign_s} while no trial ran on it: {foreign_of_no_trial_pct} of its "
    "time without a trial.",
    remedy="List the processes on the GPU (nvidia-smi --query-compute-apps=pid,process_name,used_gpu_memory "
    "--format=csv -l 5) and move the other job away; or give the trials that this record lacks.",
    refuted_by="Trials that are missing in the record, or clocks that differ: see the evidence on the clock.",
)
def foreign_load(
    ledger: LedgerProfile, *, max_foreign_pct: float = 5.0, min_foreign_s: float = 60.0
) -> Evidence | None:
    """Load that no trial explains takes memory and speed from the trials, and spoils every figure about them.

    More than 5 % of the time without a trial is above 10 % utilization (METHODS 3; a default without a
    published source), for a minute at least.
    """
    if not ledger.has_trials:
        raise NotApplicable("No trial is known for the time observed, so nothing can be told apart as foreign.")
    if ledger.n_unknown_gpu:
        raise NotApplicable("Trials of unknown GPU may explain the load.")
    foreign = ledger.cells[(ledger.cells["cell"] == "foreign") & (ledger.cells["gpu_s"] > 0)]
    seconds = float(foreign["gpu_s"].sum())
    if not (ledger.foreign_of_no_trial_pct > max_foreign_pct and seconds >= min_foreign_s):
        return None
    where = foreign.loc[foreign["gpu_s"] >= 0.05 * seconds, "gpu"].astype(str)
    return Evidence(
        values={"foreign_s": seconds, "foreign_of_no_trial_pct": ledger.foreign_of_no_trial_pct},
        where={"gpu": ", ".join(where)},
        lost_gpu_h=seconds / 3600,
        margin=ledger.foreign_of_no_trial_pct - max_foreign_pct,
    )
