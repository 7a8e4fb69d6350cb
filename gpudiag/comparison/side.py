"""One run as a side of a comparison: its profiles, its items and the time that it was meant to work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from gpudiag.analysis import Analysis
from gpudiag.errors import InputError
from gpudiag.load import RunLike, as_run
from gpudiag.measures import MEASURES
from gpudiag.measures._time.expected import trials_window
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures.base import facts
from gpudiag.memo import Memo
from gpudiag.plain_data import Scalar
from gpudiag.run import Run
from gpudiag.schema import ADDED, FINISHED

LEAST_UNIQUE = 0.8
"""Share of names that must differ for names to tell which item is which."""


@dataclass(frozen=True, eq=False)
class Side:
    """A run, by the name that sentences give it, and what was measured of it."""

    analysis: Analysis
    name: str
    memo: Memo = field(default_factory=Memo, init=False, repr=False)

    @property
    def run(self) -> Run:
        return self.analysis.run

    def get(self, topic: str) -> Any | None:
        """The profile of a topic, None where the run lacks the data."""
        return self.analysis.get(_measure(topic))

    def value(self, fact: str) -> Scalar:
        """The value of a fact by its key, as the document of a diagnosis holds it; None where it is not known."""
        topic, _, name = fact.partition(".")
        profile = self.get(topic) if topic in _topics() else None
        held = facts(profile).get(name) if profile is not None else None
        return held["value"] if held is not None else None

    @cached_property
    def items(self) -> pd.DataFrame:
        """Name (trial's own, else its number), state, start, end, duration_s of every trial that ran, by start."""
        intervals = intervals_of(self.run)
        frame = intervals[["state", "start", "end", "duration_s"]].copy()
        frame.insert(0, "name", self.run.trials["name"].to_numpy() if self.named else intervals["trial"].astype(str))
        frame["study"], frame["trial"] = intervals["study"], intervals["trial"]
        return frame[frame["state"] != ADDED].sort_values(["start", "end"], kind="stable").reset_index(drop=True)

    @property
    def named(self) -> bool:
        """True if the items have names that tell them apart: only then can an item be found in another run."""
        if "name" not in self.run.trials or self.run.trials.empty:
            return False
        names = self.run.trials["name"]
        return bool(names.notna().all() and names.nunique() >= LEAST_UNIQUE * len(names))

    @cached_property
    def finished(self) -> pd.DataFrame:
        """The items that came to an end of any kind."""
        return self.items[self.items["state"].isin(FINISHED)]

    @cached_property
    def results(self) -> pd.DataFrame:
        """The finished items that did not fail: a failure is no result, and its time is a cost of those that are."""
        return self.finished[self.finished["state"] != "FAIL"]

    @cached_property
    def window(self) -> tuple[int, int] | None:
        """First start to last end of the items, in microseconds on the telemetry's clock; None where not joined."""
        return trials_window(self.run)

    @cached_property
    def wall_s(self) -> float:
        """First start (where no start is known, first end) to last end of the items; NaN where not known."""
        first = self.items["start"].min() if self.items["start"].notna().any() else self.items["end"].min()
        return float((self.items["end"].max() - first).total_seconds())

    @property
    def at_once(self) -> float:
        """Finished items at work, mean over the wall time, pauses included; NaN unknown."""
        return float(self.finished["duration_s"].sum(min_count=1)) / self.wall_s if self.wall_s > 0 else float("nan")

    @property
    def has_starts(self) -> bool:
        return bool(self.finished["start"].notna().any())

    @property
    def parallel(self) -> float:
        """Trials asked to run at once, else the mean number that did; NaN unknown."""
        asked = self.run.info.settings.parallel
        found = self.get("parallelism")
        return float(asked) if asked else float(found.effective) if found is not None else float("nan")


def as_side(given: RunLike, role: str) -> Side:
    """A run, a diagnosis or the path of a run as a side. Raises InputError where it holds nothing to compare."""
    known = getattr(given, "analysis", None)
    analysis = known if isinstance(known, Analysis) else Analysis(as_run(given))
    side = Side(analysis, analysis.run.info.name)
    if side.run.trials.empty and side.run.gpu.empty and side.run.steps.empty:
        name = " ".join(side.name.split())  # a sentence is one line, whatever a run is called
        raise InputError(
            f"the {role} '{name}' holds neither trials, GPU telemetry nor steps of a training, so there is nothing to "
            "compare; check its inputs with gpudiag inspect."
        )
    return side


def _topics() -> dict[str, Callable[[Run], Any]]:
    return {measure.__name__.removeprefix("measure_"): measure for measure in MEASURES}


def _measure(topic: str) -> Callable[[Run], Any]:
    return _topics()[topic]
