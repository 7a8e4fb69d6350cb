"""Remedies for a search that tries the same thing again."""

from __future__ import annotations

import math
import re

from gpudiag.advice._engine.proposal import Change, Gain, Proposal, SuccessCheck
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.search import SearchProfile
from gpudiag.report.format import plural

REPEATS = ("duplicate-trials",)
MOST_SHOWN = 200
"""Values of a space beyond this many are no lines for a reader."""
ANOTHER_VALUE = "A combination that no trial tried is left out: add the values that the search space also allows."
SKIP = (
    " def objective(trial):\n"
    "     ...  # all suggest_ calls\n"
    "+    for other in trial.study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE]):\n"
    "+        if other.params == trial.params:\n"
    "+            return other.value"
)
OWN_SEED = "-sampler = TPESampler(seed=42)\n+sampler = TPESampler()  # another seed in each process"
WHOLE_GRID = (
    " sampler = optuna.samplers.GridSampler(space)\n"
    " study = optuna.create_study(..., sampler=sampler, load_if_exists=True)\n"
    "-study.optimize(objective)\n"
    "+if not sampler.is_exhausted(study):\n"
    "+    study.optimize(objective)"
)
ONCE = "-study.enqueue_trial(params)\n+study.enqueue_trial(params, skip_if_exists=True)"
LIAR = "-sampler = TPESampler()\n+sampler = TPESampler(constant_liar=True)"


@remedy(
    title="Search the small space with a grid",
    answers=REPEATS,
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("each combination runs once", "the search ends when all of them ran"),
    cons=("only the values in the list are tried", "no combination is tried more often than the others"),
    refute="Trials of the same parameters give different values, and their mean is wanted.",
    rollback="Return to the sampler of this study.",
)
def grid_sampler(now: Situation) -> Proposal | None:
    """GridSampler runs each combination once and then stops the study; a sampler that draws from fewer combinations
    than it has trials can only repeat them.

    Proposed where the space has fewer combinations than the study has trials, and its sampler does not do so already.
    """
    search = now.profile(SearchProfile)
    if search is None or not now.optuna or not search.n_combinations > 0:
        return None
    if search.n_after_grid or re.search("grid|brute", now.settings.sampler or "", re.IGNORECASE):
        return None
    values = [value for row in search.space["values"] for value in row]
    if len(values) > MOST_SHOWN or any(isinstance(one, float) and not math.isfinite(one) for one in values):
        return None
    n = int(search.n_combinations)
    rows = "".join(
        f"+    {row['name']!r}: {[_plain(value) for value in row['values']]!r},\n"
        for row in search.space.to_dict("records")
    )
    code = (
        f"+space = {{  # {n} combinations\n{rows}+}}\n"
        "-study = optuna.create_study(...)\n"
        "+study = optuna.create_study(..., sampler=optuna.samplers.GridSampler(space))"
    )
    return Proposal(
        (Change("sampler", None, "GridSampler", code),),
        _saved(now, search),
        f"{plural(n, 'combination')} took {plural(search.n_with_params, 'trial')}. {ANOTHER_VALUE}",
        (SuccessCheck.of(SearchProfile.n_duplicates, "<=", 0),),
    )


@remedy(
    title="Stop when the grid is complete",
    answers=REPEATS,
    tier=1,
    effort="minutes",
    apply="now",
    pros=("each combination runs once",),
    cons=("a combination that failed is not tried again",),
    refute="Trials of the same parameters give different values, and their mean is wanted.",
    rollback="Remove the condition.",
)
def whole_grid(now: Situation) -> Proposal | None:
    """GridSampler stops the process that completes the grid; one that is started later, or asks by itself, gets a
    combination that was tried.
    """
    search = now.profile(SearchProfile)
    if search is None or not now.optuna or not search.n_after_grid:
        return None
    return Proposal(
        (Change("end of the search", None, "when the grid is complete", WHOLE_GRID),),
        _saved(now, search, "grid"),
        f"{plural(search.n_after_grid, 'repeat')} began after the whole grid, and none was wanted.",
        (SuccessCheck.of(SearchProfile.n_after_grid, "<=", 0),),
    )


@remedy(
    title="Give each process its own seed",
    answers=REPEATS,
    tier=1,
    effort="minutes",
    apply="now",
    pros=("each process draws parameters of its own",),
    cons=("a search is no longer drawn again exactly",),
    refute="A process runs the same parameters again on purpose.",
    rollback="Return to the seed.",
)
def own_seeds(now: Situation) -> Proposal | None:
    """A sampler that is made with the same seed in each worker, or after each restart, draws the same sequence."""
    search = now.profile(SearchProfile)
    if search is None or not now.optuna or not search.n_same_seed:
        return None
    return Proposal(
        (Change("seed of the sampler", None, "another in each process", OWN_SEED),),
        _saved(now, search, "seed"),
        f"{plural(search.n_same_seed, 'repeat')} of {search.n_duplicates:,} come in the order of the first.",
        (SuccessCheck.of(SearchProfile.n_same_seed, "<=", 0),),
    )


@remedy(
    title="Enqueue the same parameters once",
    answers=REPEATS,
    tier=1,
    effort="minutes",
    apply="now",
    pros=("a script that starts again, or on each worker, adds no repeats",),
    cons=(),
    refute="The repeats were enqueued to see by how much values differ.",
    rollback="Remove skip_if_exists.",
)
def enqueue_once(now: Situation) -> Proposal | None:
    """``enqueue_trial`` adds a trial on each call; with ``skip_if_exists`` only where the study has none like it."""
    search = now.profile(SearchProfile)
    if search is None or not now.optuna or not search.n_enqueued:
        return None
    return Proposal(
        (Change("skip_if_exists", None, True, ONCE),),
        _saved(now, search, "enqueued"),
        f"{plural(search.n_enqueued, 'repeat')} of {search.n_duplicates:,} were enqueued.",
        (SuccessCheck.of(SearchProfile.n_enqueued, "<=", 0),),
    )


@remedy(
    title="Do not train the same parameters twice",
    answers=REPEATS,
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("a repeat takes no GPU time", "the sampler learns the value all the same"),
    cons=("where training is random, a second run would have shown by how much values differ",),
    refute="Trials of the same parameters give different values, and their mean is wanted.",
    rollback="Remove the loop.",
)
def skip_repeats(now: Situation) -> Proposal | None:
    """Optuna's FAQ (How can I ignore duplicated samples?): look for the parameters among the completed trials."""
    search = now.profile(SearchProfile)
    if search is None or not now.optuna:
        return None
    return Proposal(
        (Change("parameters tried before", None, "value of the earlier trial", SKIP),),
        _saved(now, search),
        f"All {plural(search.n_duplicates, 'repeat')} are skipped, and none was wanted.",
        (_fewer(search),),
    )


@remedy(
    title="Let the sampler know what is running",
    answers=REPEATS,
    tier=2,
    effort="minutes",
    apply="next study",
    pros=("workers that run at the same time try different parameters",),
    cons=("the sampler takes running trials for bad ones until they end",),
    refute="The sampler is not TPE.",
    rollback="Remove constant_liar.",
)
def constant_liar(now: Situation) -> Proposal | None:
    """TPE looks at finished trials only, so that workers that ask while others run get near-identical parameters.

    Proposed only where repeats began while a trial of the same parameters still ran, which one worker alone never
    does; not where run.toml names another sampler, or the option, or where the repeats have another cause.
    """
    search = now.profile(SearchProfile)
    stated = now.settings.sampler or ""
    if search is None or not now.optuna or re.search(r"constant_liar\s*=\s*True", stated):
        return None
    together = int((search.repeats["together"] & (search.repeats["why"] == "")).sum())
    if not together or (stated and "tpe" not in stated.lower()):
        return None
    return Proposal(
        (Change("constant_liar", None, True, LIAR),),
        None,
        f"{plural(together, 'repeat')} of {search.n_duplicates:,} began while a trial of the same parameters ran.",
        (SuccessCheck.of(SearchProfile.duplicate_pct, "<", round(search.duplicate_pct / 2, 1)),),
        verify_first="" if stated else "The sampler is not stated: this applies to TPE, before Optuna 5.",
    )


def _fewer(search: SearchProfile) -> SuccessCheck:
    """A tenth of the time of the repeats, or of their share where no time of them is known."""
    if math.isfinite(search.duplicate_worker_h):
        return SuccessCheck.of(SearchProfile.duplicate_worker_h, "<=", round(search.duplicate_worker_h / 10, 3))
    return SuccessCheck.of(SearchProfile.duplicate_pct, "<=", round(search.duplicate_pct / 10, 1))


def _saved(now: Situation, search: SearchProfile, why: str = "") -> Gain | None:
    """Between nothing and the GPU time of the repeats, those of one cause if given; None where it is unknown."""
    costs = now.profile(CostsProfile)
    if costs is None:
        return None
    repeats = search.repeats[search.repeats["why"] == why] if why else search.repeats
    mine = repeats[["study", "trial"]].merge(costs.trials[["study", "trial", "gpu_s"]], "left")
    return Gain(0.0, float(mine["gpu_s"].sum()) / 3600, "GPU-h", "repeats") if mine["gpu_s"].notna().all() else None


def _plain(value: object) -> object:
    """A Python value whose repr is a literal."""
    item = value.item() if hasattr(value, "item") else value
    return int(item) if isinstance(item, float) and item.is_integer() else item
