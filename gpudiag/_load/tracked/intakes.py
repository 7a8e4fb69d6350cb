"""The inputs of a tracker's run: its address, asked and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import pandas as pd

from gpudiag._load.folder import search
from gpudiag._load.intake import Intake
from gpudiag._load.passed_over import some
from gpudiag._load.tracked.tracked_run import TASKS
from gpudiag.errors import ConfigError, InputError
from gpudiag.readers._io.url import shown
from gpudiag.readers.base import ReadOptions, Telemetry, Trials
from gpudiag.scratch import scratch


@dataclass(frozen=True)
class Tracked:
    """``intakes`` of a run, and what a run.toml would say of it: ``stated``. ``tasks`` is the path of the intake of the
    run itself, or of the ``n_children`` runs within it.
    """

    intakes: list[Intake]
    stated: Mapping[str, Any]
    tasks: str
    n_children: int

    def beside(self, others: Sequence[Intake]) -> tuple[list[Intake], tuple[str, ...]]:
        """The tracker's intakes and those that were given with it, and what is to be said of them.

        Where another one has trials, as a study that the run itself did, the tracker's own runs are none beside them:
        they would be counted twice.
        """
        rest = [one for one in (*self.intakes, *others) if one.record.path != self.tasks]
        fuller = [one.record.path for one in rest if isinstance(one.data, Trials) and len(one.data.trials)]
        if not fuller:
            return [*self.intakes, *others], ()
        if not self.n_children:
            return rest, ()
        return rest, (
            f"Trials are those of {some(fuller)}; the {self.n_children} runs within the run are not counted.",
        )


def take_tracked(address: str, options: ReadOptions) -> Tracked:
    """What the tracker of ``mlflow:RUN_ID`` keeps of a run, through a folder that is gone afterwards.

    Raises InputError where the tracker has no such run or does not answer; ConfigError where its package is missing or
    it was told of no server.
    """
    tracker, _, run = address.partition(":")
    if tracker == "wandb":
        raise ConfigError(
            f"{shown(address)}: W&B's API gives a part of the system metrics, a sample; give the folder of the run, "
            "wandb/run-..., from the machine that it ran on."
        )
    fetch = import_module(f"gpudiag._load.tracked.{tracker}").fetch
    with scratch() as above:
        folder = above / "run"
        folder.mkdir()
        found = fetch(run, folder)
        found.write(folder)
        place = _Place(f"{folder}/", f"{shown(address)}/")
        try:
            intakes, skipped = search(folder, options)
        except InputError as error:
            raise type(error)(place.said(str(error))) from error
    notes = (*found.notes, *map(place.said, skipped))
    return Tracked(
        [place.of(intake) for intake in intakes],
        {**found.stated, "name": found.name, "notes": notes},
        place.address + TASKS,
        found.n_children,
    )


@dataclass(frozen=True)
class _Place:
    """Names what lay in the folder by the address."""

    folder: str
    address: str

    def said(self, text: str) -> str:
        return text.replace(self.folder, self.address).replace(self.folder[:-1], self.address[:-1])

    def of(self, intake: Intake) -> Intake:
        record = intake.record
        error = record.error and self.said(record.error)
        record = replace(
            record, path=self.address + record.path, error=error, notes=tuple(map(self.said, record.notes))
        )
        return Intake(record, self._data(intake.data), intake.error and type(intake.error)(error))

    def _data(self, data: Telemetry | Trials | None) -> Telemetry | Trials | None:
        if data is None:
            return None
        notes = tuple(map(self.said, data.notes))
        if isinstance(data, Telemetry):
            return replace(data, notes=notes)
        named = {
            table: self._table(getattr(data, table))
            for table in ("studies", "steps", "events", "profiled", "collectives")
        }
        return replace(data, notes=notes, **named)

    def _table(self, table: pd.DataFrame) -> pd.DataFrame:
        columns = [name for name in ("path", "source") if name in table]
        if not len(table) or not columns:
            return table
        return table.assign(
            **{name: table[name].str.replace(self.folder, self.address, regex=False) for name in columns}
        )
