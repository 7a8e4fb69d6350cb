"""Trials with the parameters of an earlier one, why they came, and the space where it is too small for the search."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd

from gpudiag._run.directions import searches
from gpudiag.measures._time.microseconds import NEVER, microseconds
from gpudiag.run import Run

GRID_ID = "system_attrs.grid_id"
GRID = "system_attrs.search_space"
ENQUEUED = "system_attrs.fixed_params"
NONE = "null"
"""The choice of None in a declared space."""
MIN_IN_ORDER = 4
"""So many repeats in a row of one sequence: by chance one pair in as many as there are draws follows the other."""
TIMES_TRIED = 3
"""Where no distributions are stored, a small space shows by so many trials of each combination: two workers whose
samplers have one seed make two (a default without a published source)."""
DIGITS = 6
"""A value that somebody wrote into a list has no more of them, one that was drawn has 15 or more."""


def find_repeats(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Which trials repeat an earlier one that did not fail, and which have parameters that a search chose.

    A repeat of a failed trial is a retry, which is meant. Tasks of a batch, which is no search, share parameters. A
    choice of None is read as no value: where a study declares one, a trial without any value that ended well has it.
    """
    frame, names = _with_texts(run)
    chosen = frame[names].notna().any(axis=1) if names else pd.Series(False, frame.index)
    chosen |= frame["study"].isin(_with_none(run)) & frame["state"].isin(["COMPLETE", "PRUNED"])
    with_params = (chosen & frame["study"].isin(searches(run))).to_numpy()
    kept = frame[with_params & ~frame["state"].isin(["FAIL", "WAITING"]).to_numpy()].sort_values(["study", "trial"])
    repeated = kept.duplicated(["study", *names])
    out = np.zeros(len(frame), bool)
    out[repeated.index[repeated]] = True
    return out, with_params


def describe_repeats(run: Run, intervals: pd.DataFrame, repeats: np.ndarray, *, small: bool) -> pd.DataFrame:
    """The repeats with their durations, why they came, and whether a twin still ran: the sampler could not know its
    value. ``small``: the space has fewer combinations than the search has trials, which is why by itself.
    """
    frame, names = _with_texts(run)
    lived = intervals[intervals["start"].notna() & (intervals["state"] != "WAITING")]
    order = lived.sort_values(["start", "study", "trial"], kind="stable").index
    ended = microseconds(lived["end"].loc[order])
    ended = pd.Series(np.where(lived["end"].loc[order].isna(), NEVER, ended), order)
    twins = frame.loc[order].groupby(["study", *names], dropna=False, sort=False).ngroup()
    latest = ended.groupby(twins).cummax().groupby(twins).shift(fill_value=0)
    together = pd.Series(microseconds(lived["start"].loc[order]), order) < latest
    why = pd.Series("", frame.index)
    if not small:
        sampled = frame["study"].isin(_sampled(run)).to_numpy()
        why[_same_sequence(frame, names, repeats) & sampled] = "seed"
    why[repeats & _after_the_grid(frame)] = "grid"
    if ENQUEUED in frame:
        why[repeats & frame[ENQUEUED].notna().to_numpy()] = "enqueued"
    out = intervals.loc[repeats, ["study", "trial", "duration_s"]]
    return out.assign(
        together=together.reindex(out.index, fill_value=False), why=why[repeats].to_numpy(object)
    ).reset_index(drop=True)


def small_space(run: Run, with_params: np.ndarray) -> pd.DataFrame:
    """The values tried of each parameter of the only study, where its space has fewer combinations than it has trials
    with parameters.

    Values that repeat prove no small space: a sampler may draw one sequence twice, and trials may be enqueued. So the
    space is the one that the study declares; where it declares none, few digits and many trials of each stand for it.
    """
    tried = run.trials.reset_index(drop=True)[with_params]
    names = [name for name in tried.columns if str(name).startswith("params.") and tried[name].notna().any()]
    nothing = pd.DataFrame({"name": [], "values": []}, dtype=object)
    if tried["study"].nunique() != 1 or not names or tried[names].isna().any(axis=None):
        return nothing
    values = [list(dict.fromkeys(tried[name].tolist())) for name in names]
    n_tried = math.prod(map(len, values))
    declared = _declared(run, str(tried["study"].iloc[0]))
    if declared is None:
        finite = TIMES_TRIED * n_tried <= len(tried) and all(_written(value) for each in values for value in each)
    else:
        sizes = {f"params.{name}": _size(held) for name, held in declared.items()}
        finite = math.prod(sizes.get(name, math.inf) for name in names) < len(tried)
    if not finite or n_tried >= len(tried):
        return nothing
    ordered = [sorted(v) if all(isinstance(x, int | float) for x in v) else sorted(v, key=str) for v in values]
    return pd.DataFrame({"name": [name.removeprefix("params.") for name in names], "values": ordered})


def _with_texts(run: Run) -> tuple[pd.DataFrame, list[str]]:
    """The trials with each parameter as text, so that values of any kind compare, and the names of these columns."""
    frame = run.trials.reset_index(drop=True)
    names = [str(name) for name in frame.columns if str(name).startswith("params.")]
    texts = {name: frame[name].astype(object).map(str).where(frame[name].notna()) for name in names}
    return frame.assign(**texts), names


def _same_sequence(frame: pd.DataFrame, names: list[str], repeats: np.ndarray) -> np.ndarray:
    """Repeats of a study that mostly come in the order in which their parameters were drawn first, each next to the
    one before it, as those of a sampler with the same seed do. Chance and crossover have no such order.
    """
    out = np.zeros(len(frame), bool)
    drawn = pd.Series(True, frame.index)
    for column in (ENQUEUED, GRID_ID):
        if column in frame:
            drawn &= frame[column].isna()
    ran = frame[drawn & ~frame["state"].isin(["FAIL", "WAITING"])].sort_values(["study", "trial"], kind="stable")
    for _, own in ran.groupby("study", sort=False):
        again = repeats[own.index]
        by_values = own.groupby(names, dropna=False, sort=False) if names else None
        if by_values is None or again.sum() < MIN_IN_ORDER:
            continue
        place, time = by_values.ngroup()[again], by_values.cumcount()[again]
        in_order = int((place.groupby(time).diff() == 1).sum())
        if in_order >= max(MIN_IN_ORDER, again.sum() / 2):
            out[own.index[again]] = True
    return out


def _sampled(run: Run) -> list[str]:
    """The studies that declare a space, or have a value that only a sampler draws: somebody's lists, and the grids of
    other tools, may be gone through in one order again.
    """
    names = [name for name in run.trials if str(name).startswith("params.")]
    return [
        str(study)
        for study, own in run.trials.groupby("study", sort=False)
        if _declared(run, str(study)) is not None
        or not all(_written(value) for name in names for value in own[name].dropna())
    ]


def _after_the_grid(frame: pd.DataFrame) -> np.ndarray:
    """Trials that GridSampler began when each cell of its grid had been begun: it numbers cells from 0 and takes them
    in turn.
    """
    out = np.zeros(len(frame), bool)
    if GRID_ID not in frame:
        return out
    for _, own in frame.sort_values(["study", "trial"], kind="stable").groupby("study", sort=False):
        ids = pd.to_numeric(own[GRID_ID], errors="coerce").dropna()
        changed = GRID in own and own[GRID].nunique() > 1
        first = ids[~ids.duplicated()]
        if ids.empty or changed or len(first) != first.max() + 1:
            continue
        at = ids.index.get_indexer([first.index[-1]])[0]
        out[ids.index[at + 1 :]] = True
    return out


def _declared(run: Run, study: str) -> dict[str, dict[str, Any]] | None:
    """The domain of each parameter; None where the study declares no space."""
    if "space" not in run.studies:
        return None
    texts = run.studies.loc[run.studies["study"] == study, "space"].dropna()
    return dict(json.loads(str(texts.iloc[0]))) if len(texts) else None


def _with_none(run: Run) -> list[str]:
    """The studies that declare a choice of None."""
    spaces = {str(study): _declared(run, str(study)) or {} for study in run.studies["study"]}
    return [study for study, space in spaces.items() if any(NONE in held.get("choices", ()) for held in space.values())]


def _size(held: dict[str, Any]) -> float:
    if "choices" in held:
        return float(len(held["choices"]))
    low, high, step = (float(str(held[name])) if held.get(name) is not None else math.nan
                       for name in ("low", "high", "step"))  # fmt: skip
    if low == high:
        return 1.0
    return math.floor((high - low) / step + 1e-9) + 1.0 if step > 0 else math.inf


def _written(value: object) -> bool:
    """Whether a value has few digits, as one in a list of choices."""
    if not isinstance(value, float) or not math.isfinite(value) or value == 0:
        return True
    return round(value, DIGITS - 1 - math.floor(math.log10(abs(value)))) == value
