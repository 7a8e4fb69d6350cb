"""Forecasts as sections of a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpudiag.errors import NotMeasurable
from gpudiag.forecast.memory.capacity import MemoryCapacity
from gpudiag.forecast.parallelism.what_if import Forecast, what_if
from gpudiag.measures.base import GIVE_TRIALS
from gpudiag.report._render.blocks import Block, Figure, Folded, Masthead, Note
from gpudiag.report._render.show import Display
from gpudiag.report._render.shown import blocks_of
from gpudiag.report.format import quantity
from gpudiag.report.kinds import parallelism as kind
from gpudiag.report.kinds.memory import by_number
from gpudiag.run import Run

if TYPE_CHECKING:
    from gpudiag.plots import Picture

NOT_ASKED = "No other pruner was asked for: give one, e.g. `patient(hyperband(min_resource=3), patience=4)`."

Section = Callable[[Forecast], list[Block]]


def masthead(forecast: Forecast) -> list[Block]:
    """Which run this is about."""
    now = f"{forecast.now}, {quantity(forecast.rate.value, 'trials/h')}"
    return [Masthead(f"Capacity of {forecast.run}", (("Trials at once now", now),))]


def parallelism(forecast: Forecast) -> list[Block]:
    """Throughput, utilization and time by number of trials at once."""
    return [Figure("throughput"), *kind.parallelism(forecast)]


def models(forecast: Forecast) -> list[Block]:
    """What each model says."""
    return [kind.models(forecast)]


def memory(forecast: Forecast) -> list[Block]:
    """How much memory trials need, and how many fit."""
    return [Figure("memory_capacity"), *_part(forecast.capacity, dict(forecast.gaps).get("memory", ""))]


def startup(forecast: Forecast) -> list[Block]:
    """What a shorter start-up would bring."""
    text = kind.startup(forecast)
    return [Note(text) if text else Note(dict(forecast.gaps).get("parallelism", ""), "unknown")]


def batch(forecast: Forecast) -> list[Block]:
    """What a larger batch could bring, and how to find out."""
    return [Note(text) for text in kind.batch(forecast)]


def pruner(forecast: Forecast) -> list[Block]:
    """What another pruner would have done."""
    return [Figure("learning_curves"), *_part(forecast.pruner, dict(forecast.gaps).get("pruner", NOT_ASKED))]


def _part(made: object, reason: str) -> list[Block]:
    return list(blocks_of(made)) if made is not None else [Note(reason, "unknown")]


SECTIONS: dict[str, Section] = {
    section.__name__: section for section in (masthead, parallelism, models, memory, startup, batch, pruner)
}


@dataclass(frozen=True, eq=False)
class ForecastShow:
    """One attribute a section, for a notebook: ``shown(run).parallelism``. Without a forecast each says ``gap``."""

    run: str
    forecast: Forecast | None = field(repr=False)
    gap: str = ""

    def __getattr__(self, name: str) -> Display:
        if name not in SECTIONS:
            raise AttributeError(f"there is no section '{name}'; sections are {', '.join(SECTIONS)}")
        made = self.forecast
        if made is not None:
            return Display.of(name, lambda: SECTIONS[name](made), self._draw)
        blank = Masthead(f"Capacity of {self.run}", ()) if name == "masthead" else Note(self.gap, "unknown")
        return Display((blank,), self._draw)

    def __dir__(self) -> list[str]:
        return list(SECTIONS)

    def _draw(self, name: str) -> Picture | None:
        return draw(name, self.forecast) if self.forecast is not None else None


FIGURES = ("throughput", "memory_capacity", "learning_curves")


def section(make: Callable[[], Forecast]) -> list[Block]:
    """The part on trials at once for the report of a run; one line that says why where there is none."""
    try:
        made = make()
    except NotMeasurable as gap:
        # The section on trials says that there are none.
        return [] if GIVE_TRIALS in str(gap) else [Note(str(gap), "unknown")]
    parts = (Figure("throughput"), *kind.parallelism(made, best=not kind.memory_says(made)))
    return [Note(kind.answer(made)), Folded("Forecast by number of trials at once", parts)]


def memory_by_number(make: Callable[[], MemoryCapacity]) -> list[Block]:
    """How many trials the memory holds, for the section on memory; nothing where it cannot be told."""
    try:
        made = make()
    except NotMeasurable:
        return []
    return [] if made.reason else by_number(made)


def draw(name: str, forecast: Forecast) -> Picture | None:
    """The figure of that name; None where the forecast has nothing to draw."""
    from gpudiag.plots.forecast import THROUGHPUT  # with matplotlib, where something is drawn
    from gpudiag.plots.memory_capacity import MEMORY_CAPACITY
    from gpudiag.plots.replay import LEARNING_CURVES

    known = {
        "throughput": (THROUGHPUT, "forecast", forecast),
        "memory_capacity": (MEMORY_CAPACITY, "memory_capacity", forecast.capacity),
        "learning_curves": (LEARNING_CURVES, "replay", forecast.pruner),
    }
    plot, topic, made = known[name]
    try:
        return plot.picture(name, {topic: made})
    except NotMeasurable:
        return None


def shown(
    run: Run, parallel: str | Sequence[int | str] = "", *, pruner: str = "", restart_min: float | None = None
) -> ForecastShow:
    """What :func:`gpudiag.what_if` says, as sections; '' is its default. Raises ConfigError as it does."""
    try:
        made = what_if(run, None if parallel == "" else parallel, pruner=pruner or None, restart_min=restart_min)
    except NotMeasurable as gap:
        return ForecastShow(run.info.name, None, str(gap))
    return ForecastShow(run.info.name, made)
