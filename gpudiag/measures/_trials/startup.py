"""How long trials take from their start until they use their GPU, where that can be seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.gpu_samples import samples_by_gpu
from gpudiag.measures._time.gpu_time import GpuTime, gpu_time
from gpudiag.measures._time.microseconds import LONG_AGO, NEVER, SECOND_US
from gpudiag.measures._time.phase_steps import COARSE_US
from gpudiag.measures._time.timeline import Intervals, Samples, first_activity, never_works, samples_within
from gpudiag.memo import memoized
from gpudiag.run import Run

LOADED_MIB = 700.0
"""More than a CUDA context (300-600 MiB, METHODS 6): a model is being loaded."""
MIN_RISE_MIB = 1000.0
QUIET_US = 20 * SECOND_US
SETTLED_US = 60 * SECOND_US
LONGEST_US = 1200 * SECOND_US
MAX_RAMPS = 2000
MOST_STEPS = 2.5
"""So many usual steps without a sample, above ``COARSE_US``, hide when work began."""
FEWEST = 5
"""Start-ups that must be seen for a typical one to be said of all."""
NEARLY_ALL, MOST, SOME = 0.8, 0.6, 0.3
"""Shares of the trials whose start-up is seen. Little is known of the others: where fewer than MOST are seen, the
learned median was off by up to 17 % in one world and 74 % in the other, above it by 3 and 9 % (development runs; fresh
ones in benchmarks/accuracy.md). Below it, down to SOME, it must agree with that of the seen ones within ALIKE."""
ALIKE = 0.1
AGREE = 0.2
BRIEF = 0.1
"""Share of the trials that work of which a single sample shows it, from which on others may work between samples (a
default without a published source)."""


@dataclass(frozen=True)
class Startups:
    """Seconds of start-up by timed trial (NaN where it cannot be seen), which way (``solo``, ``activity``, ``memory``
    or empty), the median of all trials that may have one, NaN where too few were seen to tell it, and which trials
    never work on a GPU and have none.
    """

    seconds: np.ndarray
    method: np.ndarray
    median_s: float
    none: np.ndarray

    @property
    def expected_s(self) -> np.ndarray:
        """Of each trial its own, the median where that is not seen, and 0 where it has none (s)."""
        return np.where(self.none, 0.0, np.where(np.isnan(self.seconds), self.median_s, self.seconds))


@memoized
def startups(run: Run) -> Startups:
    """By first activity where a trial had its GPU to itself, else by the phases of those that share it.

    The trials whose start-up is seen may not be like the others: where these are less than 80 % of all, the median is
    that of the distribution that the phases were learned with, which is of all trials. A rise of memory shows a
    start-up only where loading ends it, and a framework may load or reserve early: where activity shows fewer than
    five, the rises are believed if their median agrees within a fifth with the learned one. Of several GPUs the first
    counts. Where the clocks of trials and telemetry may differ, none is known.
    """
    time = gpu_time(run)
    seconds, method = np.full(len(time.trials.start_us), np.nan), np.full(len(time.trials.start_us), "", dtype=object)
    if not time.exact:
        return Startups(seconds, method, math.nan, np.zeros(len(seconds), bool))
    for gpu, places in time.places.items():
        phases = time.phases.get(gpu)
        own = solo_startups(time.samples.get(gpu, Samples.none()), time.intervals(gpu))
        own[_beside_maybe(time, gpu)] = np.nan
        took, how = (own, "solo") if phases is None else (phases.startup_s, "activity")
        sooner = ~(seconds[places] <= took) & ~np.isnan(took)
        seconds[places[sooner]], method[places[sooner]] = took[sooner], how
    learned = next((phases.median_s for phases in time.phases.values()), float("nan"))
    if np.isfinite(seconds).sum() < FEWEST and time.phases:
        ramps = _ramps(run, time)
        shown = ramps[~np.isnan(ramps)]
        if len(shown) >= FEWEST and abs(float(np.median(shown)) - learned) <= AGREE * learned:
            more = np.isnan(seconds) & ~np.isnan(ramps)
            seconds[more], method[more] = ramps[more], "memory"
            learned = float(np.median(shown))
    none = _none(time)
    seconds[none] = np.nan
    method[none] = ""
    return Startups(seconds, method, _typical(seconds[~none], learned), none)


def _none(time: GpuTime) -> np.ndarray:
    """True for each timed trial that ends well and never works on any of its GPUs: who fails may not have come so
    far. None where of a tenth of those that work a single sample shows it: others work as short, between samples.
    """
    known, works = np.zeros((2, len(time.trials.start_us)), bool)
    shown = np.zeros(len(works), int)
    for gpu, places in time.places.items():
        known[places] = True
        samples = time.samples.get(gpu, Samples.none())
        works[places] |= ~never_works(samples, time.intervals(gpu)) if len(samples.time_us) > 1 else True
        shown[places] += samples_within(samples, time.intervals(gpu))[1]
    well = time.trials.rows["outcome"].isin(["COMPLETE", "PRUNED"]).to_numpy()
    if (well & (shown == 1)).sum() >= BRIEF * (well & works).sum() > 0:
        return np.zeros(len(works), bool)
    return known & ~works & well


def _typical(seconds: np.ndarray, learned_s: float) -> float:
    """The median of all trials, from those seen and from what was learned of all; NaN where these do not tell it."""
    seen = seconds[~np.isnan(seconds)]
    share = len(seen) / max(len(seconds), 1)
    if len(seen) < min(FEWEST, len(seconds)) or share < SOME:
        return float("nan")
    own_s = float(np.median(seen)) if len(seen) else float("nan")
    if share >= NEARLY_ALL or (share >= MOST and math.isnan(learned_s)):
        return own_s
    if share >= MOST:
        return learned_s
    return math.sqrt(own_s * learned_s) if abs(own_s - learned_s) <= ALIKE * learned_s else float("nan")


def _ramps(run: Run, time: GpuTime) -> np.ndarray:
    """What the memory of shared GPUs shows of each timed trial's start-up (s), of several GPUs the first."""
    memory, out = samples_by_gpu(run, "mem_used_mib"), np.full(len(time.trials.start_us), np.nan)
    for gpu in time.phases:
        places = time.places[gpu]
        own = ramp_startups(memory[gpu], time.intervals(gpu))
        own[_beside_maybe(time, gpu)] = np.nan
        out[places] = np.fmin(out[places], own)
    return out


def _beside_maybe(time: GpuTime, gpu: str) -> np.ndarray:
    """Whether a trial of unknown GPU may have run beside each trial of a GPU."""
    own, maybe = time.intervals(gpu), time.maybe_on(gpu)
    begun = np.searchsorted(np.sort(maybe.start_us), own.end_us)
    return begun > np.searchsorted(np.sort(maybe.end_us), own.start_us, "right")


def solo_startups(samples: Samples, intervals: Intervals) -> np.ndarray:
    """Start to first sustained activity, for trials that had the GPU to themselves until then; else NaN.

    Half the step to the sample before it is subtracted: on average the activity began that long before the sample
    that shows it (METHODS 3). Where that step is much longer than others of the record, nothing is said. Where other
    trials run, activity is theirs and nothing can be said.
    """
    if len(samples.time_us) < 2:
        return np.full(len(intervals.start_us), np.nan)
    first = first_activity(samples, intervals.start_us)
    starts = np.sort(intervals.start_us)
    following = np.append(starts, NEVER)[np.searchsorted(starts, intervals.start_us, "right")]
    same = np.searchsorted(starts, intervals.start_us, "right") - np.searchsorted(starts, intervals.start_us, "left")
    alone = (count_at(intervals.start_us, intervals.start_us, intervals.end_us) == 1) & (same == 1)
    shown = alone & (first < intervals.end_us) & (first < following)
    step = _step_before(samples, np.where(shown, first, samples.time_us[-1]))
    took = np.where(shown, first, intervals.start_us) - intervals.start_us - step / 2
    return np.where(shown, np.maximum(took, 0) / SECOND_US, np.nan)


def _step_before(samples: Samples, when: np.ndarray) -> np.ndarray:
    """From the sample before each of these samples to it (µs); NaN where it is so much longer than the usual step of
    the record that what lies between is not seen: the record has a hole there, or was taken more slowly.
    """
    at = np.maximum(np.searchsorted(samples.time_us, when), 1)
    step = (samples.time_us[at] - samples.time_us[at - 1]).astype(float)
    return np.where(step <= max(COARSE_US, MOST_STEPS * samples.step_us), step, np.nan)


def ramp_startups(memory: Samples, intervals: Intervals) -> np.ndarray:
    """Start to a memory of 700 MiB more, for trials that no other trial's start or end may disturb.

    The device's memory rises by the CUDA context early in the start-up, then by model and batch when training
    begins. The rise must reach 1000 MiB. No other trial may have started in the 60 s before, or start or end until
    20 s after the rise passed 700 MiB, or it could be that trial's. NaN elsewhere.
    """
    out = np.full(len(intervals.start_us), np.nan)
    if len(memory.time_us) < 2:
        return out
    marks = np.sort(np.concatenate([intervals.start_us, intervals.end_us]))
    following = np.append(marks, NEVER)[np.searchsorted(marks, intervals.start_us, "right")]
    until = np.minimum(np.minimum(following, intervals.end_us), intervals.start_us + LONGEST_US)
    low = np.searchsorted(memory.time_us, intervals.start_us)
    high = np.searchsorted(memory.time_us, until)
    starts = np.sort(intervals.start_us)
    earlier = np.append(LONG_AGO, starts)[np.searchsorted(starts, intervals.start_us)]
    settled = intervals.start_us - np.maximum(earlier, intervals.start_us - SETTLED_US) >= SETTLED_US
    candidates = np.flatnonzero(settled & (high - low >= 2) & (until - intervals.start_us > QUIET_US))
    for i in candidates[:: max(1, -(-len(candidates) // MAX_RAMPS))].tolist():
        used = memory.value[low[i] : high[i]]
        rise = used - np.minimum.accumulate(used)
        loaded = int(np.argmax(rise >= LOADED_MIB))
        passed = memory.time_us[low[i] + loaded]
        if rise.max() >= MIN_RISE_MIB and passed + QUIET_US <= until[i]:
            out[i] = np.maximum(passed - intervals.start_us[i] - _step_before(memory, passed) / 2, 0) / SECOND_US
    return out
