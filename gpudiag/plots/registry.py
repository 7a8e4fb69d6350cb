"""Every kind of picture by name, and drawing them from the profiles of a diagnosis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudiag.errors import NotMeasurable
from gpudiag.plots._draw.fit import WIDTH_IN
from gpudiag.plots._draw.picture import Picture, Plot
from gpudiag.plots.clock import alt_clock, plot_clock
from gpudiag.plots.costs import alt_progress, plot_progress
from gpudiag.plots.duration_ecdf import alt_duration_ecdf, plot_duration_ecdf
from gpudiag.plots.learning_curves import alt_learning_curves, plot_learning_curves
from gpudiag.plots.ledger import alt_ledger, alt_waterfall, plot_ledger, plot_waterfall
from gpudiag.plots.memory import alt_memory, plot_memory
from gpudiag.plots.memory_by_trial import alt_memory_by_trial, plot_memory_by_trial
from gpudiag.plots.parallel_coordinates import alt_parallel_coordinates, plot_parallel_coordinates
from gpudiag.plots.parallelism import alt_concurrency, alt_gaps, plot_concurrency, plot_gaps
from gpudiag.plots.power import alt_power, plot_power
from gpudiag.plots.power_use import alt_power_use, plot_power_use
from gpudiag.plots.pruning import alt_prune_steps, plot_prune_steps
from gpudiag.plots.timeline import alt_timeline, plot_timeline
from gpudiag.plots.trials import alt_durations, plot_durations
from gpudiag.plots.utilization import alt_utilization, plot_utilization
from gpudiag.plots.utilization_map import alt_utilization_map, plot_utilization_map

PLOTS: dict[str, Plot] = {
    "timeline": Plot(
        plot_timeline,
        alt_timeline,
        "Each bar is a trial in the slot that it held; hatched green bars have no recorded end and reach to the "
        "latest instant that they can have run. Blank stretches of the curves were not observed.",
    ),
    "ledger": Plot(
        plot_ledger,
        alt_ledger,
        "Every second of every GPU is in exactly one cell. Stalled: a trial was past its start-up and the GPU idle. "
        "Start-up or tail only: every trial on the GPU was then starting up or winding down.",
    ),
    "waterfall": Plot(
        plot_waterfall,
        alt_waterfall,
        "What stood between all observed time and the utilization that was measured. A bar is the part of its cell "
        "in which no kernel ran.",
    ),
    "utilization": Plot(
        plot_utilization,
        alt_utilization,
        "Left: share of observed time at or below 10 %, between, and at 50 % or more. Beside it the spread over "
        "time. A busy GPU had a kernel running; that does not say how much of the chip it used.",
    ),
    "utilization_map": Plot(
        plot_utilization_map,
        alt_utilization_map,
        "A row is a GPU: dark was idle, bright was busy, white was not observed. Look for rows that stay dark and for "
        "columns in which all GPUs wait at once.",
    ),
    "memory": Plot(
        plot_memory,
        alt_memory,
        "Left: the greatest use of each GPU's memory against its capacity. Frameworks keep memory that they have "
        "freed, so use can overstate need.",
    ),
    "memory_by_trial": Plot(
        plot_memory_by_trial,
        alt_memory_by_trial,
        "Each block is a trial, as high as the memory that its process took, that it was seen to hold alone, or that "
        "its end freed. Grey was in use and cannot be told apart. Between line and capacity more trials would fit.",
    ),
    "concurrency": Plot(
        plot_concurrency,
        alt_concurrency,
        "Left: trials that ran at the same time. Right: how much of the time with at least one trial was spent at "
        "each level. Steps below the dashed line are slots that stood empty.",
    ),
    "gaps": Plot(
        plot_gaps,
        alt_gaps,
        "Each dot is the wait between the end of a trial and the start of the next in its slot. Dots that climb "
        "with time point at a sampler or storage that slows down as the study grows.",
    ),
    "durations": Plot(
        plot_durations,
        alt_durations,
        "Each dot is a trial; the box holds the middle half of its state and the thick stroke is the median.",
    ),
    "duration_ecdf": Plot(
        plot_duration_ecdf,
        alt_duration_ecdf,
        "Share of the trials of a state that took at most so long. A curve that climbs at once at the left is trials "
        "that end as soon as they begin; a long foot at the top right is a few that hold up the rest.",
    ),
    "parallel_coordinates": Plot(
        plot_parallel_coordinates,
        alt_parallel_coordinates,
        "Each line is a COMPLETE trial; dark ones took long. A parameter at which dark lines meet in one place is what "
        "makes trials long.",
    ),
    "prune_steps": Plot(
        plot_prune_steps,
        alt_prune_steps,
        "How far pruned trials came. A pile at the earliest possible step means that trials are cut as soon as the "
        "pruner may cut them.",
    ),
    "learning_curves": Plot(
        plot_learning_curves,
        alt_learning_curves,
        "Each line is a trial as it reported; a triangle is where it was pruned, a cross where it failed. Pruned "
        "curves that were still moving like those of COMPLETE trials speak for a more patient pruner.",
    ),
    "power": Plot(
        plot_power,
        alt_power,
        "Power that each board drew against its limit. Readings that the board cannot produce are crosses beyond "
        "the scale and count in no figure.",
    ),
    "power_use": Plot(
        plot_power_use,
        alt_power_use,
        "Dark is where the time was spent. Lower right is busy but not used well: a kernel always runs and the board "
        "draws little, as with small batches or waits for memory; the number is its share of the busy time. Upper "
        "right is work that fills the chip.",
    ),
    "progress": Plot(
        plot_progress,
        alt_progress,
        "What the search got for its GPU time. Long flat stretches bought no better value.",
    ),
    "clock": Plot(
        plot_clock,
        alt_clock,
        "How well changes of activity and memory fit the starts and ends of the trials if their clock is moved by so "
        "much. One line that stands out is evidence; several of like height are none.",
    ),
}
"""Kinds of picture in the order of a report."""


def draw(name: str, profiles: Mapping[str, Any], *, timezone: str = "UTC", width_in: float = WIDTH_IN) -> Picture:
    """The picture of that name from profiles by topic; ``timezone`` is an IANA name for its time axis.

    ``width_in`` is its width in inches: 9 for a page or a slide, 3.4 for one of two columns.

    Raises KeyError for a name that PLOTS does not have, and NotMeasurable if a profile is missing or
    holds nothing to draw.
    """
    return PLOTS[name].picture(name, profiles, timezone=timezone, width_in=width_in)


def draw_all(profiles: Mapping[str, Any], *, timezone: str = "UTC") -> dict[str, Picture]:
    """Every picture that these profiles allow, by name, in the order of a report."""
    pictures: dict[str, Picture] = {}
    for name in PLOTS:
        try:
            pictures[name] = draw(name, profiles, timezone=timezone)
        except NotMeasurable:
            continue
    return pictures
