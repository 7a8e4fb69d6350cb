"""Is pruning sane?"""

from __future__ import annotations

import math

from gpudiag.errors import NotMeasurable
from gpudiag.measures.base import GIVE_STORAGE, NO_REPORTS
from gpudiag.measures.pruning import MIN_COMPLETE, PruningProfile, measure_pruning
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, Outcome, Passed
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity


@rule(
    measure=measure_pruning,
    severity="note",
    title="Nearly all trials are pruned",
    checks="Pruning rate",
    says=(
        "{n_pruned} of {n_decided} trials that finished without failure were pruned: {of_decided_pct:estimate}.",
        Given(
            "none",
            Given("n_unended", " No trial has completed so far.", " No trial completed: the study has no result."),
        ),
        Given("timed", " Pruned trials took {cost_pct} of the trial time."),
        Given("early", " {at_first_pct} of them ended at step {first_step}, the first that is cut."),
    ),
    remedy="Run 5-10 % of the trials without pruning and compare: early values should rank trials as final ones do. "
    "Only then spend GPU time on a milder pruner.",
    refuted_by="Not a problem if early values predict final ones well.",
    needs_all=("outcomes",),
)
def pruning_rate_high(
    pruning: PruningProfile,
    *,
    high_pct: float = 80.0,
    high_cost_pct: float = 50.0,
    high_first_pct: float = 50.0,
    min_trials: float = 5.0,
) -> Outcome:
    """Aggressive pruning by itself is not a defect (Egele et al., arXiv 2307.15422 and 2404.04111); it deserves a look.

    The rate is PRUNED over COMPLETE and PRUNED trials, judged by the lower end of its Wilson 95 % interval.
    It is a warning where PRUNED trials take more than half of the trial time, or where more than half of
    them are cut at the first step that is ever cut, as early as the pruner allows (METHODS 5). 80 % and
    50 % of the time are defaults without a published source. Where no trial was left to complete, it is critical:
    that is no estimate once all trials have ended, and found from 5 trials on (a default without a published source).
    """
    if not pruning.n_pruned:
        raise NotApplicable("No trial was pruned.")
    low = pruning.of_decided_low_pct
    none = pruning.n_pruned == pruning.n_decided
    if not low > high_pct and not (none and not pruning.n_unended and pruning.n_decided >= min_trials):
        if not pruning.of_decided_pct > high_pct:
            return Passed(
                "{n_pruned} of {n_decided:trial} that finished without failure, {rate_pct} (limit {high_pct}).",
                n_pruned=pruning.n_pruned,
                n_decided=pruning.n_decided,
                rate_pct=pruning.of_decided_pct,
            )
        raise NotMeasurable(
            "{n_pruned} of {n_decided:trial} that finished without failure were pruned; these are too few to tell "
            "whether more than {high_pct} of them are.",
            "Judge a longer search.",
            n_pruned=pruning.n_pruned,
            n_decided=pruning.n_decided,
            high_pct=high_pct,
        )
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
        lost_time_pct=pruning.cost_pct,
        margin=(pruning.of_decided_pct if none else low) - high_pct,
        severity=Severity.CRITICAL if none else Severity.WARNING if costly or early else None,
        extra={
            "n_pruned": pruning.n_pruned,
            "n_decided": pruning.n_decided,
            "none": none,
            "n_unended": pruning.n_unended,
            "early": early,
            "first_step": pruning.first_step,
            "timed": not math.isnan(pruning.cost_pct),
        },
    )


@rule(
    measure=measure_pruning,
    severity="warning",
    title="The pruner in run.toml is not the one that ran",
    checks="Pruner settings against the pruned trials",
    says=(
        "The stated pruner ",
        Given(
            "never",
            "never prunes, but {before_possible:trial} were pruned",
            "cannot prune before report {config_first_report}; {before_possible} of {n_pruned} pruned trials ended "
            "earlier",
        ),
        ".",
    ),
    remedy="Print the pruner that the study really uses (study.pruner), and look for code that raises TrialPruned by "
    "itself. Then correct the configuration or run.toml.",
    refuted_by="Not a problem if the storage or the export lost reports.",
    needs_all=("study",),
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
        raise NotMeasurable(NO_REPORTS, GIVE_STORAGE)
    return None


@rule(
    measure=measure_pruning,
    severity="note",
    title="Pruned trials last as long as complete ones",
    checks="Duration of pruned trials",
    says=(
        "{n_late} of {n_late_known:pruned trial} ran as long as complete ones ",
        Given("complete_median_s", "(median {pruned_median_s}, complete {complete_median_s})", "of their study"),
        ". Pruned trials took {cost_pct} of the trial time.",
    ),
    remedy="Report after each epoch (trial.report) and call should_prune right after it. Lower n_warmup_steps, "
    "interval_steps or min_resource.",
    refuted_by="Not a problem if trials are pruned only for their final value.",
)
def pruned_late(pruning: PruningProfile, *, min_late_pct: float = 50.0, high_cost_pct: float = 25.0) -> Outcome:
    """A trial that is pruned at its end costs what a complete one costs, and teaches less.

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
        if not 100 * pruning.n_late > min_late_pct * pruning.n_late_known:
            return Passed(
                "{n_late} of {n_late_known} ran as long as complete ones (limit {min_late_pct}).",
                n_late=pruning.n_late,
                n_late_known=pruning.n_late_known,
            )
        raise NotMeasurable(
            "{n_late} of {n_late_known:pruned trial} ran as long as complete ones; these are too few to tell whether "
            "more than {min_late_pct} do.",
            "Judge a longer search.",
            n_late=pruning.n_late,
            n_late_known=pruning.n_late_known,
            min_late_pct=min_late_pct,
        )
    return Evidence(
        values={
            "n_late": pruning.n_late,
            "n_late_known": pruning.n_late_known,
            "late_low_pct": pruning.late_low_pct,
            "pruned_median_s": pruning.pruned_median_s,
            "complete_median_s": pruning.complete_median_s,
        },
        lost_time_pct=pruning.cost_pct * pruning.n_late / pruning.n_late_known,
        margin=pruning.late_low_pct - min_late_pct,
        severity=Severity.WARNING if pruning.cost_pct > high_cost_pct else None,
        extra={"cost_pct": pruning.cost_pct},
    )
