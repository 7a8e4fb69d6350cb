"""What each trial had of its GPU: time, activity and energy, shared with the trials beside it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.measures._time.reduced import reduced
from gpudiag.measures._time.timeline import Intervals, MaybeTrials, Samples, Timeline
from gpudiag.spans import held_within

SHARE_ERROR_PCT = {1: 0.0, 2: 19.0, 3: 23.0, 4: 26.0}
"""Median error of one trial's share when a busy GPU is split evenly among 2, 3, 4 trials (METHODS 3). Cheap
trials are charged too much: in sum over a group of trials the error is 7-11 points of the group's share."""
ALONE_SHARE = 0.9
COLUMNS = ("gpu_s", "busy_gpu_s", "device_s", "alone_s", "alone_seen_s", "alone_util_s", "energy_kwh", "crowd_s")


def trial_shares(
    timeline: Timeline,
    intervals: Intervals | MaybeTrials,
    kwh: np.ndarray | None,
    chance: np.ndarray | float = 1.0,
) -> pd.DataFrame:
    """One row a life: seconds and kWh of one GPU that fall to it.

    Every piece of time is split evenly among the trials that run in it, so that the sum over trials is the
    time with a trial, exactly. A trial that ran there with a ``chance`` counts so much of one. Columns: gpu_s (share of
    the GPU's time), busy_gpu_s (of utilization x time), device_s (time of its life within the timeline), alone_s (the
    part of it alone), alone_seen_s (the observed part of that), alone_util_s (utilization x time of that), energy_kwh
    (NaN without power), crowd_s (integral of the number of trials over its life).
    """
    length, n = timeline.length_s, timeline.held
    seen = ~np.isnan(timeline.util_pct)
    busy = np.where(seen, timeline.util_pct / 100, 0.0) * length
    part = _part_of_each(timeline)
    alone = (n == 1) & (timeline.running == 1)
    energy = kwh if kwh is not None else np.broadcast_to(np.nan, len(n))
    products: tuple[tuple[np.ndarray, np.ndarray | float], ...] = (
        (length, part), (busy, part), (length, 1.0), (length, alone), (length, alone & seen), (busy, alone),
        (energy, part), (length, n),
    )  # fmt: skip
    first = np.searchsorted(timeline.start_us, intervals.start_us)
    last = np.searchsorted(timeline.start_us, intervals.end_us)
    each = zip(COLUMNS, products, strict=True)
    total = np.zeros(len(length) + 1)  # of one column after the other: of a long log each is large
    out = {}
    for name, (a, b) in each:
        np.cumsum(np.multiply(a, b, out=total[1:]), out=total[1:])
        out[name] = chance * (total[last] - total[first])
    return pd.DataFrame(out)


def spent_until_s(
    timeline: Timeline, intervals: Intervals | MaybeTrials, until_us: np.ndarray, chance: np.ndarray | float = 1.0
) -> np.ndarray:
    """Seconds of one GPU that fall to all of these trials together up to each time, the running ones included."""
    start, end = intervals.start_us, intervals.end_us
    times = np.concatenate([start, end, until_us])
    since = np.full(len(times), timeline.start_us[0] if len(timeline.start_us) else 0)
    worth = timeline.length_s * _part_of_each(timeline)
    begun, ended, now = np.split(
        held_within(since, times, timeline.start_us, timeline.end_us, worth), [len(start), 2 * len(start)]
    )
    weight = np.broadcast_to(chance, len(start)).astype(float)
    return _since(begun, weight, now) - _since(ended, weight, now)


def _since(edge_s: np.ndarray, weight: np.ndarray, now_s: np.ndarray) -> np.ndarray:
    """At each moment the sum over the edges that it has passed of what came since, by weight."""
    order = np.argsort(edge_s, kind="stable")
    edges, weights = edge_s[order], weight[order]
    passed = np.searchsorted(edges, now_s, "right")
    total, at = (np.append(0.0, np.cumsum(part)) for part in (weights, weights * edges))
    return np.asarray(now_s * total[passed] - at[passed])


def _part_of_each(timeline: Timeline) -> np.ndarray:
    return np.asarray(1 / np.maximum(timeline.held, 1))


def peak_while(samples: Samples, intervals: Intervals) -> np.ndarray:
    """Greatest sample between each start and end; NaN where there is none."""
    low = np.searchsorted(samples.time_us, intervals.start_us)
    high = np.searchsorted(samples.time_us, intervals.end_us)
    return reduced(np.maximum, samples.value, low, high)


def share_error_pct(crowd: np.ndarray) -> np.ndarray:
    """Median error of a share at a mean number of trials at once, rounded up."""
    level = np.clip(np.ceil(np.nan_to_num(crowd, nan=1.0) - 1e-9), 1, 4).astype(int)
    return np.array([SHARE_ERROR_PCT[k] for k in level])
