"""A forecast: the answer first, then what it rests on."""

from __future__ import annotations

from gpudiag.forecast.parallelism.what_if import Forecast
from gpudiag.report._render.blocks import Block, Heading, Note
from gpudiag.report._render.shown import blocks_of, shown_as
from gpudiag.report.kinds.memory import to_run
from gpudiag.report.kinds.parallelism import (
    WITH_ALL,
    answer,
    batch,
    gaps,
    is_answered,
    memory_says,
    models,
    parallelism,
    startup,
)

OPEN = "Which number of trials at once is fastest does not follow from this log; the table has what it leaves open."


MORE = "How the models, start-up, a larger batch and memory come to it: --all."


def screen(forecast: Forecast) -> list[Block]:
    """The answer and the numbers of trials at once, and the pruner that was asked for."""
    blocks = [*_answered(forecast), *parallelism(forecast, crashes=WITH_ALL)]
    blocks += [] if forecast.pruner is None else blocks_of(forecast.pruner)
    return [*blocks, *gaps(forecast), Note(MORE)]


@shown_as.register
def tell(forecast: Forecast) -> list[Block]:
    """How many to run at once, what is now, each number of trials at once, and how far the forecast can be trusted."""
    blocks = [*_answered(forecast), *parallelism(forecast), models(forecast)]
    if text := startup(forecast):
        blocks += [Heading("Shorter start-up"), Note(text)]
    blocks += [Heading("Larger batch"), *map(Note, batch(forecast))]
    for part in (forecast.capacity, forecast.pruner):
        if part is not None:
            blocks += blocks_of(part)
    return [*blocks, *gaps(forecast)]


def _answered(forecast: Forecast) -> list[Block]:
    capacity = forecast.capacity
    by_memory = to_run(capacity, forecast.now) if capacity is not None and memory_says(forecast) else ""
    by_speed = answer(forecast) if is_answered(forecast) else OPEN
    return [Heading(f"Forecast for {forecast.run}"), Note(by_memory or by_speed)]
