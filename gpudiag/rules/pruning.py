"""Is pruning sane?"""

from __future__ import annotations

import math

from gpudiag.errors import NotMeasurable
from gpudiag.measures.pruning import MIN_COMPLETE, PruningProfile, measure_pruning
from gpudiag.rules._engine.evidence import Evidence, NotApplicable
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity


@rule(
    measure=measure_pruning,
    severity="note",
    title="Nearly all trials are pruned",
    says=(
        "{n_pruned} of {n_decided} decided trials (COMPLETE + PRUNED) were pruned: {of_decided_pct:exact} (95 % "
        "interval {of_decided_low_pct} to {of_decided_high_pct})",
        Given("early", ", {at_first_pct} of them at step {first_step}, the earliest"),
        Given("timed", "; they took {cost_pct} of the trial time"),
        ".",
    ),
    remedy="Check whether early values rank the trials as the final ones do (run 5-10 % of the trials unpruned as "
    "controls) before a laxer pruner is bought with GPU time.",
    refuted_by="Early values that predict the final ones well: pruning early and often is then right.",
)
def pruning_rate_high(
    pruning: PruningProfile, *, high_pct: float = 80.0, high_cost_pct: float = 50.0, high_first_pct: float = 50.0
) -> Evidence | None:
    """Aggressive pruning by itself is not a defect (Egele et al., arXiv 2307.15422 and 2404.04111); it deserves a look.

    The rate is PRUNED over decided trials (COMPLETE + PRUNED), judged by the lower end of its Wilson 95 % interval.
    It is a warning where PRUNED trials take more than half of the trial time, or where more than half of
    them are cut at the first step that is ever cut, as early as the pruner allows (METHODS 5). 80 % and
    50 % of the time are defaults without a published source.
    """
    if not pruning.n_pruned:
        raise NotApplicable("No trial was pruned.")
    low = pruning.of_decided_low_pct
    if not low > high_pct:
        return None
    costly = pruning.cost_pct > high_cost_pct
    early = pruning.at_first_pct > high_first_pct
    return Evidence(
        values={
            "of_decided_pct": pruning.of_decided_pct,
            "of_decided_low_pct": low,
            "of_decided_high_pct": pruning.of_decided_high_pct,
            "of_finished_pct": pruning.of_finished_pct,
            "of_all_pct": pruning.of_all_pct,
            "cost_pct": pruning.cost_pct,
            "at_first_pct": pruning.at_first_pct,
            "median_step": pruning.median_step,
        },
        margin=low - high_pct,
        severity=Severity.WARNING if costly or early else None,
        extra={
            "n_pruned": pruning.n_pruned,
            "n_decided": pruning.n_decided,
            "early": early,
            "first_step": pruning.first_step,
            "timed": not math.isnan(pruning.cost_pct),
        },
    )


@rule(
    measure=measure_pruning,
    severity="warning",
    title="Trials were pruned before the stated pruner can prune",
    says=(
        "{before_possible:trial} of {n_pruned} pruned ended earlier than possible: {pruner} ",
        Given("never", "never prunes", "cannot prune before report {config_first_report}"),
        ".",
    ),
    remedy="Print the pruner that the study really uses (study.pruner) and look for code that raises TrialPruned by "
    "itself; then correct the configuration, or run.toml.",
    refuted_by="Reports that were lost from the storage or the export.",
)
def pruned_before_possible(pruning: PruningProfile, *, max_trials: float = 0.0) -> Evidence | None:
    """The configuration stated is not the one that ran, so any advice on its parameters would be wrong.

    The earliest possible report follows from the pruner's code (optuna/pruners): PatientPruner with patience p asks
    its pruner only from report p + 2 on, Median and Percentile wait for step n_warmup_steps, Hyperband and
    successive halving for min_resource.
    """
    if not pruning.n_pruned:
        raise NotApplicable("No trial was pruned.")
    if not pruning.pruner:
        raise NotMeasurable(
            "The pruner of the study is not known: Optuna does not store it.",
            "State it in run.toml, e.g. [settings] pruner = 'median(n_startup_trials=5)'.",
        )
    if pruning.before_possible > max_trials:
        return Evidence(
            values={
                "before_possible": pruning.before_possible,
                "n_pruned": pruning.n_pruned,
                "config_first_report": pruning.config_first_report,
                "first_step": pruning.first_step,
            },
            margin=pruning.before_possible - max_trials,
            extra={"pruner": pruning.pruner, "never": math.isinf(pruning.config_first_report)},
        )
    if math.isnan(pruning.before_possible):
        raise NotMeasurable(
            "The pruned trials have no intermediate values.", "Give the study's storage instead of an export."
        )
    return None


@rule(
    measure=measure_pruning,
    severity="note",
    title="Pruned trials last as long as complete ones",
    says="{n_late} of {n_late_known:PRUNED trial} lasted as long as a COMPLETE one ({pruned_median_s} at the median, "
    "COMPLETE {complete_median_s}), so that pruning them saved next to nothing; PRUNED trials took {cost_pct} of the "
    "trial time.",
    remedy="Report more often and earlier (trial.report after each epoch, should_prune right after it), leave the "
    "training loop when it says so, and lower n_warmup_steps, interval_steps or min_resource.",
    refuted_by="Trials that are pruned only for their final value.",
)
def pruned_late(pruning: PruningProfile, *, min_late_pct: float = 50.0, high_cost_pct: float = 25.0) -> Evidence | None:
    """A trial that is pruned at its end costs what a COMPLETE one costs, and tells less.

    Late is 90 % of the median COMPLETE trial's length and of its steps. Found where the lower end of the Wilson 95 %
    interval of the share of late ones is above a half; a warning where PRUNED trials took a quarter of the trial time
    (defaults without a published source).
    """
    if not pruning.n_pruned:
        raise NotApplicable("No trial was pruned.")
    if not pruning.n_late_known:
        raise NotMeasurable(
            f"No study has a PRUNED trial and {MIN_COMPLETE} COMPLETE ones of known duration.",
            "Record start and end of each trial, and let some run to the end.",
        )
    if not pruning.late_low_pct > min_late_pct:
        return None
    return Evidence(
        values={
            "n_late": pruning.n_late,
            "n_late_known": pruning.n_late_known,
            "late_low_pct": pruning.late_low_pct,
            "pruned_median_s": pruning.pruned_median_s,
            "complete_median_s": pruning.complete_median_s,
        },
        margin=pruning.late_low_pct - min_late_pct,
        severity=Severity.WARNING if pruning.cost_pct > high_cost_pct else None,
        extra={"cost_pct": pruning.cost_pct},
    )
