"""What is known of one run: each profile, forecast, capacity and replay is made when first asked for, and kept.

    analysis = Analysis(run)
    analysis[measure_utilization]     # its profile
    analysis.forecast(4)              # what 4 trials at once would bring

Rules, advice, plots, reports and comparisons of a run share one, also from several threads. It looks at the tables of
the run as they are when something is first asked: after an edit in place, make another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gpudiag.errors import NotMeasurable
from gpudiag.faults import Failed, Fault, attempt
from gpudiag.measures.base import Measure
from gpudiag.memo import MemoRun
from gpudiag.run import Run

if TYPE_CHECKING:
    from gpudiag.forecast.memory.capacity import MemoryCapacity
    from gpudiag.forecast.parallelism.what_if import Forecast
    from gpudiag.forecast.pruning.result import PrunerReplay
    from gpudiag.measures._trials.pruner_spec import PrunerSpec


class Analysis:
    """``given``: the run. ``run``: a copy of it, of the same tables, that keeps what is made of it.

    ``made``: profiles that are known already, by measure.
    """

    def __init__(self, run: Run, made: Mapping[Measure, Any] | None = None) -> None:
        self.given = run
        self.run = MemoRun.fresh(run)
        for measure, profile in (made or {}).items():
            self.run.memo.keep(("profile", measure), profile)

    def __getitem__(self, measure: Measure) -> Any:
        """The profile. Raises NotMeasurable, the same one each time: Failed where the measure itself failed."""
        return self.run.memo.once(("profile", measure), lambda: self._measured(measure))

    def _measured(self, measure: Measure) -> Any:
        topic = measure.__name__.removeprefix("measure_")
        made = attempt(f"measure {topic}", lambda: measure(self.run), measure.__module__)
        if isinstance(made, Fault):
            raise Failed(made)
        return made

    @property
    def failed(self) -> tuple[Fault, ...]:
        """Faults of the measures asked for so far."""
        return tuple(error.fault for error in self.run.memo.errors if isinstance(error, Failed))

    def get(self, measure: Measure) -> Any | None:
        """The profile, or None where the run lacks the data."""
        try:
            return self[measure]
        except NotMeasurable:
            return None

    def profiles(self, measures: Iterable[Measure]) -> tuple[dict[str, Any], dict[str, NotMeasurable]]:
        """Profiles by topic, and by topic why there is none."""
        made: dict[str, Any] = {}
        missing: dict[str, NotMeasurable] = {}
        for measure in measures:
            topic = measure.__name__.removeprefix("measure_")
            try:
                made[topic] = self[measure]
            except NotMeasurable as gap:
                missing[topic] = gap
        return made, missing

    def forecast(self, *parallel: int) -> Forecast:
        """What so many trials at once would bring, by default some about the present number.

        Raises NotMeasurable as :func:`gpudiag.what_if` does.
        """
        from gpudiag.forecast.parallelism.what_if import what_if

        return self.run.memo.once(("forecast", parallel), lambda: what_if(self.run, parallel or None))

    @property
    def capacity(self) -> MemoryCapacity:
        """How many trials fit into memory. Raises NotMeasurable as :func:`gpudiag.memory_capacity` does."""
        from gpudiag.forecast.memory.capacity import memory_capacity

        return self.run.memo.once("capacity", lambda: memory_capacity(self.run))

    def replay(self, pruner: PrunerSpec) -> PrunerReplay:
        """What another pruner would have done. Raises NotMeasurable or ConfigError as :func:`gpudiag.replay_pruner`
        does.
        """
        from gpudiag.forecast.pruning.replay import replay_pruner

        return self.run.memo.once(("replay", str(pruner)), lambda: replay_pruner(self.run, pruner))
