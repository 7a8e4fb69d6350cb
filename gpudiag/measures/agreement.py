"""Do early values rank the trials as the final ones do?"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures._trials.chances import spearman, spearman_drawn
from gpudiag.measures.base import Profile, need_trials
from gpudiag.memo import memoized
from gpudiag.run import Run

DRAWS = 1000
SEED = 0
MIN_N = 15
SAFE = 0.7
"""Rank correlation from which early values tell the good trials from the bad (METHODS 5)."""
MOST_STEPS = 50
"""Of a study that reports at more, so many are looked at for the first that tells."""
AT_ONCE = 200_000
"""Values of so many draws are ranked together: in the cache of a processor that takes half as long as more of them."""


class StudyAgreement(Row):
    """A study."""

    study: Column[str] = column("study")
    cut_step: Column[float] = column("first step at which a trial was pruned", label="step of the cut")
    n: Column[int] = column("COMPLETE trials with a value at that step and a later last one")
    rho: Column[float] = column(
        "Spearman's, of the value at cut_step with the last one; NaN below 15 trials",
        label="rank correlation, early to final",
    )
    rho_low: Column[float] = column(
        "lower end of its 95 % interval, by bootstrap over trials", label="rank correlation, at least"
    )
    rho_high: Column[float] = column("upper end of it", label="rank correlation, at most")
    safe_step: Column[float] = column(
        "first step after cut_step whose values agree with the last ones by 0.7 or more, of 15 trials or more; NaN "
        "where there is none",
        label="first step that tells",
    )


class AgreementProfile(Profile, topic="agreement"):
    """Whether early values of a trial tell its final one; scalars are those of the study with the most such trials.
    COMPLETE trials survived the pruner, which overstates rho: a low one is strong evidence, a high one is not.
    """

    studies: Rows = table_of(StudyAgreement)
    n_pruned: Fact[int] = fact("PRUNED trials")
    cut_step: Fact[float] = fact("first step at which a trial was pruned")
    n: Fact[int] = fact("COMPLETE trials with a value at that step and a later last one")
    rho: Fact[float] = fact("Spearman's, of the value at cut_step with the last one")
    rho_low: Fact[float] = fact("lower end of its 95 % interval")
    rho_high: Fact[float] = fact("upper end of it")
    safe_step: Fact[float] = fact("first step after cut_step whose values agree with the last ones by 0.7 or more")


@memoized
def measure_agreement(run: Run) -> AgreementProfile:
    """Rank agreement of early and final values. Needs trials."""
    need_trials(run)
    reports = run.reports.drop_duplicates(["study", "trial", "step"], keep="last")
    states = intervals_of(run)[["study", "trial", "state"]].drop_duplicates(["study", "trial"])
    merged = reports.merge(states, on=["study", "trial"])
    rows = [{"study": str(study), **found} for study, group in merged.groupby("study") if (found := _one_study(group))]
    studies = pd.DataFrame(rows, columns=["study", "cut_step", "n", "rho", "rho_low", "rho_high", "safe_step"])
    n_pruned = int((states["state"] == "PRUNED").sum())
    if studies.empty:
        return AgreementProfile(studies, n_pruned, math.nan, 0, math.nan, math.nan, math.nan, math.nan)
    best = studies.loc[studies["n"].idxmax()]
    numbers = (float(best[name]) for name in ("rho", "rho_low", "rho_high", "safe_step"))
    return AgreementProfile(studies, n_pruned, float(best["cut_step"]), int(best["n"]), *numbers)


def _one_study(reports: pd.DataFrame) -> dict[str, float]:
    """Of a study with a pruned trial what its row says; what is missing is unknown."""
    pruned = reports[reports["state"] == "PRUNED"]
    if pruned.empty:
        return {}
    cut = pruned.groupby("trial")["step"].max().min()
    done = reports[(reports["state"] == "COMPLETE") & np.isfinite(reports["value"])].sort_values(["trial", "step"])
    pairs = _early_and_last(done, cut)
    row = {"cut_step": float(cut), "n": len(pairs)}
    if len(pairs) < MIN_N:
        return row
    early, last = pairs.T
    rho = spearman(early, last)
    draws = np.random.default_rng(SEED).integers(0, len(pairs), (DRAWS, len(pairs)))
    parts = np.array_split(draws, -(-draws.size // AT_ONCE))
    scattered = np.concatenate([spearman_drawn(early, last, part) for part in parts])
    low, high = np.nanquantile(scattered, [0.025, 0.975]) if np.isfinite(scattered).any() else (math.nan, math.nan)
    return {**row, "rho": rho, "rho_low": float(low), "rho_high": float(high), "safe_step": _safe_step(done, cut)}


def _early_and_last(done: pd.DataFrame, step: float) -> np.ndarray:
    """Of each COMPLETE trial that reported at ``step`` and after it, the value there and the last one; shape (n, 2)."""
    last = done.groupby("trial").tail(1).set_index("trial")
    early = done[done["step"] == step].set_index("trial")["value"]
    both = last[last["step"] > step].join(early.rename("early"), how="inner")
    return both[["early", "value"]].sort_index().to_numpy()


def _safe_step(done: pd.DataFrame, cut: float) -> float:
    later = np.unique(done["step"][done["step"] > cut])
    for step in later[np.linspace(0, len(later) - 1, min(len(later), MOST_STEPS)).round().astype(int)]:
        pairs = _early_and_last(done, step)
        if len(pairs) >= MIN_N and spearman(pairs[:, 0], pairs[:, 1]) >= SAFE:
            return float(step)
    return math.nan
