"""Did the search go as it was meant to?"""

from __future__ import annotations

import math

from gpudiag._run.directions import STATE_DIRECTION
from gpudiag.errors import NotMeasurable, in_words
from gpudiag.measures._trials.worst_values import MOST_NAMED
from gpudiag.measures.parallelism import RECORD_TIMESTAMPS, STARTS_INFERRED
from gpudiag.measures.search import MIN_DRIFT, MIN_GAPS, SearchProfile, measure_search
from gpudiag.rules._engine.evidence import MOST_PLACES, Evidence, NotApplicable, Outcome, Passed
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity

HUNG = 0.5
"""Share of the time of unusually long trials that their GPU was idle, from which on it is told (a default without a
published source)."""
LONG_AND_IDLE = " far longer than the others, its GPU idle"
WHERE_IT_STANDS = (
    "See in its log where the trial stood; while it lasts, py-spy dump --pid PID shows it. Give each trial a time "
    "limit, and data loaders a timeout (DataLoader(timeout=...)), so that what hangs fails."
)
FEWEST_OTHERS = 5
"""Values beside the worst one that show whether values repeat (a default without a published source)."""
LIMIT = " (limit {max_share_pct})"
CHANCE = 0.01
"""From which on no value of a parameter is named as common to them."""
COMMON = ("n_outliers_with", "n_outliers_compared", "n_others_with", "n_others_compared", "p_outlier_condition")
OF_IDLE_GPUS = (
    "idle-without-trial", "idle-after-work", "gpu-allocated-idle", "gpu-fluctuating", "gpu-low-utilization",
    "gpu-imbalance", "stalls-aperiodic",
)  # fmt: skip
"""Checks of idle GPUs, which the end of a search or a trial that hung may explain."""
FEW_ALONE = "The last trials ran alone"
PAUSES = ("pause_s", "n_pauses", "n_broken_off", "broken_off_pct", "longest_broken_off_s")
DIFFERENCE = "{what}: {stated} stated, {found} found"


def _of_all_trials_pct(search: SearchProfile, worker_h: float) -> float:
    """The share of all trial time; NaN where none is known."""
    return 100 * worker_h / search.trial_worker_h if search.trial_worker_h else math.nan


@rule(
    measure=measure_search,
    severity="note",
    title="Trials repeat the parameters of earlier ones",
    checks="Repeated parameters",
    says=(
        Given("n_combinations", "The values tried make only {n_combinations:combination}: "),
        "{n_duplicates} of {n_with_params:trial} ({repeats_pct}) repeat the parameters of an earlier one",
        Given("cost_pct", ", for {cost_pct} of the trial time"),
        ".",
        Given("n_same_seed", " {n_same_seed} of them come in the order of the first: their samplers have one seed."),
        Given("n_after_grid", " GridSampler had tried its whole grid before {n_after_grid} of them."),
        Given("n_enqueued", " {n_enqueued} of them were enqueued."),
    ),
    remedy="Return the value of the earlier trial in place of training again, or widen the search space.",
    refuted_by="Not a problem if repeats average over seeds on purpose.",
)
def duplicate_trials(search: SearchProfile, *, max_share_pct: float = 5.0, severe_cost_pct: float = 10.0) -> Outcome:
    """A deterministic objective gives the same value twice; the second run teaches nothing.

    More than 5 % of the trials with parameters equal an earlier one of the study that did not fail; a warning where
    they took a tenth of the trial time (defaults without a published source). A space with fewer combinations than the
    search has trials leaves a sampler nothing but repeats; so does a grid that was searched. Repeats that come in the
    order in which their parameters were drawn first are of a sampler that was made again with the same seed.
    """
    if not search.n_with_params:
        raise NotApplicable("No trial has parameters of a search.")
    share = 100 * search.n_duplicates / search.n_with_params
    if not share > max_share_pct:
        return Passed(
            "{n_duplicates} of {n_with_params:trial} repeat an earlier one (limit {max_share_pct}).",
            n_duplicates=search.n_duplicates,
            n_with_params=search.n_with_params,
        )
    took = search.duplicate_worker_h
    cost = _of_all_trials_pct(search, took)
    return Evidence(
        values={
            "n_duplicates": search.n_duplicates,
            "repeats_pct": share,
            **({"duplicate_worker_h": took} if math.isfinite(took) else {}),
        },
        lost_time_pct=cost,
        margin=share - max_share_pct,
        severity=Severity.WARNING if cost >= severe_cost_pct else None,
        extra={
            "n_with_params": search.n_with_params,
            "cost_pct": cost if math.isfinite(cost) else None,
            "n_combinations": search.n_combinations,
            "n_same_seed": search.n_same_seed,
            "n_after_grid": search.n_after_grid,
            "n_enqueued": search.n_enqueued,
        },
    )


@rule(
    measure=measure_search,
    severity="note",
    title="Trials share exactly the worst value",
    checks="Trials at the worst value",
    says=(
        "{n_worst} of {n_valued:completed trial} of different parameters",
        Given("study", " in study {study}"),
        " ended with exactly {worst_value}, the worst value",
        Given("cost_pct", ", for {cost_pct} of all trial time"),
        "; the others have values of their own. ",
        Given("more", "Trials {trials} are among them.", "These are trials {trials}."),
    ),
    remedy="Look at the log of one of them. An objective that catches an error, or TrialPruned, and returns a number "
    "hides it from the search: let it raise, with study.optimize(..., catch=...) where the search is to go on.",
    refuted_by="Not a problem if poor parameters reach that value, such as the score of a guess, or a reward cut off.",
)
def worst_value_shared(
    search: SearchProfile, *, max_share_pct: float = 5.0, min_worst_trials: float = 3.0, min_values_pct: float = 90.0
) -> Outcome:
    """An objective that catches its errors counts failures as completed: no failure rate, no pruning rate tells them.

    Three or more COMPLETE trials of different parameters, and more than 5 % of them, have exactly the worst value of
    their study, while the five or more others have nine in ten different values: by chance no two that are measured are
    alike to the last digit (defaults without a published source). A value that models reach which learned nothing looks
    the same, which is why this is a note. A value that others fall below, or the best one, is not looked for.
    """
    studies = search.worst.assign(share_pct=100 * search.worst["n_worst"] / search.worst["n_valued"])
    if studies.empty and search.n_undirected:
        raise NotMeasurable("Nothing says whether lower or higher values are better.", STATE_DIRECTION)
    if studies.empty:
        raise NotApplicable("No completed trial has the value of a single objective.")
    many = studies[(studies["n_worst"] >= min_worst_trials) & (studies["share_pct"] > max_share_pct)]
    if many.empty:
        most = studies.loc[studies["n_worst"].idxmax()]
        return Passed(
            ("{n_worst} of {n_valued:completed trial} ended with the worst value", Given("counts", LIMIT), "."),
            n_worst=int(most["n_worst"]),
            n_valued=int(most["n_valued"]),
            counts=bool(most["n_worst"] >= min_worst_trials),
        )
    told = many[(many["n_valued"] - many["n_worst"] >= FEWEST_OTHERS) & (many["other_values_pct"] >= min_values_pct)]
    if told.empty:
        raise NotMeasurable(
            "{n_worst} of {n_valued:completed trial} ended with the worst value; others repeat as well, or are few.",
            "Look for errors in the logs of these trials.",
            n_worst=int(many["n_worst"].iloc[0]),
            n_valued=int(many["n_valued"].iloc[0]),
        )
    worst = told.loc[told["n_worst"].idxmax()]
    took = float(worst["worst_worker_h"])
    cost = _of_all_trials_pct(search, took)
    names = ("n_worst", "n_valued", "worst_value", "other_values_pct")
    return Evidence(
        values={name: worst[name] for name in names} | ({"worst_worker_h": took} if math.isfinite(took) else {}),
        where={"trial": worst["worst_trials"]},
        lost_time_pct=cost,
        margin=float(worst["share_pct"]) - max_share_pct,
        extra={
            "cost_pct": cost if math.isfinite(cost) else None,
            "study": worst["study"] if len(studies) > 1 else "",
            "trials": worst["worst_trials"].split(", "),
            "more": bool(worst["n_worst"] > MOST_NAMED),
        },
    )


@rule(
    measure=measure_search,
    severity="note",
    title="Some trials took far longer than the others",
    checks="Unusually long trials",
    says=(
        "{n_outliers:trial} took {cost_pct} of the trial time: trial {name} ({state}) ran {longest_s}, where "
        "{median_s} is usual.",
        Given(
            "common",
            " {n_outliers_with} of {n_outliers_compared:such trial} had {condition}; of others, {n_others_with} of "
            "{n_others_compared}.",
        ),
        Given(
            "idle_s",
            (
                " Meanwhile {gpus} ",
                Given("several_gpus", "were", "was"),
                " idle for {idle_s}",
                Given("held_mib", " with {held_mib} held"),
                ": a trial that hangs looks like that.",
            ),
        ),
    ),
    remedy="Look at the parameters and the log of these trials. A time limit for each trial, or pruning on time, "
    "bounds them.",
    refuted_by="Not a problem if these parameters are meant to make trials long.",
)
def trial_duration_outliers(
    search: SearchProfile, *, severe_cost_pct: float = 25.0, min_cost_s: float = 60.0
) -> Evidence | None:
    """One trial that hangs costs as much as many.

    Longer than the third quartile of the log durations of its state plus 3 interquartile ranges (Tukey's far out), and
    than 3 times its median (for FAIL, of all finished trials). It is also longer than 3 times the median of COMPLETE: a
    trial that was pruned late is no outlier. Told from a minute of such trials on; a warning where they took a quarter
    of the trial time (defaults without a published source). Where the GPU that they had to themselves was idle for half
    of it, that is what they cost. A value of a parameter that they have oftener than those that began near them is
    named where that is chance in less than 1 % (one-sided exact test, times all values tried).
    """
    if not search.n_timed:
        raise NotMeasurable("No trial has a known duration.", "Record start and end of each trial.")
    far = search.outliers
    if far.empty or 3600 * search.outlier_worker_h < min_cost_s:
        return None
    cost = _of_all_trials_pct(search, search.outlier_worker_h)
    worst = far.iloc[0]
    common = search.p_outlier_condition < CHANCE
    hung = search.outlier_idle_gpu_h >= HUNG * search.outlier_worker_h
    return Evidence(
        values={
            "n_outliers": len(far),
            "longest_s": float(worst["duration_s"]),
            "median_s": float(worst["median_s"]),
            **({"outlier_idle_gpu_h": search.outlier_idle_gpu_h} if hung else {}),
            **({name: getattr(search, name) for name in COMMON} if common else {}),
        },
        where={
            "trial": ", ".join(far["name"].head(MOST_PLACES)),
            **({"gpu": search.outlier_idle_gpus} if hung else {}),
        },
        lost_gpu_h=search.outlier_idle_gpu_h if hung else None,
        margin=float(worst["duration_s"] - worst["median_s"]),
        severity=Severity.WARNING if cost >= severe_cost_pct else None,
        title=("One trial took" if len(far) == 1 else "Some trials took") + LONG_AND_IDLE if hung else "",
        remedy=WHERE_IT_STANDS if hung else "",
        not_cause_of=() if hung else OF_IDLE_GPUS,
        extra={
            "name": worst["name"],
            "state": worst["state"],
            "cost_pct": cost,
            "idle_s": 3600 * search.outlier_idle_gpu_h if hung else 0.0,
            "several_gpus": ", " in search.outlier_idle_gpus,
            "common": common,
            **{name: getattr(search, name) for name in COMMON},
            "condition": search.outlier_condition,
            "held_mib": search.outlier_held_mib if search.outlier_held_mib > 0 else 0.0,
        },
    )


@rule(
    measure=measure_search,
    severity="note",
    title="Trials get longer or shorter during the search",
    checks="Trend of trial durations",
    says=(
        "The last third of {n:complete trial}",
        Given("study", " of study {study}"),
        Given("n_workers", ", of those that ran with {n_workers:worker},"),
        " took {drift_ratio} times as long as the first.",
    ),
    remedy="Predict the rest from the last third of the trials. See whether the sampler moves to larger or smaller "
    "models, or the speed of the machine changes (clocks, memory, storage).",
    refuted_by="Not a problem if the sampler is meant to move to larger or smaller models.",
)
def trial_duration_drift(
    search: SearchProfile, *, max_p_pct: float = 1.0, min_rho_ratio: float = 0.3, min_change_ratio: float = 1.2
) -> Outcome:
    """A forecast from all trials is wrong where they change: by 23 % at a drift of 50 % (METHODS 10).

    Spearman correlation of start order and duration of a study's COMPLETE trials beyond 0.3 at p below 1 %, and medians
    of the first and last third that differ by a fifth (defaults without a published source). Where the number of
    workers changed, of the trials within the stretch of one number that holds most of them.
    """
    ratio = search.drift_ratio
    if (
        search.drift_p < max_p_pct / 100
        and abs(search.drift_rho) >= min_rho_ratio
        and max(ratio, 1 / ratio) >= min_change_ratio
    ):
        return Evidence(
            values={
                "drift_ratio": ratio,
                "drift_rho": search.drift_rho,
                "drift_p": search.drift_p,
                "n": search.n_drift,
            },
            margin=abs(search.drift_rho) - min_rho_ratio,
            extra={"study": search.drift_study, "n_workers": search.drift_workers},
        )
    if search.n_drift < MIN_DRIFT:
        raise NotMeasurable(
            "Only {n:COMPLETE trial} with times"
            + (" of study {study}" if search.drift_study else "")
            + (", all with {n_workers:worker} running" if search.drift_workers else "")
            + "; {n_needed} are needed.",
            "Judge a longer search.",
            n=search.n_drift,
            study=search.drift_study,
            n_workers=search.drift_workers,
            n_needed=MIN_DRIFT,
        )
    if not max(ratio, 1 / ratio) < min_change_ratio:
        return None
    says = "The last third took {drift_ratio:as ratio} times as long as the first (limit {min_change_ratio:as ratio})."
    return Passed(says, drift_ratio=ratio)


@rule(
    measure=measure_search,
    severity="warning",
    title="Gaps between trials grow during the search",
    checks="Trend of the gaps between trials",
    says=(
        "The median gap between trials rose from {gap_first_s} in the first third of ",
        Given("study", "study {study}", "the search"),
        " to {gap_last_s} in the last.",
    ),
    remedy="The sampler's time grows with the number of trials (TPE looks at all of them), and so does that of a slow "
    "storage. Use a database server, or a cheaper sampler for the second half.",
    refuted_by="Not a problem if workers were started or stopped on the way.",
    explained_by=("parallelism-below-configured",),
    needs_all=("workers",),
)
def trial_gap_growth(
    search: SearchProfile, *, max_p_pct: float = 1.0, min_rho_ratio: float = 0.3, min_gap_s: float = 5.0
) -> Outcome:
    """What takes seconds now takes minutes in a search ten times as long.

    Gaps between trials of a worker rise with their order within a study (Spearman beyond 0.3 at p below 1 %), and the
    median of the last third is above 5 s and twice that of the first: asking TPE takes O(n) (METHODS 4).
    """
    if (
        search.gap_p < max_p_pct / 100
        and search.gap_rho >= min_rho_ratio
        and search.gap_last_s > min_gap_s
        and search.gap_last_s >= 2 * search.gap_first_s
    ):
        return Evidence(
            values={name: getattr(search, name) for name in ("gap_first_s", "gap_last_s", "gap_rho", "gap_worker_h")},
            margin=search.gap_last_s - min_gap_s,
            extra={"study": search.gap_study},
        )
    if search.n_gaps < MIN_GAPS:
        raise NotMeasurable(
            "The trials" + (" of study {study}" if search.gap_study else "") + " have only {n_gaps:gap} between them; "
            "{n_needed} are needed.",
            "Judge a longer search.",
            n_gaps=search.n_gaps,
            study=search.gap_study,
            n_needed=MIN_GAPS,
        )
    if search.gap_worker_h == 0:
        raise NotMeasurable(STARTS_INFERRED, RECORD_TIMESTAMPS)
    if not search.gap_last_s <= min_gap_s:
        return None
    return Passed("{gap_last_s} at the median in the last third (limit {min_gap_s}).", gap_last_s=search.gap_last_s)


@rule(
    measure=measure_search,
    severity="note",
    title="The search broke off and went on much later",
    checks="Time without any trial",
    says=(
        "No trial began or ended from {since:as minute} to {until:as minute} UTC, for {longest_broken_off_s}: ",
        Given("several_trials", "trials {trials}", "trial {trials}"),
        Given("failed", " failed", " broke off"),
        " before that, and ",
        Given("several_studies", "their studies", "the study"),
        " went on after it.",
        Given("several", " {n_broken_off} such stretches took {broken_off_s} in all."),
        " If GPUs were held meanwhile, that cost up to {broken_off_s} of each.",
    ),
    remedy="Find out what ended the trial: an error, a full disk, a lost session, a reboot. A loop or a service around "
    "the worker starts it again.",
    refuted_by="Not a problem if somebody stopped the search on purpose, and nobody held its GPUs.",
    explained_by=("idle-without-trial",),
    needs_all=("workers",),
)
def search_paused(search: SearchProfile, *, max_longest_s: float = 86400.0, max_share_pct: float = 20.0) -> Outcome:
    """A search that breaks off delays its result, and where the GPU was kept it costs that too.

    Without any trial for an hour or more, behind one that died or failed, and whose study went on later: one such
    stretch of more than a day, or a fifth of the time of the search in them (defaults without a published source). A
    night after a search that somebody ended is none: no trial was undone, and nothing says that a GPU was held. Nor is
    one behind a failure where others of the study were followed by the next trial within a minute, or one before which
    no trial of the study had finished.
    """
    if not search.pause_s >= 0:
        raise NotMeasurable("No trial has start and end.", "Record start and end of each trial.")
    if not (search.longest_broken_off_s > max_longest_s or search.broken_off_pct > max_share_pct):
        return Passed(
            Given(
                "n_pauses",
                (
                    "No trial ran for {pause_s}. ",
                    Given(
                        "n_broken_off",
                        "Behind trials that broke off or failed it was {broken_off_pct} of the search (limit "
                        "{max_share_pct}), at most {longest_broken_off_s} (limit {max_longest_s}).",
                        "Nothing shows that the search was to go on meanwhile.",
                    ),
                ),
                "There was no hour without a trial.",
            ),
            **{name: getattr(search, name) for name in PAUSES},
        )
    pauses = search.pauses[search.pauses["broke_off"] != ""]
    longest, broke_off = pauses.loc[pauses["unseen_s"].idxmax()], pauses["broke_off"].tolist()
    trials = str(longest["broke_off"]).split(", ")
    return Evidence(
        values={name: getattr(search, name) for name in ("broken_off_s", "broken_off_pct", "longest_broken_off_s")},
        where={"trial": ", ".join(broke_off)},
        margin=search.broken_off_pct,
        extra={
            "since": longest["start"].to_pydatetime(),
            "until": longest["end"].to_pydatetime(),
            "trials": trials[:3],
            "several_trials": len(trials) > 1,
            "several_studies": len({name.rpartition("/")[0] for name in trials}) > 1,
            "failed": bool(longest["failed"]),
            "several": search.n_broken_off > 1,
            "n_broken_off": search.n_broken_off,
        },
    )


@rule(
    measure=measure_search,
    severity="note",
    title="The last trial ran alone",
    checks="End of the search",
    says=(
        "The last ",
        Given("several", "{n_tail:trial}", "trial"),
        " ({trial}) ran alone for {tail_s}, {tail_pct} of the time with trials; up to {peak} ran at once before.",
        Given(
            "idle_s",
            (" Meanwhile {gpus} ", Given("several_gpus", "were", "was"), " idle without a trial, for {idle_s} in all."),
        ),
    ),
    remedy="Start the longest trials first, or give the last ones a time limit. Let several studies share the workers.",
    refuted_by="Not a problem if the study goes on after this record.",
    needs_all=("study",),
)
def study_tail(search: SearchProfile, *, max_tail_pct: float = 10.0, min_tail_s: float = 300.0) -> Outcome:
    """At the end of a search all workers but one are empty, and the GPU is as good as idle.

    The last trial ran alone for more than a tenth of the time with trials, and 5 minutes, though more than one ran at
    once before (defaults without a published source). So did the last few, up to half of those that ran at once. It
    costs the time of GPUs that trials ran on and that had none meanwhile.
    """
    if not search.tail_s >= 0:
        raise NotMeasurable("The search has not ended, or no trial has start and end.", "Judge the finished search.")
    if search.peak < 2:
        raise NotApplicable("Trials ran one at a time.")
    if not (search.tail_pct > max_tail_pct and search.tail_s > min_tail_s):
        return Passed(
            "{tail_s} with {n_tail:trial} (limit {min_tail_s}), {tail_pct} of the time (limit {max_tail_pct}).",
            n_tail=search.n_tail,
            tail_s=search.tail_s,
            tail_pct=search.tail_pct,
        )
    idle = search.tail_idle_gpu_h > 0
    return Evidence(
        values={
            **{name: getattr(search, name) for name in ("tail_s", "tail_pct", "tail_idle_worker_h")},
            **({"tail_idle_gpu_h": search.tail_idle_gpu_h} if idle else {}),
        },
        where={"trial": search.tail_trials, **({"gpu": search.tail_idle_gpus} if idle else {})},
        lost_gpu_h=search.tail_idle_gpu_h if idle else None,
        lost_time_pct=search.tail_pct * (1 - search.n_tail / search.peak),
        margin=search.tail_pct - max_tail_pct,
        title=FEW_ALONE if search.n_tail > 1 else "",
        not_cause_of=() if idle else OF_IDLE_GPUS,
        extra={
            "peak": search.peak,
            "several": search.n_tail > 1,
            "n_tail": search.n_tail,
            "several_gpus": ", " in search.tail_idle_gpus,
            "idle_s": 3600 * search.tail_idle_gpu_h if idle else 0.0,
        },
    )


@rule(
    measure=measure_search,
    severity="note",
    title="Counts in run.toml differ from the data",
    checks="Counts stated in run.toml",
    says="{differences}.",
    remedy="Use the numbers of the data, and find out what the others counted: another date, another study, a guess.",
    refuted_by="Not a problem if trials were deleted or added since.",
    needs_all=("study",),
)
def stated_counts_differ(search: SearchProfile, *, max_difference_trials: float = 0.0) -> Evidence | None:
    """A conclusion from a wrong count is wrong too.

    Counts under [stated] in run.toml (COMPLETE, PRUNED, FAIL, RUNNING, WAITING, trials) against those of the data
    (METHODS 0).
    """
    if search.stated.empty:
        raise NotApplicable("No counts are stated for this run.")
    differ = search.stated[(search.stated["stated"] - search.stated["found"]).abs() > max_difference_trials]
    if differ.empty:
        return None
    return Evidence(
        values={
            "stated": dict(zip(differ["what"], differ["stated"], strict=True)),
            "found": dict(zip(differ["what"], differ["found"], strict=True)),
        },
        margin=float((differ["stated"] - differ["found"]).abs().max()) - max_difference_trials,
        extra={"differences": "; ".join(in_words(DIFFERENCE, dict(row)) for _, row in differ.iterrows())},
    )
