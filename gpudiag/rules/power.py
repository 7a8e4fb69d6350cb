"""Are the power readings possible?"""

from __future__ import annotations

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures.power import SUSTAINED_LIMIT, PowerProfile, measure_power
from gpudiag.rules._engine.evidence import Outcome, Passed, worst_gpu
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity

REJECTED = (
    "{n_rejected:reading} of {gpu}, up to {max_all_w}, ",
    Given("several_readings", "are", "is"),
    " beyond what a board with a limit of {limit_w} (from the {limit_source}) can draw",
    Given("frozen", ", for {longest_rejected_s} without a break"),
    ". Mean power is {mean_w} without them, {mean_all_w} with them.",
)
OVER_LIMIT = "{gpu} drew more than {sustained_limit} times its limit of {limit_w} for {over_limit_pct} of the time."


@rule(
    measure=measure_power,
    severity="note",
    title="Some power readings are impossible",
    checks="Power readings",
    says=Given("n_rejected", REJECTED, OVER_LIMIT),
    remedy="Use the mean without these readings. If they last, look at the clocks: on some laptop chips this driver "
    "fault really throttles the GPU (NVIDIA/open-gpu-kernel-modules issues 1237 and 1287).",
    refuted_by="Not a problem if the power limit is not this board's: state power_limit_w in run.toml.",
)
def power_implausible(power: PowerProfile, *, frozen_s: float = 60.0, max_over_limit_pct: float = 5.0) -> Outcome:
    """A reading far above the limit is a fault of the sensor or driver, and it spoils means and energy.

    Implausible: above 1.3 times the limit on sensors that average over 1 s (Ampere but GA100, and newer), above
    1.6 times on older ones, which read an instant (arXiv 2312.02741). An A100 really drew 1.5 times its limit in the
    Acme trace. A single spike is harmless; readings that stay for a minute are the frozen telemetry of a known
    driver fault and a warning. So is an averaged power above 1.10 times the limit for more than 5 % of the time.
    """
    table = power.per_gpu
    odd = table[(table["n_rejected"] > 0) | (table["over_limit_pct"] > max_over_limit_pct)]
    if odd.empty:
        _need_limit(table)
        return Passed.most(
            table.assign(of_possible=table["max_all_w"] / table["plausible_w"]),
            "of_possible",
            "Up to {max_all_w} at a power limit of {limit_w}",
            "{plausible_w} is possible",
        )
    worst = odd["n_rejected"].idxmax()
    row = odd.loc[worst]
    lasting = bool((odd["longest_rejected_s"] >= frozen_s).any() or (odd["over_limit_pct"] > max_over_limit_pct).any())
    return worst_gpu(
        worst,
        odd,
        (
            "n_rejected", "rejected_pct", "max_all_w", "limit_w", "plausible_w", "mean_all_w", "mean_w",
            "longest_rejected_s", "over_limit_pct", "rejected_capped_pct",
        ),
        margin=float(row["max_all_w"] - row["plausible_w"]) if row["n_rejected"] > 0 else None,
        severity=Severity.WARNING if lasting else None,
        extra={
            "frozen": row["longest_rejected_s"] >= frozen_s,
            "several_readings": row["n_rejected"] > 1,
            "sustained_limit": SUSTAINED_LIMIT,
        },
    )  # fmt: skip


def _need_limit(table: pd.DataFrame) -> None:
    """Nothing found is no health where a GPU's power or limit is unknown."""
    silent = table.index[table["max_all_w"].isna()]
    if len(silent):
        raise NotMeasurable("Power of {gpus} was not recorded.", "Record power.draw of every GPU.", gpus=silent)
    unknown = table.index[table["limit_w"].isna()]
    if len(unknown):
        raise NotMeasurable(
            "The power limit of {gpus} is unknown: it is neither in the log nor in the data sheet.",
            "Record power.limit, or state power_limit_w under [gpus.{first}] in run.toml.",
            gpus=unknown,
            first=unknown[0],
        )
