"""What a widget asks the kernel for while it is zoomed: the samples of a stretch, finer than the page has them."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from gpudiag.report.timeline.buckets import Raster
from gpudiag.report.timeline.lanes import Lanes
from gpudiag.report.timeline.packed import channel_content, gpus_of
from gpudiag.report.timeline.samples import Channel, period_us

MOST_BUCKETS = 4_000
"""Of one GPU in one answer: two for each pixel of a wide screen, which shows half of what is sent."""
MOST_VALUES = 450_000
"""Of one answer, all GPUs and quantities together: about 1 MiB before it is deflated."""
MARGIN = 0.5
"""Sent on either side of the stretch, so that panning a little asks nothing."""


def finer(lanes: Lanes, a: object, b: object) -> dict[str, Any] | None:
    """Buckets of the samples from ``a`` to ``b`` (seconds on the axis of the lanes) and about them. Where it is said
    to be ``exact``, each sample has a bucket of its own. None where there is no such stretch, or nothing finer.
    """
    stretch = _stretch(lanes, a, b)
    if stretch is None:
        return None
    low, high = stretch
    channels = [channel.between(low, high) for channel in lanes.channels]
    shortest = _shortest_us(channels)
    if not shortest:
        return None
    n_rows = sum(len(channel.samples) for channel in channels)
    most = min(max(MOST_VALUES // (3 * n_rows), 1), MOST_BUCKETS)
    raster = Raster.of(low, high, 2 * shortest, most)
    if raster.width_us >= lanes.raster.width_us:
        return None
    order = gpus_of(lanes)
    return {
        "from": (low - lanes.start_us) / 1e6,
        "to": (high - lanes.start_us) / 1e6,
        "width": raster.width_us / 1e6,
        "finest": max(raster.width_us, period_us(lanes.channels)) / 1e6,
        "exact": 2 * raster.width_us <= shortest,
        "channels": [channel_content(channel, raster, order) for channel in channels],
    }


def _stretch(lanes: Lanes, a: object, b: object) -> tuple[int, int] | None:
    """Its borders (µs) with the margin; None where it is none, or lies beside the lanes."""
    if not (isinstance(a, Real) and isinstance(b, Real) and math.isfinite(a) and math.isfinite(b)):
        return None
    span_s = (lanes.end_us - lanes.start_us) / 1e6
    first, last = (float(np.clip(float(at), 0.0, span_s)) for at in (a, b))
    if not first < last:
        return None
    margin = MARGIN * (last - first)
    low, high = (lanes.start_us + round(at * 1e6) for at in (first - margin, last + margin))
    return (low, high) if low < high else None


def _shortest_us(channels: list[Channel]) -> int:
    """The time for which the shortest-lived sample stands; 0 without samples."""
    lasting = [(part["end_us"] - part["start_us"]).to_numpy() for channel in channels for _, part in channel.samples]
    return min((int(one[one > 0].min()) for one in lasting if (one > 0).any()), default=0)
