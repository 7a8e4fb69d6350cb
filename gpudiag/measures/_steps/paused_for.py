"""What a pause of a training went into: the time that its log states, and what it leaves open."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from gpudiag.measures._steps.clocks import WHOLE_S
from gpudiag.measures._steps.courses import FINE_TOLD_S, TOLD_S
from gpudiag.measures._time.weighted import weighted_quantiles
from gpudiag.schema import LASTING

OTHER, BOTH = "pause", "evaluation_checkpoint"
"""Work of which the log tells nothing, and time that may be of an evaluation as of a checkpoint."""
FASTEST = 0.05


class Part(NamedTuple):
    """Seconds of a pause for one kind of work: at least ``low_s``, at most ``high_s``, likeliest ``s``."""

    work: str
    s: float
    low_s: float
    high_s: float


def parts_of(paused_s: float, since: str, stated_s: Mapping[str, float], *, coarse: bool) -> list[Part]:
    """The parts of a pause in which the log tells of ``since``; the likeliest add up to it, but for less than two
    seconds that nothing explains beside stated times, or a fifth of a second unless its clock is ``coarse``.

    A stated time holds as far as the pause is long. Where they are so much longer than it, the work went on beside
    the steps, and how much of it lies in the pause is open. What they leave is of the work whose time is not stated, or
    of both; the log may as well not tell of what it is.
    """
    slack_s = TOLD_S if coarse else FINE_TOLD_S
    told = [work for work in LASTING if work in since.split(", ")]
    if not told:
        return [Part(OTHER, paused_s, paused_s, paused_s)]
    stated = {work: min(stated_s[work], paused_s) for work in told if stated_s[work] > 0}
    beside = sum(stated_s[work] for work in stated) > paused_s + slack_s
    fitting = min(paused_s / sum(stated.values()), 1.0) if stated else 1.0
    parts = [
        Part(work, fitting * seconds, 0.0 if beside else fitting * seconds, seconds if beside else fitting * seconds)
        for work, seconds in stated.items()
    ]
    rest_s = max(paused_s - sum(part.s for part in parts), 0.0)
    open_ = [work for work in told if work not in stated]
    if open_:
        most_s = paused_s - sum(part.low_s for part in parts)
        return [*parts, Part(open_[0] if len(open_) == 1 else BOTH, rest_s, 0.0, most_s)]
    return [*parts, Part(OTHER, rest_s, rest_s, rest_s)] if rest_s >= slack_s else parts


def pause_parts(row: Mapping[str, Any]) -> tuple[Part, ...]:
    """The parts of the pause in an interval of a course."""
    stated_s = {work: float(row[f"{work}_s"]) for work in LASTING}
    return tuple(parts_of(float(row["paused_s"]), row["since"], stated_s, coarse=row["tick_s"] >= WHOLE_S))


def held_s(parts: Iterable[Part], work: str) -> tuple[float, float]:
    """Seconds that went into an evaluation or into a checkpoint, at least and at most."""
    own = [part for part in parts if part.work in (work, BOTH)]
    return float(sum(part.low_s for part in own)), float(sum(part.high_s for part in own))


def between_epochs_s(course: pd.DataFrame) -> float:
    """The most that a training can have waited for the first batches of epochs behind the first: the time where these
    begin beyond that of as many of its fastest steps, but for evaluations and checkpoints of stated length. NaN where
    no line tells of epochs, or most of them tell of another than the line before.
    """
    begins = course["new_epoch"].to_numpy(bool)
    rows, others = course[begins], course[course["usual"] & ~begins]
    if not begins.any() or 2 * begins.sum() > len(course) or rows["took_s"].isna().any():
        return math.nan
    (fastest_s,) = weighted_quantiles(others["each_s"], others["n"], (FASTEST,))
    parts = [part for row in rows.to_dict("records") if row["paused_s"] for part in pause_parts(row)]
    named_s = sum(part.low_s for part in parts if part.work in LASTING)
    return max(float((rows["took_s"] - rows["n"] * fastest_s).clip(lower=0).sum()) - named_s, 0.0)
