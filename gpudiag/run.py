"""A run: tidy tables on one clock, and what is known about where they came from."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudiag._run import one_study, selection
from gpudiag._run.tables import ClockRecord, ClockStep, InputRecord, RunInfo, RunTables

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ClockRecord", "ClockStep", "InputRecord", "Run", "RunInfo"]


@dataclass(frozen=True, eq=False, repr=False)
class Run(RunTables):
    """The tables of :mod:`gpudiag.schema` on one clock. An absent table is an empty frame.

    Rows of ``gpu`` are sorted by GPU and time without duplicates; rows of ``trials`` by study and
    number. Build one with :func:`gpudiag.load_run` or :meth:`Run.from_files`.
    """

    @classmethod
    def from_files(
        cls,
        telemetry: Sequence[str | Path] | str | Path = (),
        trials: object = None,
        *,
        artifacts: Sequence[str | Path] | str | Path = (),
        study: str | None = None,
        timezone: str | tzinfo | None = None,
        columns: Sequence[str] = (),
        period_s: float | None = None,
        name: str | None = None,
        between: selection.Span = "",
        gpus: Sequence[str | int] | str | int = "",
    ) -> Run:
        """The run of these inputs: :func:`gpudiag.load_run` with its inputs by kind, and with the same options."""
        load: Any = importlib.import_module("gpudiag.load")  # above this module: a run is what the readers fill
        options: dict[str, Any] = {
            "study": study,
            "timezone": timezone,
            "columns": columns,
            "period_s": period_s,
            "name": name,
            "between": between,
            "gpus": gpus,
        }
        run: Run = load.load_run(telemetry=telemetry, trials=trials, artifacts=artifacts, **options)
        return run

    def between(self, start: str | datetime | None, end: str | datetime | None) -> Run:
        """The run from ``start`` (included) to ``end`` (left out); None is the run's own edge.

        A moment is text such as "2026-03-01 10:00" or a datetime; without a zone it is in the run's. Trials that
        overlap the span are kept with their own times; the ledger, the coverage and the concurrency count only what
        lies within it. Raises ConfigError for what is no time, NotMeasurable where nothing lies in the span.
        """
        return selection.between(self, start, end)

    def gpus_only(self, *gpus: str | int | Sequence[str | int]) -> Run:
        """The run on the GPUs named, by index or uuid, one by one or in a list; trials that say they ran only on others
        are left out.

        Raises ConfigError for a GPU that the run does not have.
        """
        return selection.gpus_only(self, gpus)

    def study(self, name: str) -> Run:
        """The run with the trials of one study, and what the GPUs did without those of others. Raises StudyNotFound."""
        return one_study.study(self, name)

    def trials_where(self, test: Callable[[pd.DataFrame], Any] | None = None, /, **equal: Any) -> Run:
        """The run with the trials for which all holds: ``run.trials_where(state="FAIL")``,
        ``run.trials_where(optimizer=["adam", "sgd"])``, ``run.trials_where(lambda t: t["params.lr"] > 0.1)``.

        Args:
            test: a function from the table of trials to one True or False a row.
            equal: a value or a list of them by column; ``params.`` before the name of a parameter may be left out.

        Raises:
            ConfigError: no such column, or the test gives something else.
            NotMeasurable: the run has no trials.
        """
        return selection.trials_where(self, test, equal)

    def timeline(self) -> Any:
        """Trials, GPUs, ledger and events on one time axis, to zoom into in a notebook; that of
        :func:`gpudiag.diagnose` has the findings too. Raises NotMeasurable without trials and telemetry.
        """
        analysis: Any = importlib.import_module("gpudiag.analysis")  # both lie above this module
        view: Any = importlib.import_module("gpudiag.report.timeline.view")
        return view.timeline_view(analysis.Analysis(self))

    def map_tables(self, change: Callable[[str, pd.DataFrame], pd.DataFrame]) -> Run:
        """A run whose every table is ``change(name, table)``; the rest is unchanged."""
        from gpudiag.schema import TABLES

        return replace(self, **{name: change(name, getattr(self, name)) for name in TABLES})
