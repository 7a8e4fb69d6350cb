"""When a trial without an end most likely ended.

A killed trial stays RUNNING for ever, and its worker goes on or stays away. Two things tell when it died: memory that
is freed though no trial ended, and a trial that starts though as many run as ever ran at once. Either ends the oldest
trial that may still be alive on that GPU; which one of several died changes no sum over them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.gpu_samples import samples_by_gpu
from gpudiag.measures._time.microseconds import NEVER, distinct, microseconds
from gpudiag.measures._time.timeline import Samples
from gpudiag.measures._time.trial_intervals import HANDOVER_US, is_open
from gpudiag.measures._trials.horizon import Sign
from gpudiag.measures._trials.memory_falls import SLACK_US, unexplained_falls
from gpudiag.measures.attribution import measure_attribution
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT

AROUND = 2
"""How many trials may run at once is read off the ended ones within this many times the longest of them."""
AT_FIRST = 0.25
"""Trials that begin within this share of a median one after the very first, and before any ends, run at once: few are
killed that young."""
ENOUGH = 5
"""So many trials must find the place full later, before what is beyond it is called dead (no published source)."""


@dataclass(frozen=True)
class Death:
    """When an open trial was gone, what says so, and whether it proves it."""

    at_us: int
    sign: Sign
    sure: bool


@dataclass(frozen=True)
class Place:
    """Trials that share a GPU (or, where GPUs are not known, all, with gpu ""), in µs; ``opens``: positions among the
    open ones.

    ``falls``: memory freed though no trial ended. ``workers``: trials at once as configured, None if it is not said.
    """

    gpu: str
    start: np.ndarray
    end: np.ndarray
    opens: np.ndarray
    falls: np.ndarray
    workers: int | None = None


def deaths(places: list[Place], opens: pd.DataFrame) -> dict[int, Death]:
    """By position in ``opens``, for those that something shows to be dead before their horizon."""
    start, alive_at, horizon = (microseconds(opens[name]) for name in ("start", "last_evidence", "horizon"))
    found: dict[int, Death] = {}
    for place in places:
        found |= _settled(place, start, alive_at, horizon)
    return found


def seen_alone(run: Run, places: list[Place], opens: pd.DataFrame) -> np.ndarray:
    """When a GPU was last active on which, of all trials, only this open one can have run (µs); its start if never."""
    start, horizon = microseconds(opens["start"]), microseconds(opens["horizon"])
    out = start.copy()
    active = _active(samples_by_gpu(run, "util_pct")) if run.info.clock.joined else {}
    for place in places:
        active_us = active.get(place.gpu, start[:0])
        others = count_at(active_us, place.start - SLACK_US, place.end + SLACK_US)
        alone = active_us[(others == 0) & (count_at(active_us, start[place.opens], horizon[place.opens]) == 1)]
        for i in place.opens:
            mine = alone[(alone >= start[i]) & (alone < horizon[i])]
            out[i] = mine.max(initial=out[i])
    return out


def _active(samples: dict[str, Samples]) -> dict[str, np.ndarray]:
    """When each GPU was active; under "" when any was."""
    by_name = {gpu: own.time_us[own.value >= IDLE_PCT] for gpu, own in samples.items()}
    return {**by_name, "": np.sort(np.concatenate([np.zeros(0, np.int64), *by_name.values()]))}


def places_of(run: Run, intervals: pd.DataFrame) -> Iterator[Place]:
    """One a GPU with an open trial where every trial is known to have run on one, else one for the run."""
    where = measure_attribution(run).trials
    rows = intervals.index[is_open(intervals)]
    began = intervals["start"].notna() & (intervals["state"] != "WAITING")
    sure = (where["confidence"] == "strong") & (where["n_gpus"] == 1)
    memory = samples_by_gpu(run, "mem_used_mib") if run.info.clock.joined else {}
    name_of = where["gpu"].astype(object) if sure[began].all() else pd.Series("", where.index, dtype=object)
    workers = run.info.settings.parallel if name_of[began].nunique() == 1 else None
    for name in dict.fromkeys(name_of[rows]):
        ended = intervals[intervals["known"] & (name_of == name)]
        start, end = microseconds(ended["start"]), microseconds(ended["end"])
        opens = np.flatnonzero((name_of[rows] == name).to_numpy())
        used = memory.get(name, Samples.none())
        falls = unexplained_falls(used.time_us, used.value, end, most=2 * len(opens) + 1)
        yield Place(str(name), start, end, opens, falls, workers)


def _settled(place: Place, start: np.ndarray, alive_at: np.ndarray, horizon: np.ndarray) -> dict[int, Death]:
    """Goes through starts and falls in order: what ends which open trial."""
    found: dict[int, Death] = {}
    room = _Room(place, start[place.opens])
    events = [(int(t), 1, -1) for t in place.start]
    events += [(int(start[i]), 1, int(i)) for i in place.opens]
    events += [(int(t), 0, -1) for t in place.falls]
    alive: list[int] = []
    for at, begins, newcomer in sorted(events):
        alive = [i for i in alive if horizon[i] > at]
        may_die = [i for i in alive if alive_at[i] <= at]
        too_many = room.beyond(at, len(alive) + (newcomer >= 0)) if begins and may_die else 1 - begins
        for i in may_die[: max(too_many, 0)]:
            found[i] = Death(at, room.sign if begins else Sign.FREED, not begins or room.is_sure(at))
            alive.remove(i)
        if newcomer >= 0:
            alive.append(newcomer)
    return found


class _Room:
    """How many trials a place takes at once."""

    def __init__(self, place: Place, opened: np.ndarray) -> None:
        end = np.maximum(place.end - HANDOVER_US, place.start)  # who starts just before another ends takes its place
        self.times = distinct(place.start, end)
        self.count = count_at(self.times, place.start, end)
        fits = place.workers is not None and place.workers >= self.count.max(initial=0)
        self.workers = place.workers if fits else None
        longest = int((place.end - place.start).max(initial=0))
        held = pd.Series(self.count, pd.to_datetime(self.times, unit="us"))
        wide = pd.Timedelta(max(2 * AROUND * longest, 1), unit="us")
        self.around = held.rolling(wide, center=True).max().to_numpy() if len(held) else self.count
        self.later = np.maximum.accumulate(self.count[::-1])[::-1]
        began = np.concatenate([place.start, opened])
        quarter = AT_FIRST * float(np.median(place.end - place.start)) if len(held) else np.inf
        self.at_first = int((began <= min(began.min() + quarter, end.min(initial=NEVER))).sum())

    @property
    def sign(self) -> Sign:
        """What a start beyond the number shows: more than were configured, or more than ever ended together."""
        return Sign.BEYOND if self.workers is None else Sign.CROWDED

    def is_sure(self, at: int) -> bool:
        """Whether the number that the place takes is known at a start: configured, or reached often from then on."""
        if self.workers is not None:
            return True
        j = int(np.searchsorted(self.times, at))
        return j < len(self.times) and int((self.count[j:] >= self.around[j]).sum()) >= ENOUGH

    def beyond(self, at: int, n_open: int) -> int:
        """How many trials more than the place takes run at a start, with ``n_open`` open ones.

        Without a configured number it takes as many as ended trials ever ran at once around then, if as many do so
        later: else the newcomers may be new workers.
        """
        i = int(np.searchsorted(self.times, at, "right")) - 1
        running = int(self.count[i]) if i >= 0 else 0
        if self.workers is not None:
            return running + n_open - self.workers
        j = min(int(np.searchsorted(self.times, at)), len(self.times) - 1)
        if j < 0 or self.later[j] < self.around[j]:
            return 0
        return running + n_open - max(int(self.around[j]), self.at_first)
