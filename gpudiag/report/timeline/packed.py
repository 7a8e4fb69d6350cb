"""Lanes of a run as content for a page: times in ticks, values in steps, colors, texts; as detailed as is small."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from gpudiag.analysis import Analysis
from gpudiag.measures._time.timeline import CELLS
from gpudiag.plots._draw.causes import LABELS
from gpudiag.plots._draw.cell_names import cell_label
from gpudiag.plots._draw.palette import CELL_COLORS, STATE_COLORS, gpu_color, gpu_number
from gpudiag.report.format import is_dated, safe, zone
from gpudiag.report.noun import said
from gpudiag.report.timeline.buckets import Buckets, Raster
from gpudiag.report.timeline.lanes import Detail, Lanes, lanes_of
from gpudiag.report.timeline.marks import Mark
from gpudiag.report.timeline.samples import Channel, period_us
from gpudiag.report.timeline.sealed import sealed
from gpudiag.report.timeline.trainings import PARTS, part_of
from gpudiag.report.timeline.trials import Bars
from gpudiag.rules._engine.verdict import Verdict
from gpudiag.schema import OUTCOMES
from gpudiag.timezones import transitions

MOST_CHARS = 1_500_000
"""Of the packed text: a report of 10,000 trials stays well below 5 MB with it."""
MOST_HALVINGS = 8
STEPS = tuple(digit * 10.0**power for power in range(-2, 6) for digit in (1, 2, 5))
"""Steps to which values are rounded: the finest with which the greatest fits 16 bits."""
MOST_TICKS = 2**32 - 1


def packed(analysis: Analysis, findings: Iterable[Verdict] = ()) -> tuple[Lanes, str]:
    """The lanes and their text, with as much detail as MOST_CHARS allow. Raises NotMeasurable without data."""
    told, detail = tuple(findings), Detail()
    for _ in range(MOST_HALVINGS):
        lanes = lanes_of(analysis, told, detail)
        text = pack(lanes)
        if len(text) <= MOST_CHARS:
            break
        detail = detail.less()
    return lanes, text


def pack(lanes: Lanes) -> str:
    """The lanes as text."""
    return sealed(_content(lanes))


def _content(lanes: Lanes) -> dict[str, Any]:
    tick_us = tick_of(lanes.end_us - lanes.start_us)

    def ticks(us: np.ndarray) -> np.ndarray:
        """Times within the window: what begins before it or ends after it is cut there."""
        inside = np.clip(us, lanes.start_us, lanes.end_us) - lanes.start_us
        return np.round(inside / tick_us).astype(np.uint32)

    order = gpus_of(lanes)
    return {
        "label": lanes.label,
        "noun": lanes.noun,
        "start": lanes.start_us / 1e6,
        "span": (lanes.end_us - lanes.start_us) / 1e6,
        "tick": tick_us / 1e6,
        "zone": zone_offsets(lanes.timezone, lanes.start_us, lanes.end_us),
        "gpus": [{"name": safe(gpu), "color": gpu_color(gpu_number(gpu, i))} for i, gpu in enumerate(order)],
        "trials": _trials(lanes.bars, ticks) if lanes.bars else None,
        "trainings": {
            "parts": [{"key": key, "label": label, "color": color} for key, (label, color) in PARTS.items()],
            "causes": [{"label": label, "part": part_of(cause)} for cause, label in LABELS.items()],
            "rows": [
                {
                    "name": one.name,
                    "start": ticks(one.start_us),
                    "end": ticks(one.end_us),
                    "cause": one.cause,
                    "shares": [np.round(255 * part).clip(0, 255).astype(np.uint8) for part in one.shares.T],
                }
                for one in lanes.courses
            ],
        },
        "ledger": {
            "cells": [
                {
                    "key": cell,
                    "label": said(cell_label(cell, has_trials=lanes.has_trials), lanes.noun),
                    "color": CELL_COLORS[cell],
                }
                for cell in CELLS
            ],
            "rows": [
                {
                    "gpu": order.index(one.gpu),
                    "start": ticks(one.start_us),
                    "end": ticks(one.end_us),
                    "cell": one.cell,
                }
                for one in lanes.ribbons
            ],
        },
        "width": lanes.raster.width_us / 1e6,
        "finest": max(lanes.raster.width_us, period_us(lanes.channels)) / 1e6,
        "channels": [channel_content(channel, lanes.raster, order) for channel in lanes.channels],
        "events": [_mark(mark, lanes) for mark in lanes.events],
        "findings": _findings(lanes),
        "notes": list(lanes.notes),
    }


def gpus_of(lanes: Lanes) -> list[str]:
    """The GPUs in the order in which the content numbers them."""
    gpus = [gpu for channel in lanes.channels for gpu, _ in channel.samples]
    return list(dict.fromkeys([*(ribbon.gpu for ribbon in lanes.ribbons), *gpus]))


def tick_of(span_us: int) -> int:
    """A power of ten microseconds, from a millisecond on, in which 32 bits hold the span."""
    tick = 1000
    while span_us / tick > MOST_TICKS:
        tick *= 10
    return tick


def zone_offsets(timezone: str, start_us: int, end_us: int) -> dict[str, Any]:
    """The name of the zone, and from which second after the start on which offset (s) holds."""
    first, last = (datetime.fromtimestamp(us / 1e6, UTC) for us in (start_us, end_us))
    where = zone(timezone if is_dated(first) else "UTC")
    offset = first.astimezone(where).utcoffset() or timedelta(0)
    offsets = [[0.0, offset.total_seconds()]]
    for moment, change in transitions(where, first, last):
        offset += change
        offsets.append([moment.timestamp() - start_us / 1e6, offset.total_seconds()])
    return {"name": str(where), "offsets": offsets}


def _trials(bars: Bars, ticks: Any) -> dict[str, Any]:
    return {
        "start": ticks(bars.start_us),
        "end": ticks(bars.end_us),
        "worker": bars.worker.astype(np.uint16 if len(bars.workers) < 2**16 else np.uint32),
        "state": bars.state,
        "open": bars.open,
        "names": bars.names,
        "columns": [{"name": column.name, "texts": column.texts, "at": column.at} for column in bars.columns],
        "workers": bars.workers,
        "states": [{"name": state, "color": STATE_COLORS[state]} for state in OUTCOMES],
    }


def channel_content(channel: Channel, raster: Raster, order: list[str]) -> dict[str, Any]:
    """One quantity in the buckets of a raster; ``order`` numbers the GPUs."""
    buckets = channel.buckets(raster)
    highest = max((float(np.nanmax(one.high, initial=0)) for one in buckets.values()), default=0.0)
    step = next((step for step in STEPS if highest / step < 2**16 - 1), STEPS[-1])
    return {
        "name": channel.name,
        "unit": channel.unit,
        "factor": step / channel.scale,
        "top": channel.top,
        "rows": [{"gpu": order.index(gpu), **_steps(one, step)} for gpu, one in buckets.items()],
    }


def _steps(buckets: Buckets, step: float) -> dict[str, np.ndarray]:
    """Mean, and how far the least and the greatest lie from it, in whole steps; 0 where ``seen`` is 0."""
    low, mean, high = (np.round(np.nan_to_num(v) / step) for v in (buckets.low, buckets.mean, buckets.high))
    parts = {"mean": mean, "below": mean - low, "above": high - mean}
    return {**{name: part.clip(0).astype(np.uint16) for name, part in parts.items()}, "seen": buckets.seen}


def _mark(mark: Mark, lanes: Lanes) -> list[Any]:
    """Start and end in seconds of the window, and the text."""
    first, last = ((us - lanes.start_us) / 1e6 for us in (mark.start_us, mark.end_us))
    return [round(first, 3), round(last, 3), mark.text]


def _findings(lanes: Lanes) -> list[dict[str, Any]]:
    """A finding and all its places."""
    out: dict[str, dict[str, Any]] = {}
    for mark in lanes.findings:
        start, end, text = _mark(mark, lanes)
        one = out.setdefault(mark.rule, {"rule": mark.rule, "level": mark.level, "text": text, "places": []})
        one["places"].append([start, end])
    return list(out.values())
