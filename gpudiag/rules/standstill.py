"""Does the training go on while its GPUs look busy?"""

from __future__ import annotations

import pandas as pd

from gpudiag.measures.standstill import StandstillProfile, measure_standstill
from gpudiag.rules._engine.evidence import Evidence, worst_gpu
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import WORST_GPU, Given
from gpudiag.rules._engine.verdict import Severity

READ_LOG = (
    "Read what the log tells from there on. Where it counts on, as a test or a generation of samples does, all is "
    "well. Where it only waits or repeats itself, see where each process stands (py-spy dump --pid PID)."
)


@rule(
    measure=measure_standstill,
    severity="warning",
    title="GPUs stayed busy at a fraction of their power",
    checks="Progress at high utilization",
    says=(
        *WORST_GPU,
        " drew {low_w} for {low_s} at {low_util_pct} utilization, {before_w} before.",
        Given("stops_short", " The log stops at step {last_step:as count} of {total_steps:as count}."),
        Given("written_s", " The log goes on for {written_s} of it, without a step."),
        Given("hangs", " A training that hangs looks like that.", " It may hang, or do lighter work."),
    ),
    remedy="See where each process stands (py-spy dump --pid PID). A collective that waits keeps utilization at 100 %. "
    "Let a timeout end it (init_process_group(timeout=...)), and a watchdog end a job whose log is silent.",
    refuted_by="Not a problem if this was an evaluation or another lighter phase that you know of.",
    explained_by=("rank-missing", "collective-stuck", "collective-mismatch"),
)
def busy_without_progress(
    s: StandstillProfile, *, min_low_s: float = 600.0, max_low_ratio: float = 0.25, max_logged_ratio: float = 0.6
) -> Evidence | None:
    """Utilization counts a kernel that only waits for another GPU: a training that hangs shows 100 %, and little power.

    After 5 minutes of busy time, power stays at a quarter of it (above idle) or less for 10 minutes. Meanwhile
    utilization is full, power and memory stand still, no trial begins or ends, and no line on steps is written.
    PyTorch ends a collective of NCCL after 10 min; the shares are defaults without a published source. Where the log
    falls silent short of its last step and GPUs stay busy from then on at 0.6 of their power or less, that is told too.
    Where both hold, the training did not go on, and its time is lost; else it may have done lighter work, and the loss
    is unknown. Where the log goes on with other lines, it is a note. After a stretch of the same power and of half its
    length or more, from which the GPU worked on by itself, it is a phase of the work. An idle power that the record
    does not show is taken for 0 W; what is a fault only with the greatest possible one is a note.
    """
    table = s.per_gpu
    flat = table["is_flat"] == True  # noqa: E712 - NaN is unknown
    logged = table["after_log"] == True  # noqa: E712 - NaN is unknown

    def quiet(ratio: pd.Series) -> pd.Series:
        return ((ratio <= max_low_ratio) & flat) | ((ratio <= max_logged_ratio) & logged)

    long = table["low_s"] >= min_low_s
    surely, perhaps = long & quiet(table["low_ratio"]), long & quiet(table["least_low_ratio"])
    found = table[surely if surely.any() else perhaps]
    if found.empty or s.goes_on:
        return None
    still = (table["low_ratio"] <= max_low_ratio) & flat
    hangs = bool((still & logged)[found.index].all())
    worst = found["low_s"].idxmax()
    seconds = float(found["low_s"].sum())
    return worst_gpu(
        worst,
        found,
        ("low_s", "low_w", "before_w", "idle_w", "low_ratio", "least_low_ratio", "low_util_pct"),
        margin=float(found.at[worst, "low_s"] - min_low_s),
        severity=Severity.CRITICAL if hangs else None if surely.any() and not s.written_s > 0 else Severity.NOTE,
        lost_gpu_h=seconds / 3600 if hangs else None,
        held_gpu_h=None if hangs else seconds / 3600,
        extra={
            "stops_short": bool(logged[found.index].any()),
            "last_step": s.last_step,
            "total_steps": s.total_steps,
            "hangs": hangs,
            "written_s": s.written_s,
        },
        remedy=READ_LOG if s.written_s > 0 else "",
    )
