"""A clock that was set forward or back within a study: parts of it fit the telemetry at different places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gpudiag.alignment.places import Part, Places

MIN_STEP_S = 60.0
"""Start-ups that grow within a study, or a fit that is blurred, move the best place by less."""
MIN_TRIALS = 5
MOST_STRETCHES = 12
CHANGE = 1.25
"""A change of place must gain more than one stretch of trials can: telemetry fits a few trials at many places."""
STANDS_OUT = 0.5
"""A step is looked for where, at the place that fits all best, a stretch fits at most half as well as another."""
CLEAR_OF_OTHER = 0.5
"""Each part must fit at the place of the other at most half as well as at its own: trials that are all alike fit at
several places, and trials beside a load of their own at none (measured: docs/methods.md)."""
CLEAR_OF_RIVALS = 0.8
"""No other place near may fit as well as that, for a part that fits at several has no size of a step to give."""
MIN_SURE = 0.8
"""Share of the starts and ends that must lie in parts whose place is sure."""
JUST_S = 0.5
SLACK_S = 10.0
"""The places of parts are known to 5 s in 19 of 20 runs, with samples every 1 to 30 s (docs/methods.md)."""


@dataclass(frozen=True)
class Step:
    """The trials' clock was set at ``at_s`` of its own time: trials + ``before_s``, then + ``after_s``, fit telemetry.

    A clock that was set forward shows no start and no end for as long; ``at_s`` is just before the first after that.
    """

    at_s: float
    before_s: float
    after_s: float
    fits: tuple[float, float]

    @property
    def size_s(self) -> float:
        """By how much the clock was set forward; negative: back."""
        return self.before_s - self.after_s


def find_steps(places: Places) -> list[Step]:
    """Where the clock of the trials was set by a minute or more, as telemetry shows it."""
    stretches = places.stretches(MOST_STRETCHES, MIN_TRIALS)
    if not stretches:
        return []
    as_one = [places.fit(Part(low, high, places.best_s))[0] for low, high in stretches]
    if min(as_one) >= STANDS_OUT * max(as_one):
        return []
    borders = np.array([low for low, _ in stretches] + [stretches[-1][1]])
    along = max(map(_path, places.products(borders)))[1]
    parts = [Part(low, high, places.offset_s[at]) for at, (low, high) in zip(along, stretches, strict=True)]
    parts = list(_merged(parts))
    if len(parts) < 2:
        return []
    longest = max(parts, key=places.n_events)
    if not places.is_sure(longest):
        return []
    sure = [part for part in parts if places.is_sure(part, abs(part.offset_s - longest.offset_s) + MIN_STEP_S)]
    if sum(map(places.n_events, sure)) < MIN_SURE * 2 * len(places.start_s):
        return []
    steps = [_step(places, before, after) for before, after in pairwise(_merged(sure))]
    known = [step for step in steps if step is not None]
    return known if len(known) == len(steps) else []


def _path(products: np.ndarray) -> tuple[float, list[int]]:
    """How well stretches of trials fit, and where, where changing the place costs something (Viterbi 1967)."""
    cost = CHANGE * float(np.median(products.max(axis=1)))
    total, came = products[0], []
    for own in products[1:]:
        best = int(np.argmax(total))
        moved = total[best] - cost > total
        came.append(np.where(moved, best, np.arange(len(total))))
        total = np.where(moved, total[best] - cost, total) + own
    at = [int(np.argmax(total))]
    for back in reversed(came):
        at.append(int(back[at[-1]]))
    return float(total.max()), at[::-1]


def _merged(parts: Iterable[Part]) -> Iterator[Part]:
    """Parts that follow each other and lie within a minute of one place as one, at the place of the longer."""
    last: Part | None = None
    for part in parts:
        if last is None or abs(last.offset_s - part.offset_s) >= MIN_STEP_S:
            if last is not None:
                yield last
            last = part
        else:
            longer = max(last, part, key=lambda one: one.high_s - one.low_s)
            last = Part(last.low_s, part.high_s, longer.offset_s)
    if last is not None:
        yield last


def _step(places: Places, before: Part, after: Part) -> Step | None:
    """The step between two parts; None where either fits at the place of the other too.

    Parts keep their order. One that would lie later by a clock set back must be seen not to fit as the timestamps are.
    """
    borders, gain = places.gain(before.low_s, after.high_s, before.offset_s, after.offset_s)
    at_s, size_s = float(borders[int(np.argmax(gain))]), before.offset_s - after.offset_s
    until_s = at_s
    if size_s > 0:
        quiet = _quiet(places, at_s, size_s)
        if quiet is None:
            return None
        until_s, at_s = quiet
    before, after = replace(before, high_s=until_s), replace(after, low_s=at_s)
    within_s = abs(size_s) + MIN_STEP_S
    if not (places.is_sure(before, within_s) and places.is_sure(after, within_s)):
        return None
    if any(places.rival(part, 2 * within_s) > CLEAR_OF_RIVALS for part in (before, after)):
        return None
    own = (places.fit(before)[0], places.fit(after)[0])
    others = (replace(before, offset_s=after.offset_s), replace(after, offset_s=before.offset_s))
    if size_s < 0 and not all(places.sees(other) for other in others):
        return None
    if any(places.near(other) > CLEAR_OF_OTHER * fit for other, fit in zip(others, own, strict=True)):
        return None
    return Step(at_s, before.offset_s, after.offset_s, own)


def _quiet(places: Places, at_s: float, size_s: float) -> tuple[float, float] | None:
    """The time without any start or end, nearest to an instant, in which a clock may have been set forward by so much.

    None where there is none: such a clock leaves out as much time.
    """
    times = np.sort(np.concatenate([places.start_s, places.end_s]))
    long = np.flatnonzero(np.diff(times) >= size_s - SLACK_S)
    if not len(long):
        return None
    away = np.maximum(times[long] - at_s, 0) + np.maximum(at_s - times[long + 1], 0)
    nearest = long[int(np.argmin(away))]
    return (float(times[nearest]), float(times[nearest + 1]) - JUST_S) if away.min() <= 2 * MIN_STEP_S else None
