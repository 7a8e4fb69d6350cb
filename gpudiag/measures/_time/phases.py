"""In which phase each trial on a shared GPU is: start-up, work or done, from the activity of the GPU alone.

Where trials share a GPU its activity may be anybody's. What tells them apart is that start-ups of one search resemble
each other: the time from start to first work is log-normal with a width that is learned, work ends shortly before the
trial does, and work that begins beside other work raises the utilization. A hidden Markov model over the phases of all
trials at once gives the chance that an idle GPU waits for start-ups, and when each trial began to work. Its scale is
learned by expectation maximisation from several beginnings, of which the likeliest is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from gpudiag.measures._time.phase_chain import Posterior, fit_of, smooth
from gpudiag.measures._time.phase_states import Chances, Stretches
from gpudiag.measures._time.phase_steps import Steps
from gpudiag.measures._time.timeline import LIKELY

MOST_LANES = 5
"""More trials at once than this are not told apart: the work grows by 3 with each."""
BEGINNINGS_S = (12.0, 50.0, 200.0)
"""Typical start-ups from which the search for the likeliest begins."""
ROUNDS = 3
MORE = 3
LEARNED_FROM = 5
"""Stretches from which the scale is learned; more of them hardly change it."""
STRETCH = 300
AT_ONCE = 24
"""Stretches that are followed side by side: more need more memory and are hardly faster."""
BROAD, BROAD_S, BROAD_WIDTH = 0.1, 60.0, 1.5
"""Share of start-ups and tails that resemble no other, and how long these take."""
NARROWEST, WIDEST = 0.08, 1.0
TAIL_S, LONGEST_TAIL_S = 5.0, 30.0
FEWEST_TRIALS = 10
FEWEST = 5.0
KNOWN_WITHIN, KNOWN_WITHIN_S = 0.2, 2.0
BESIDE = 1.25
MOST_DOUBT = 0.09
"""Standard error of the logarithm of the typical start-up up to which it is said. In development runs of our
simulator 9 of 37 start-ups of single trials were off by a quarter and more where it was larger, 1 of 43 elsewhere."""
LARGEST_DOUBT = 0.7
NODES, WEIGHTS = (-math.sqrt(3.0), 0.0, math.sqrt(3.0)), (1 / 6, 2 / 3, 1 / 6)
"""Gauss and Hermite's: the mean over a normal distribution from three of its points."""
LEAST_SHOWN = 0.5
"""Share of the trials beginning to work beside others that raise the utilization. Where most do not, as on a GPU that
one trial nearly fills, start-ups that end on an idle GPU are believed too much: 11 medians that were told in simulated
runs of three worlds were 1 to 27 % short, and 48 where more are shown within 11 % (fresh seeds)."""
FEW = 0.05
"""Share of the time with trials below which it does not matter what an idle GPU waited for."""
MOST_STALLED = 0.1
"""Where work stalls for more of its time than this, the rise after a stall looks like the end of a start-up."""


@dataclass(frozen=True)
class PhaseScale:
    """What is learned, an entry a beginning: median start-up (s) and its width, mean tail (s), stalls begun and ended
    per second, how often a trial that begins to work raises the utilization, and how often one beside others does.
    """

    startup_s: np.ndarray
    width: np.ndarray
    tail_s: np.ndarray
    stall: np.ndarray
    resume: np.ndarray
    rises: np.ndarray
    shown: np.ndarray

    def one(self, place: int) -> PhaseScale:
        """One of the beginnings."""
        return PhaseScale(*(getattr(self, name)[[place]] for name in self.__dataclass_fields__))

    def times(self, factors: np.ndarray) -> PhaseScale:
        """One scale with other typical start-ups, an entry a factor."""
        many = PhaseScale(*(np.repeat(getattr(self, name), len(factors)) for name in self.__dataclass_fields__))
        return replace(many, startup_s=many.startup_s * factors)


@dataclass(frozen=True)
class Phases:
    """One GPU: steps of time with the chance that all trials start up, that all are done, and that some work (the rest:
    some start up while the others are done), and the expected number of those at work; by trial its start-up (s), NaN
    where it is not known within a fifth (90 % interval) or never ended; and the median that is learned from all GPUs
    together. Both are NaN where work stalls often, beginnings of work do not show beside others, or the log
    leaves the scale of start-ups, or what most of the idle time was, open.
    """

    start_us: np.ndarray
    all_start: np.ndarray
    all_done: np.ndarray
    some_work: np.ndarray
    working: np.ndarray
    startup_s: np.ndarray
    median_s: float

    def of_trials(self, count: int) -> Phases:
        """The same with a start-up for so many trials: the last ones may be in no step, where they took no time."""
        missing = np.full(count - len(self.startup_s), np.nan)
        return replace(self, startup_s=np.append(self.startup_s, missing)) if len(missing) else self

    def chances(self, when_us: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Chance at each time that all trials start up, that all are done, and that some work."""
        at = self._at(when_us)
        return self.all_start[at], self.all_done[at], self.some_work[at]

    def working_at(self, when_us: np.ndarray) -> np.ndarray:
        """Trials expected to be at work at each time."""
        return np.asarray(self.working[self._at(when_us)])

    def _at(self, when_us: np.ndarray) -> np.ndarray:
        return np.asarray(np.searchsorted(self.start_us, when_us, "right") - 1)


def find_phases(gpus: Sequence[Steps]) -> list[Phases | None]:
    """The phases on each GPU; None where one trial at a time is seen often enough, or more than five share it."""
    shared = [
        i
        for i, steps in enumerate(gpus)
        if (1 if steps.coarse else 2) <= steps.lanes <= MOST_LANES and steps.active.any()
    ]
    out: list[Phases | None] = [None] * len(gpus)
    if sum(int(gpus[i].trial.max()) + 1 for i in shared) < FEWEST_TRIALS:
        return out
    windows = [(i, *window) for i in shared for window in _windows(gpus[i])]
    some = windows[:: -(-len(windows) // LEARNED_FROM)]
    base = _rise_rate([gpus[i] for i in shared])
    scale = _learn(gpus, some, base)
    doubt = _doubt(gpus, some, scale, base)
    for i in shared:
        out[i] = _phases(gpus[i], [w[1:] for w in windows if w[0] == i], scale, doubt, base)
    return out


def _windows(steps: Steps) -> list[tuple[int, int, int, int]]:
    """First and last step of each stretch with its margins, and of its core: margins are as long as most trials."""
    n = len(steps.start_us)
    held = np.bincount(steps.trial[steps.trial >= 0])
    margin = min(int(np.quantile(held[held > 0], 0.9)), STRETCH) if n > 2 * STRETCH else 0
    borders = np.linspace(0, n, max(1, round(n / max(STRETCH, 2 * margin))) + 1).astype(int)
    return [
        (max(0, low - margin), min(n, high + margin), low, high)
        for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)
    ]


def _rise_rate(gpus: Sequence[Steps]) -> float:
    """Share of the time in which the utilization rises."""
    rises = sum(float(s.length_s[s.rise & s.seen].sum()) for s in gpus)
    return float(np.clip(rises / max(sum(float(s.length_s[s.seen].sum()) for s in gpus), 1.0), 0.01, 0.99))


def _learn(gpus: Sequence[Steps], windows: list[tuple[int, int, int, int, int]], base: float) -> PhaseScale:
    """The likeliest scale, by expectation maximisation from each beginning."""
    count, n = len(BEGINNINGS_S), len(windows)
    seen, ages = _stacked([gpus[w[0]].part(w[1], w[2]) for w in windows] * count)
    group = np.repeat(np.arange(count), n)
    scale = PhaseScale(
        np.array(BEGINNINGS_S), np.full(count, 0.5), np.full(count, TAIL_S), np.full(count, 1 / 2000),
        np.full(count, 1 / 30), np.full(count, max(0.5, base)), np.ones(count),
    )  # fmt: skip
    for _ in range(ROUNDS):
        scale, fit = _better(seen, ages, scale, group, base)
    scale = scale.one(int(np.argmax(fit)))
    seen, ages = _stacked([gpus[w[0]].part(w[1], w[2]) for w in windows])
    for _ in range(MORE):
        scale, _ = _better(seen, ages, scale, np.zeros(n, int), base)
    return scale


def _better(
    seen: Stretches, ages: _Ages, scale: PhaseScale, group: np.ndarray, base: float
) -> tuple[PhaseScale, np.ndarray]:
    """The scale after one more round, and how well each beginning fitted before it."""
    found = smooth(seen, _chances(seen, ages, scale, group, base))
    return _updated(seen, ages, found, scale, group, base), np.bincount(group, found.fit)


def _doubt(
    gpus: Sequence[Steps], windows: list[tuple[int, int, int, int, int]], scale: PhaseScale, base: float
) -> float:
    """Standard error of the logarithm of the typical start-up, from how fast the fit falls on both sides of it."""
    seen, ages = _stacked([gpus[w[0]].part(w[1], w[2]) for w in windows] * 3)
    group = np.repeat(np.arange(3), len(windows))
    beside = scale.times(np.array([1 / BESIDE, 1.0, BESIDE]))
    lower, best, upper = np.bincount(group, fit_of(seen, _chances(seen, ages, beside, group, base)))
    drop = float(best - (lower + upper) / 2)
    return math.log(BESIDE) / math.sqrt(2 * drop) if drop > 0 else math.inf


@dataclass(frozen=True)
class _Ages:
    """Seconds since the trial's start and until its end, at both borders of each step and lane; and rises."""

    since_s: tuple[np.ndarray, np.ndarray]
    left_s: tuple[np.ndarray, np.ndarray]
    rise: np.ndarray
    beside: np.ndarray


def _stacked(parts: Sequence[Steps]) -> tuple[Stretches, _Ages]:
    """Parts of timelines side by side, the shorter ones filled up with time without trials and samples."""
    lanes, steps = max(p.lanes for p in parts), max(len(p.start_us) for p in parts)

    def wide(name: str, fill: float, *, of_lanes: bool) -> np.ndarray:
        first = np.asarray(getattr(parts[0], name))
        shape = (lanes, len(parts), steps) if of_lanes else (len(parts), steps)
        out = np.full(shape, fill, first.dtype)
        for i, part in enumerate(parts):
            value = getattr(part, name)
            if of_lanes:
                out[: value.shape[0], i, : value.shape[1]] = value
            else:
                out[i, : len(value)] = value
        return out

    length = wide("length_s", 0.0, of_lanes=False)
    age, left = wide("age_s", 0.0, of_lanes=True), wide("left_s", 0.0, of_lanes=True)
    trial = wide("trial", -1, of_lanes=True)
    running = trial >= 0
    begins = running.copy()
    begins[:, :, 1:] &= trial[:, :, 1:] != trial[:, :, :-1]
    begins[:, :, 0] &= age[:, :, 0] <= 0
    seen = Stretches(length, wide("active", 0, of_lanes=False), wide("seen", 0, of_lanes=False), running, begins)
    rise, beside = wide("rise", 0, of_lanes=False), wide("beside", 0, of_lanes=False)
    return seen, _Ages((age, age + length), (left, left - length), rise, beside)


def _chances(seen: Stretches, ages: _Ages, scale: PhaseScale, group: np.ndarray, base: float) -> Chances:
    """The chances of each step under a scale."""
    startup, width = scale.startup_s[group][:, None], scale.width[group][:, None]
    before, after = (_longer(age, startup, width) for age in ages.since_s)
    begin = np.where(seen.running, 1 - after / before, 0.0)
    rises = scale.rises[group][:, None]
    lift = np.where(ages.rise, rises / base, (1 - rises) / (1 - base))
    tail = scale.tail_s[group][:, None]
    soon, sooner = (_within(left, tail) for left in ages.left_s)
    end = np.where(seen.running, 1 - sooner / soon, 0.0)
    stall = 1 - np.exp(-scale.stall[group][:, None] * seen.length_s)
    resume = 1 - np.exp(-scale.resume[group][:, None] * seen.length_s)
    return Chances(begin.clip(0, 1), end.clip(0, 1), stall, resume, 1 - before[:, :, 0], lift)


def _longer(age_s: np.ndarray, startup_s: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Chance of a start-up longer than this."""
    age = np.log(np.maximum(age_s, 1e-3))
    usual = scipy.special.ndtr((np.log(startup_s) - age) / width)
    return (1 - BROAD) * usual + BROAD * scipy.special.ndtr((np.log(BROAD_S) - age) / BROAD_WIDTH) + 1e-9


def _within(left_s: np.ndarray, tail_s: np.ndarray) -> np.ndarray:
    """Chance of a tail that fits into what is left."""
    left = np.maximum(left_s, 1e-3)
    usual = 1 - np.exp(-left / tail_s)
    return (1 - BROAD) * usual + BROAD * scipy.special.ndtr((np.log(left) - np.log(BROAD_S)) / BROAD_WIDTH) + 1e-9


def _updated(
    seen: Stretches, ages: _Ages, found: Posterior, scale: PhaseScale, group: np.ndarray, base: float
) -> PhaseScale:
    """The scale under which what was found is likeliest, a little held back by what is usual."""
    count = len(scale.startup_s)

    def per_group(values: np.ndarray) -> np.ndarray:
        return np.bincount(group, values.reshape(-1, *values.shape[-2:]).sum(axis=(0, 2)), count)

    begun, over = _passed(found.start, seen), _passed(found.start + found.work, seen)
    begun = np.where(seen.begins, np.where(seen.running, 1 - found.start, 0), begun)
    age = np.log(np.maximum((ages.since_s[0] + ages.since_s[1]) / 2, 0.5))
    n = per_group(begun)
    usual = begun * _resemblance(age, scale.startup_s[group][:, None], scale.width[group][:, None])
    weight = np.maximum(per_group(usual), 1e-9)
    mean = per_group(usual * age) / weight
    spread = np.sqrt(per_group(usual * (age - mean[group][:, None]) ** 2) / weight)
    enough = n >= FEWEST
    tail = (per_group(over * np.maximum(ages.left_s[0], 0)) + FEWEST * TAIL_S) / (per_group(over) + FEWEST)
    held = found.stalled * seen.length_s
    entered = np.maximum(np.diff(found.stalled, axis=1, prepend=0.0), 0.0)
    working = (found.work.max(axis=0) - found.stalled).clip(0) * seen.length_s
    entries, exposed, stalled_s = per_group(entered), per_group(working), per_group(held)
    rises = (per_group(begun * ages.rise) + 0.5) / (n + 1)
    beside = begun * ages.beside
    return replace(
        scale,
        startup_s=np.where(enough, np.exp(mean), scale.startup_s),
        width=np.where(enough, spread.clip(NARROWEST, WIDEST), scale.width),
        tail_s=tail.clip(1.0, LONGEST_TAIL_S),
        stall=(entries + 0.1) / (exposed + 200.0),
        resume=(entries + 0.2) / (stalled_s + 6.0),
        rises=np.where(enough, np.maximum(rises, base), scale.rises),
        shown=(per_group(beside * ages.rise) + 0.5) / (per_group(beside) + 0.5),
    )


def _resemblance(age: np.ndarray, startup_s: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Chance that a start-up of this logarithm of seconds is one of the usual ones."""
    usual = (1 - BROAD) / width * np.exp(-(((age - np.log(startup_s)) / width) ** 2) / 2)
    return usual / (usual + BROAD / BROAD_WIDTH * np.exp(-(((age - np.log(BROAD_S)) / BROAD_WIDTH) ** 2) / 2))


def _passed(still: np.ndarray, seen: Stretches) -> np.ndarray:
    """Chance that a trial leaves its phases within each step; ``still``: chance that it is in them at the end of it."""
    before = np.concatenate([still[:, :, :1], still[:, :, :-1]], axis=2)
    before = np.where(seen.begins, 1.0, before)
    return np.where(seen.running, np.maximum(before - still, 0.0), 0.0)


def _phases(
    steps: Steps, windows: list[tuple[int, int, int, int]], scale: PhaseScale, doubt: float, base: float
) -> Phases:
    """Chances of the steps, and when each trial began to work; where the scale is in doubt, the mean over it."""
    known = doubt <= MOST_DOUBT and scale.stall[0] <= MOST_STALLED * (scale.stall[0] + scale.resume[0])
    known &= scale.shown[0] >= LEAST_SHOWN
    nodes, weights = ((0.0,), (1.0,)) if doubt <= MOST_DOUBT else (NODES, WEIGHTS)
    factors = np.exp(np.array(nodes) * min(doubt, LARGEST_DOUBT))
    found = _chances_of_steps(steps, windows, scale.times(factors), base)
    of_steps, start = (np.average(parts, axis=0, weights=weights) for parts in found)
    known &= _mostly_clear(steps, of_steps)
    low_s, took_s, high_s = (_quantile(steps, start, share) for share in (0.95, 0.5, 0.05))
    sure = (high_s - low_s <= np.maximum(KNOWN_WITHIN * took_s, KNOWN_WITHIN_S)) & known
    median_s = float(scale.startup_s[0]) if known else math.nan
    all_start, all_done, some_work, working = of_steps
    startup_s = np.where(sure, took_s, np.nan)
    return Phases(steps.start_us, all_start, all_done, some_work, working, startup_s, median_s)


def _mostly_clear(steps: Steps, of_steps: np.ndarray) -> bool:
    """Whether less of the idle time is undecided than is start-up, or hardly any is: where most of it may be either
    start-up or tail, a scale that takes the one for the other fits as well.
    """
    held = steps.seen.astype(bool) & (steps.trial >= 0).any(axis=0)
    idle = held & ~steps.active.astype(bool)
    start, likeliest = of_steps[0] >= LIKELY, of_steps[:3].max(axis=0) >= LIKELY
    undecided_s = float(steps.length_s[idle & ~likeliest].sum())
    return undecided_s <= max(float(steps.length_s[idle & start].sum()), FEW * float(steps.length_s[held].sum()))


def _chances_of_steps(
    steps: Steps, windows: list[tuple[int, int, int, int]], scale: PhaseScale, base: float
) -> tuple[np.ndarray, np.ndarray]:
    """By scale and step the chance that all trials start up, that all are done, that some work, and how many are
    expected to work, (scales, 4, n); and (scales, lanes, n) that the lane's trial starts up.
    """
    count, n = len(scale.startup_s), len(steps.start_us)
    of_steps, start = np.zeros((count, 4, n)), np.zeros((count, steps.lanes, n))
    at_once = max(AT_ONCE // count, 1)
    for begin in range(0, len(windows), at_once):
        some = windows[begin : begin + at_once]
        group = np.repeat(np.arange(count), len(some))
        seen, ages = _stacked([steps.part(low, high) for low, high, _, _ in some] * count)
        found = smooth(seen, _chances(seen, ages, scale, group, base))
        for i, (which, (low, _, first, last)) in enumerate(zip(group.tolist(), some * count, strict=True)):
            core = slice(first - low, last - low)
            asked = (found.all_start[i], found.all_done[i], found.some_work[i], found.work[:, i].sum(axis=0))
            of_steps[which, :, first:last] = np.stack(asked)[:, core]
            start[which, :, first:last] = found.start[: steps.lanes, i, core]
    return of_steps, start


def _quantile(steps: Steps, start: np.ndarray, share: float) -> np.ndarray:
    """By trial the seconds after which the chance that it still starts up is at most ``share``; NaN if never."""
    out = np.full(int(steps.trial.max(initial=-1)) + 1, np.nan)
    for lane in range(steps.lanes):
        passed = np.flatnonzero((start[lane] <= share) & (steps.trial[lane] >= 0))
        trials, first = np.unique(steps.trial[lane][passed], return_index=True)
        out[trials] = steps.age_s[lane][passed[first]]
    return out
