"""Whether a study fits the telemetry at one place from its first trials to its last."""

from __future__ import annotations

from dataclasses import replace

from gpudiag.alignment.places import Part, Places

MOST_STRETCHES, MIN_TRIALS = 6, 8
MISFIT, ELSEWHERE = 0.15, 0.6
"""Shares of the best fit of a stretch at the place of all: the first or last trials fit there by less than the one, and
at another place by more than the other. Starts and ends of a study stand out from the time beside it: of 60 healthy
runs all but one had 0.35 of the best fit there, and that one 0.16 and no fit elsewhere."""


def misfit(places: Places, offset_s: float) -> str:
    """Which trials, ``first`` or ``last``, fit the telemetry elsewhere and not where all were found to; '' for none.

    A clock that was set within the study leaves that, also where neither its instant nor its size can be told. Where
    the telemetry does not have these trials at that place, only their fit as the timestamps are counts against it.
    """
    parts = [Part(low, high, offset_s) for low, high in places.stretches(MOST_STRETCHES, MIN_TRIALS)]
    fits = [places.near(part) for part in parts]
    for which, at in (("first", 0), ("last", -1)) if parts else ():
        part = parts[at]
        if fits[at] < MISFIT * max(fits):
            others = [0.0] * (offset_s != 0) + ([places.best_of(part)] if places.sees(part) else [])
            if max((places.near(replace(part, offset_s=one)) for one in others), default=0.0) > ELSEWHERE * max(fits):
                return which
    return ""
