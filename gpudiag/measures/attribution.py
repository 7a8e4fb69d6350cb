"""Which GPU each trial ran on, how that is known, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag._run.allocated_gpus import allocated_gpus
from gpudiag._run.gpu_names import declared_gpus, gpus_of_events
from gpudiag._run.worker_names import worker_names
from gpudiag.facts import Column, Fact, Rows, column, fact, table_of
from gpudiag.measures._gpu.chains import chains_of
from gpudiag.measures._gpu.footprint import active_gpus
from gpudiag.measures._gpu.gpu_rows import gpu_order
from gpudiag.measures._gpu.holding import chance_recorded, held_gpus, more_busy_than_trials
from gpudiag.measures._gpu.marks import Mark, marks_of
from gpudiag.measures._gpu.placement import SURE, Lives, place
from gpudiag.measures._gpu.statements import Stated, exchanged, n_elsewhere
from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.gpu_samples import known_gpus, samples_by_gpu
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.timeline import Samples
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures.base import Profile, TrialRow, need_trials
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import ADDED, text_dtype

METHODS = ("declared", "log line", "process", "scheduler", "only GPU", "only active GPU", "telemetry", "unknown")
LEAST_CHANCE = 0.05
"""A GPU of less chance is none on which a trial may have run."""


class TrialGpus(TrialRow):
    """A trial and where it ran."""

    gpu: Column[str] = column("names of its GPUs joined by commas, missing if unknown")
    n_gpus: Column[int] = column("how many")
    method: Column[str] = column("one of METHODS, best first")
    confidence: Column[str] = column(
        "strong (stated, or nothing speaks for another GPU than the only one), weak (read off the telemetry: state it "
        "with any number that rests on it) or unknown"
    )


class TrialGpu(TrialRow):
    """A trial on one of its GPUs."""

    gpu: Column[str] = column("GPU")


class MaybeGpu(TrialRow):
    """A GPU on which a trial of unknown GPU may have run."""

    gpu: Column[str] = column("GPU")
    chance: Column[float] = column("chance that it ran there; NaN where nothing tells")


class AttributionProfile(Profile, topic="attribution"):
    """On which GPU each trial ran."""

    trials: Rows = table_of(TrialGpus)
    links: Rows = table_of(TrialGpu)
    maybe: Rows = table_of(MaybeGpu)
    n_trials: Fact[int] = fact("trials")
    n_attributed: Fact[int] = fact("trials whose GPU is known")
    n_inferred: Fact[int] = fact("trials whose GPU was read off the telemetry")
    n_elsewhere: Fact[int] = fact(
        "trials that left marks on no recorded GPU while others did", label="trials elsewhere"
    )
    attributed_pct: Fact[float] = fact("share of the trials whose GPU is known")
    refuted_gpu: Fact[str] = fact(
        "the GPU that trials state and that the telemetry refutes, or those that are exchanged, joined by commas; '' "
        "where it refutes none"
    )
    n_refuted: Fact[int] = fact("trials that left their marks on another GPU than the one that they state")


Found = dict[int, tuple[tuple[str, ...], str]]
"""GPUs by row of the trials, and how they are known."""


@memoized
def measure_attribution(run: Run) -> AttributionProfile:
    """The GPU of each trial. Needs trials.

    In this order: what the record of the trial names, a line of a log, its process on a GPU, those that a scheduler
    says it had, or all GPUs of its nodes where it gave it so many, the only GPU there is, unless trials at once left
    marks on it of which others have none; then, marked ``weak``, the only GPU with any activity, and the GPU that shows
    the marks of the trial (:mod:`~gpudiag.measures._gpu.placement`), or the GPUs
    (:mod:`~gpudiag.measures._gpu.holding`), each among those of its nodes, or that it had by the scheduler, where these
    are known. Where all name one GPU and the marks are on others, or GPUs are exchanged,
    what they name is not believed: a process that sees one GPU alone counts it as 0, and CUDA counts GPUs by speed.
    """
    need_trials(run)
    known = gpu_order({*known_gpus(run), *run.info.left_out_gpus})
    n, found = len(run.trials), _stated(run)
    refuted, n_refuted = _refuted(run, known, found)
    found = {row: how for row, how in found.items() if refuted.isdisjoint(how[0])}
    found |= {row: (names, "process") for row, names in _by_process(run).items() if row not in found}
    given = allocated_gpus(run)
    found |= {row: (names, "scheduler") for row, names in given.whole.items() if row not in found}
    before = _by_name(run, run.info.placed_gpus, "telemetry")  # before other studies were left out
    found |= {row: how for row, how in before.items() if row not in found}
    chance = pd.DataFrame(np.nan, range(n), known)
    if len(known) == 1:
        allowed = np.array([given.may_have(row, known) for row in range(n)])
        here = np.where(allowed, _here(run, known[0], found), 0.0)
        method = "only GPU" if (here == 1).all() else "telemetry"
        found |= {row: ((known[0],), method) for row in np.flatnonzero(here >= SURE).tolist() if row not in found}
        chance[known[0]] = here
    elif len(found) < n and run.info.clock.joined:
        active = active_gpus(run)
        may_be = [gpu for gpu in known if gpu in active] or known
        chance = chance[may_be]
        if len(may_be) == 1 and active:
            rows = [row for row in range(n) if row not in found and given.may_have(row, may_be)]
            found |= {row: ((may_be[0],), "only active GPU") for row in rows}
        elif len(found) < n and active:
            placed, chance = _by_telemetry(run, may_be, found)
            own = {row: gpus for row, gpus in placed.items() if row not in found and given.may_have(row, gpus)}
            found |= {row: (gpus, "telemetry") for row, gpus in own.items()}
    for row, among in given.among.items():
        chance.loc[row, [gpu for gpu in chance.columns if gpu not in among]] = 0.0
    return _profile(run, found, chance, ",".join(gpu_order(refuted)), n_refuted)


def _stated(run: Run) -> Found:
    """GPUs of the trials whose record, or a line of a log, names them."""
    declared = {row: (names, "declared") for row, names in declared_gpus(run).items()}
    return _by_name(run, gpus_of_events(run), "log line") | declared


def _by_name(run: Run, gpus: Mapping[tuple[str, int], tuple[str, ...]], how: str) -> Found:
    """By row the GPUs that are known by study and number of a trial."""
    keys = zip(run.trials["study"], run.trials["trial"], strict=True) if gpus else ()
    return {row: (gpus[key], how) for row, key in enumerate(keys) if key in gpus}


def _refuted(run: Run, known: list[str], stated: Found) -> tuple[set[str], int]:
    """The GPUs that statements name wrongly, and how many trials left their marks on others: the one that all name, or
    several that are exchanged; nothing and 0 where the statements stand.
    """
    named = {names for names, _ in stated.values()}
    gpus = gpu_order({names[0] for names in named if len(names) == 1})
    if not gpus or not run.info.clock.joined:
        return set(), 0
    active = active_gpus(run)
    if len(named) == 1:
        if gpus[0] not in known or not active - set(gpus):
            return set(), 0
        asked = _asked(run, [gpu for gpu in known if gpu in active | set(gpus)], stated)
        n = n_elsewhere(asked[1]) if asked else 0
        return (set(gpus), n) if n else (set(), 0)
    names = [gpu for gpu in known if gpu in gpus]
    asked = _asked(run, names, stated)
    places, n = exchanged(asked[1]) if asked else ([], 0)
    return {names[place] for place in places}, n


def _by_process(run: Run) -> dict[int, tuple[str, ...]]:
    """GPUs by row of trials whose process was seen on them while the trial ran."""
    if "pid" not in run.trials or run.processes.empty or not run.info.clock.joined:
        return {}
    seen = run.processes.groupby(["pid", "gpu"])["time"].agg(["min", "max"]).reset_index()
    trials = run.trials[["pid", "start", "end"]].reset_index(drop=True).rename_axis("row").reset_index()
    both = trials[trials["pid"].notna()].merge(seen, on="pid")
    slack = pd.Timedelta(microseconds=SECOND_US)
    met = (both["max"] >= both["start"] - slack) & ~(both["min"] > both["end"] + slack)
    found = both[met].groupby("row")["gpu"].unique()
    return {int(row): tuple(gpu_order(gpus)) for row, gpus in found.items()}


def _asked(run: Run, gpus: list[str], found: Found) -> tuple[np.ndarray, Stated] | None:
    """Rows and lives of the trials that began, but for those on several GPUs, and what GPUs recorded; None where none
    has ended. A trial without an end counts as no longer than a second: only how it began is known.
    """
    intervals = intervals_of(run)
    several = [row for row, (names, _) in found.items() if len(names) != 1 or names[0] not in gpus]
    timed = intervals["start"].notna() & (intervals["state"] != "WAITING") & ~intervals.index.isin(several)
    ended = (intervals["known"] & (intervals["duration_s"] > 0))[timed].to_numpy()
    if not ended.any():
        return None
    rows = intervals.index[timed].to_numpy()
    start = microseconds(intervals["start"][timed])
    end = start + SECOND_US
    end[ended] = microseconds(intervals["end"][timed][ended])
    chain = chains_of(start, end, ended, worker_names(run).to_numpy(object)[timed])
    stated = {row: gpus.index(names[0]) for row, (names, _) in found.items() if row not in several}
    known = np.array([stated.get(row, -1) for row in rows])
    both = (samples_by_gpu(run, column) for column in ("mem_used_mib", "util_pct"))
    memory, activity = ([samples[gpu] for gpu in gpus] for samples in both)
    return rows, Stated(Lives(start, end, chain, known), ended, memory, activity)


@dataclass(frozen=True)
class _Evidence:
    """Timed trials (``rows`` of ``run.trials``) that are not known to be on several GPUs or on others than some, and
    what these GPUs show of them.
    """

    rows: np.ndarray
    lives: Lives
    marks: list[Mark]
    activity: list[Samples]

    def only(self, kept: np.ndarray) -> _Evidence:
        """Some of the trials."""
        marks = [Mark(mark.kind[kept], mark.beside[kept], mark.usual, mark.any_time[kept]) for mark in self.marks]
        return _Evidence(self.rows[kept], self.lives.only(kept), marks, self.activity)

    @property
    def at_once(self) -> int:
        """The most of these trials that ran at once."""
        return int(count_at(self.lives.start, self.lives.start, self.lives.end).max())


def _evidence(run: Run, gpus: list[str], found: Found) -> _Evidence | None:
    """What these GPUs show of the trials; None where no trial has ended."""
    asked = _asked(run, gpus, found)
    if asked is None:
        return None
    rows, of = asked
    marks = marks_of(of.lives.start, of.lives.end, of.ended, of.memory, of.activity)
    return _Evidence(rows, of.lives, marks, of.activity)


def _here(run: Run, gpu: str, found: Found) -> np.ndarray:
    """The chance of each trial to have run on the only GPU that was recorded: 1 unless trials ran at once of which it
    shows only some.
    """
    here = np.ones(len(run.trials))
    seen = _evidence(run, [gpu], found) if len(found) < len(here) and run.info.clock.joined else None
    if seen is not None and seen.at_once > 1:
        here[seen.rows] = chance_recorded(seen.marks, seen.lives, 1)
    return here


def _by_telemetry(run: Run, gpus: list[str], found: Found) -> tuple[dict[int, tuple[str, ...]], pd.DataFrame]:
    """The GPUs by row of the trials whose marks place them, and the chance of each GPU by row; NaN where they are not
    shared, or where more GPUs are busy than trials run: then a trial may hold several.
    """
    chance = pd.DataFrame(np.nan, range(len(run.trials)), gpus)
    seen = _evidence(run, gpus, found)
    if seen is None:
        return {}, chance
    if seen.at_once > len(gpus):
        recorded = chance_recorded(seen.marks, seen.lives, len(gpus))
        chance.loc[seen.rows[recorded == 0]] = 0.0
        seen = seen.only(recorded >= SURE)
    made = place(seen.marks, seen.lives, len(gpus), seen.at_once)
    on = made.gpu[:, None] == np.arange(len(gpus))
    if more_busy_than_trials(seen.activity, seen.lives):
        on = held_gpus(seen.marks, seen.lives, on)
    elif made.shared:
        chance.loc[seen.rows] = made.chance
    names = {int(row): tuple(gpus[gpu] for gpu in np.flatnonzero(own)) for row, own in zip(seen.rows, on, strict=True)}
    return {row: own for row, own in names.items() if own}, chance


def _profile(run: Run, found: Found, chance: pd.DataFrame, refuted_gpu: str, n_refuted: int) -> AttributionProfile:
    n = len(run.trials)
    nothing: tuple[tuple[str, ...], str] = ((), "unknown")
    rows = [found.get(row, nothing) for row in range(n)]
    method = np.array([how for _, how in rows], dtype=object)
    weak = np.isin(method, ["only active GPU", "telemetry"])
    trials = run.trials[["study", "trial"]].reset_index(drop=True)
    trials["gpu"] = pd.Series([",".join(gpus) or None for gpus, _ in rows], dtype=text_dtype())
    trials["n_gpus"] = [len(gpus) for gpus, _ in rows]
    trials["method"] = pd.Series(method, dtype=text_dtype())
    confidence = np.where(method == "unknown", "unknown", np.where(weak, "weak", "strong"))
    trials["confidence"] = pd.Series(confidence, dtype=text_dtype())
    links = trials[["study", "trial"]].take(np.repeat(np.arange(n), trials["n_gpus"])).reset_index(drop=True)
    links["gpu"] = pd.Series([gpu for gpus, _ in rows for gpu in gpus], dtype=text_dtype())
    ran = (intervals_of(run)["state"] != ADDED).to_numpy()
    n_ran, is_known = int(ran.sum()), method != "unknown"
    attributed = int((is_known & ran).sum())
    elsewhere = ~is_known & ran & (chance < LEAST_CHANCE).all(axis=1).to_numpy()
    return AttributionProfile(
        trials=trials,
        links=links,
        maybe=_maybe(trials, chance),
        n_trials=n_ran,
        n_attributed=attributed,
        n_inferred=int((weak & ran).sum()),
        n_elsewhere=int(elsewhere.sum()),
        attributed_pct=100 * attributed / n_ran if n_ran else math.nan,
        refuted_gpu=refuted_gpu,
        n_refuted=n_refuted,
    )


def _maybe(trials: pd.DataFrame, chance: pd.DataFrame) -> pd.DataFrame:
    """The GPUs of each unknown trial that have a chance, so that chances add up to 1."""
    unknown = np.flatnonzero((trials["method"] == "unknown").to_numpy())
    value = chance.to_numpy(float)[unknown]
    row, gpu = np.nonzero(~(value < LEAST_CHANCE))
    kept = np.where(value < LEAST_CHANCE, 0.0, value)
    total = kept.sum(axis=1, keepdims=True)
    share = kept / np.where(total > 0, total, 1.0)
    out = trials[["study", "trial"]].take(unknown[row]).reset_index(drop=True)
    out["gpu"] = pd.Series(np.array(chance.columns, dtype=object)[gpu], dtype=text_dtype())
    out["chance"] = share[row, gpu]
    return out
