"""Do early values tell the good trials from the bad?"""

from __future__ import annotations

import math

from gpudiag.errors import NotMeasurable
from gpudiag.measures.agreement import MIN_N, SAFE, AgreementProfile, measure_agreement
from gpudiag.measures.base import GIVE_STORAGE, NO_REPORTS
from gpudiag.rules._engine.evidence import Evidence, NotApplicable
from gpudiag.rules._engine.rule import rule

CONTROL = (
    "Run 15 trials or more unpruned as controls (optuna.pruners.NopPruner): only they show what pruning threw away."
)


@rule(
    measure=measure_agreement,
    severity="warning",
    title="Trials are pruned before their values mean anything",
    checks="Early values as predictors",
    says="At step {cut_step}, where pruning begins, early and final ranks agree by only {rho:estimate} ({n:complete "
    "trial}).",
    remedy="Raise min_resource, n_warmup_steps or patience to the first step at which early and final ranks agree. "
    + CONTROL,
    refuted_by="Not a problem if the final value is mostly noise: then no step predicts it.",
)
def pruned_too_early(
    agreement: AgreementProfile, *, too_early_ratio: float = 0.3, safe_ratio: float = SAFE
) -> Evidence | None:
    """A pruner that cuts where early values say nothing picks its survivors at random.

    Spearman correlation of the value at the first step that is ever cut with the final one over COMPLETE trials, with
    a 95 % bootstrap interval, from 15 trials on: all of it below 0.3 is too early, all above 0.7 is safe, between
    is undecided (METHODS 5). Survival overstates the correlation, so that a low one is strong evidence.
    """
    if not agreement.n_pruned:
        raise NotApplicable("No trial was pruned.")
    if agreement.rho_high < too_early_ratio:
        return Evidence(
            values={name: getattr(agreement, name) for name in ("rho", "rho_low", "rho_high", "n", "cut_step")},
            margin=too_early_ratio - agreement.rho_high,
        )
    if agreement.rho_low > safe_ratio:
        return None
    if math.isnan(agreement.cut_step):
        raise NotMeasurable(NO_REPORTS, GIVE_STORAGE)
    if not agreement.rho_low <= safe_ratio:
        raise NotMeasurable(
            "Only {n:COMPLETE trial} reported at the first step that is cut and after it; {n_needed} are needed.",
            CONTROL,
            n=agreement.n,
            n_needed=MIN_N,
        )
    raise NotMeasurable(
        "At step {cut_step} early and final ranks agree by {rho_low} to {rho_high} ({n:trial}): that leaves it open.",
        CONTROL,
        cut_step=agreement.cut_step,
        rho_low=agreement.rho_low,
        rho_high=agreement.rho_high,
        n=agreement.n,
    )
