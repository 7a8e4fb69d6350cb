"""The long tables of a storage become the trials, reports and studies of :mod:`gpudiag.schema`."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import tzinfo
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._studies.end_order import checked_ends
from gpudiag.readers._studies.optuna_clock import SLACK, Clocked, to_utc
from gpudiag.readers._studies.pivot import floats, pivot_attributes, pivot_params
from gpudiag.readers._studies.space import declared_space
from gpudiag.readers._studies.stamped import apply_timestamps
from gpudiag.readers._studies.stored import Stored, named_studies
from gpudiag.readers._studies.timestamps import possible
from gpudiag.readers._studies.trial_rows import NUMBER_TWICE
from gpudiag.readers.base import Trials
from gpudiag.schema import MOST_STEPS, REPORTS, STATES, STUDIES, TRIALS, conform, empty, text_dtype


def assemble(stored: Stored, zone: tzinfo, source: str, reader: str, problems: ProblemLog) -> Trials:
    """Tables on UTC. Trials are sorted by study (as stored) and number, reports by trial and step."""
    studies = stored.studies.reset_index(drop=True)
    trials = _clean(stored.trials, studies, problems)
    clocks = _clocks(stored, trials, zone)
    start = _joined([clock.start for clock in clocks.values()], trials.index)
    end = _joined([clock.end for clock in clocks.values()], trials.index)
    end = checked_ends(start, end, source, problems)
    met, at = ProblemLog(), pd.Index(trials["trial_id"])
    with ThreadPoolExecutor(1) as pool:  # the longest table beside the widest
        coming = pool.submit(_reports, stored.reports, trials, met)
        params = _placed(stored.params, at)
        wide = _wide(stored, params, at, trials, studies, problems)
        reports = coming.result()
    problems.extend(met.all)
    narrow = {name: trials[name] for name in ("study", "state", "worker") if name in trials}
    narrow |= {"trial": trials["number"], "start": start, "end": end}
    if len(stored.heartbeats):
        narrow["last_seen"] = _last_seen(_last_heartbeats(stored, trials), start, end, trials)
    frame = pd.DataFrame(narrow | wide, index=trials.index)
    space = declared_space(params, trials)
    shown = studies[["study", "directions"]].assign(
        source=as_text(source),
        clock=[clocks[key].clock if key in clocks else "unknown" for key in studies["study_id"]],
        space=[space.get(key) for key in studies["study_id"]],
    )
    frame, shown, stamped = apply_timestamps(frame, shown)
    exact = {one.study for one in stamped if one.exact}
    notes = _notes(clocks, studies[~studies["study"].isin(exact)], zone)
    return Trials(
        trials=conform(frame, TRIALS) if len(frame) else empty(TRIALS),
        reports=reports,
        studies=conform(shown, STUDIES),
        problems=problems.all,
        notes=(*notes, *(one.note for one in stamped), *_without_trials(shown, frame)),
        reader=reader,
    )


def _clean(trials: pd.DataFrame, studies: pd.DataFrame, problems: ProblemLog) -> pd.DataFrame:
    """Rows with a known state and study and a number of their own, sorted by study and number."""
    names = dict(zip(studies["study_id"], studies["study"], strict=True))
    place = {key: position for position, key in enumerate(studies["study_id"])}
    numbers = pd.to_numeric(trials["number"], errors="coerce")  # -1 is one: that of a trial outside all studies
    number, trial_id = _whole(numbers), _whole(trials["trial_id"])
    state = trials["state"].astype("object")
    if not (known := state.isin(STATES)).all():
        state = state.str.upper()
        known = state.isin(STATES)
    good = known.to_numpy() & trials["study_id"].isin(list(names)).to_numpy() & (number == numbers.to_numpy())
    good &= (trial_id >= 0) & ~pd.Index(trial_id).duplicated()
    out = trials.assign(trial_id=trial_id, number=number, state=state, study=trials["study_id"].map(names))
    if not good.all():
        example = trials.loc[~good, "state"].iloc[0]
        problems.add(
            "trial without a study, an id, a number or a known state", int((~good).sum()), example=example, lost=True
        )
        out = out[good]
    for name in ("start", "end"):
        stated = out[name]
        told = possible(stated)
        if told is stated:
            continue
        odd = stated.notna() & told.isna()
        if odd.any():
            problems.add("timestamp that is no date", int(odd.sum()), example=stated[odd].iloc[0])
            out[name] = told
    places = out["study_id"].map(place).to_numpy(dtype="int64")
    if not _sorted(places, out["number"].to_numpy()):
        out = out.assign(place=places).sort_values(["place", "number", "trial_id"], kind="stable").drop(columns="place")
        twice = out.duplicated(["study_id", "number"])
        problems.add(NUMBER_TWICE, int(twice.sum()), lost=True)
        out = out[~twice]
    return out.reset_index(drop=True)


def _by_study(trials: pd.DataFrame) -> Iterable[tuple[Any, pd.DataFrame]]:
    """Each study_id with its trials; most storages hold one study."""
    ids = trials["study_id"].to_numpy()
    if len(ids) and (ids == ids[0]).all():
        return [(trials["study_id"].iloc[0], trials)]
    return trials.groupby("study_id", sort=False)


def _clocks(stored: Stored, trials: pd.DataFrame, zone: tzinfo) -> dict[object, Clocked]:
    """Starts and ends on UTC, study by study."""
    if stored.clocks is not None:
        return {key: Clocked(one["start"], one["end"], *stored.clocks[key]) for key, one in _by_study(trials)}
    if len(stored.heartbeats):
        trials = trials.assign(heartbeat=_last_heartbeats(stored, trials))
    return {key: to_utc(group, zone, stored.created_by) for key, group in _by_study(trials)}


def _last_heartbeats(stored: Stored, trials: pd.DataFrame) -> pd.Series:
    """The last heartbeat of each trial, in UTC without a zone."""
    last = stored.heartbeats.drop_duplicates("trial_id", keep="last").set_index("trial_id")["heartbeat"]
    return trials["trial_id"].map(possible(last.astype("datetime64[us]"))).astype("datetime64[us]")


def _last_seen(heartbeat: pd.Series, start: pd.Series, end: pd.Series, trials: pd.DataFrame) -> pd.Series:
    """The last heartbeat in UTC; unknown in studies where it lies outside of some trial that ended by itself, for there
    the timestamps are of another clock.
    """
    seen = heartbeat.dt.tz_localize("UTC")
    by_itself = trials["state"].isin(["COMPLETE", "PRUNED"])
    odd = by_itself & ((seen < start - SLACK) | (seen > end + SLACK))
    return seen.where(~odd.groupby(trials["study_id"]).transform("any"))


def _notes(clocks: dict[object, Clocked], studies: pd.DataFrame, zone: tzinfo) -> tuple[str, ...]:
    """One sentence per decision, with those of the studies that it holds for."""
    names = dict(zip(studies["study_id"], studies["study"], strict=True))
    by_decision: dict[str, list[str]] = {}
    for key, clock in clocks.items():
        if clock.clock == "unknown" or key not in names:
            continue
        by_decision.setdefault(f"read as {clock.meaning(zone)} ({clock.why})", []).append(names[key])
    return tuple(f"{named_studies(found)}: timestamps {decision}." for decision, found in by_decision.items())


def _without_trials(studies: pd.DataFrame, trials: pd.DataFrame) -> tuple[str, ...]:
    """That studies hold none, which is no fault of reading."""
    names = studies.loc[~studies["study"].isin(trials["study"]), "study"].tolist()
    return (f"{named_studies(names)}: no trials yet.",) if names else ()


def _joined(parts: list[pd.Series], index: pd.Index) -> pd.Series:
    parts = [part for part in parts if len(part)]
    joined = pd.concat(parts) if parts else pd.Series(dtype="datetime64[us, UTC]")
    return joined.astype("datetime64[us, UTC]").reindex(index)


def _wide(
    stored: Stored,
    params: pd.DataFrame,
    at: pd.Index,
    trials: pd.DataFrame,
    studies: pd.DataFrame,
    problems: ProblemLog,
) -> dict[str, pd.Series]:
    """Objectives, parameters and attributes as columns, in the order of ``trials``."""
    rows = len(trials)
    out = _objectives(_placed(stored.values, at), trials, studies)
    out |= pivot_params(params, rows, problems)
    out |= pivot_attributes(_placed(stored.user_attrs, at), rows, "user_attrs.", problems)
    out |= pivot_attributes(_placed(stored.system_attrs, at), rows, "system_attrs.", problems)
    return out


def _placed(table: pd.DataFrame, at: pd.Index) -> pd.DataFrame:
    """Rows of a long table whose trial is kept, with its position as ``row``."""
    row = _positions(table["trial_id"], at)
    kept = row >= 0
    return (table if kept.all() else table[kept]).assign(row=row[kept])


def _positions(ids: pd.Series, at: pd.Index) -> np.ndarray:
    """Where each id stands in ``at``, -1 if nowhere. A table of positions is faster than hashing for dense ids."""
    if not len(ids):
        return np.empty(0, dtype="int32")
    wanted = _whole(ids)
    known = at.to_numpy(dtype="int64")
    low, high = (known.min(), known.max()) if len(known) else (0, 0)
    if low < 0 or high > 10 * len(wanted) + 1000 or (wanted < 0).any():
        return pd.Index(known).get_indexer(pd.Index(wanted))
    table = np.full(high + 2, -1, dtype="int32")
    table[known] = np.arange(len(known), dtype="int32")
    return table[np.minimum(wanted, high + 1)]


def _whole(numbers: pd.Series) -> np.ndarray:
    """Integers; -1 where a damaged row holds none."""
    if numbers.dtype.kind != "i":
        numbers = pd.to_numeric(numbers, errors="coerce").astype("float64")
        numbers = numbers.where((numbers % 1 == 0) & (numbers.abs() < MOST_STEPS), -1)
    return numbers.to_numpy(dtype="int64")


def _objectives(values: pd.DataFrame, trials: pd.DataFrame, studies: pd.DataFrame) -> dict[str, pd.Series]:
    """``value`` for the trials of single-objective studies, ``value_<i>`` for those of the others."""
    many = dict(zip(studies["study_id"], studies["directions"].str.contains(","), strict=True))
    multi = trials["study_id"].map(many).to_numpy(dtype=bool)
    out: dict[str, pd.Series] = {}
    row, numbers = values["row"].to_numpy(), floats(values["value"])
    codes, objectives = pd.factorize(values["objective"], sort=True)
    for code, objective in enumerate(objectives):
        at = np.flatnonzero(codes == code)
        full = np.full(len(trials), np.nan)
        full[row[at]] = numbers[at]
        if objective == 0 and not multi.all():
            out["value"] = pd.Series(np.where(multi, np.nan, full))
        if multi.any():
            out[f"value_{int(objective)}"] = pd.Series(np.where(multi, full, np.nan))
    return out


def _reports(reports: pd.DataFrame, trials: pd.DataFrame, problems: ProblemLog) -> pd.DataFrame:
    """One row per intermediate value, sorted by trial (as ``trials``) and step."""
    if not len(reports) or not len(trials):
        return empty(REPORTS)
    row = _positions(reports["trial_id"], pd.Index(trials["trial_id"]))
    step = _whole(reports["step"])
    value = floats(reports["value"])
    good = (row >= 0) & (step >= 0)
    if not good.all():
        row, step, value = row[good], step[good], value[good]
    if not _sorted(row, step):
        keys = pair_keys(row, step)
        order = np.argsort(keys, kind="stable")
        row, step, value, keys = row[order], step[order], value[order], keys[order]
        twice = np.append(False, keys[1:] == keys[:-1])
        problems.add("intermediate value stored twice, first kept", int(twice.sum()), lost=True)
        row, step, value = row[~twice], step[~twice], value[~twice]
    # Arrow repeats the study's name without a Python object per row; without copy each column stays where it is.
    codes, names = pd.factorize(trials["study"])
    study = pa.array(names.tolist(), pa.large_string()).take(pa.array(codes[row])).to_pandas().astype(text_dtype())
    number = trials["number"].to_numpy(dtype="int64")[row]
    return pd.DataFrame({"study": study, "trial": number, "step": step, "value": value}, copy=False)


def pair_keys(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """A number for each pair, both >= 0, ordered as the pairs are.

    Its stable sort is five times as fast as ``np.lexsort`` where the pairs lie nearly in order.
    """
    span = int(second.max(initial=0)) + 1
    if span >= 2**62 // (int(first.max(initial=0)) + 1):
        known, second = np.unique(second, return_inverse=True)
        span = len(known)
    keys = first.astype("int64")
    keys *= span
    keys += second
    return keys


def _sorted(row: np.ndarray, step: np.ndarray) -> bool:
    """True if every pair (row, step) is greater than the one before."""
    ahead = np.diff(row)
    return bool(((ahead > 0) | ((ahead == 0) & (np.diff(step) > 0))).all())
