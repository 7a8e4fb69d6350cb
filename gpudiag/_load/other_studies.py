"""Studies of a storage beside the one that was asked for: they may have had the same GPUs at the same time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import pandas as pd

from gpudiag._load.marked import without_marked_ends
from gpudiag._run.one_study import of_studies
from gpudiag.readers.base import ReadOptions, Telemetry, Trials
from gpudiag.run import Run
from gpudiag.schema import TABLES, conform

OF_STUDIES = ("trials", "reports", "studies")


def set_apart(data: Telemetry | Trials, options: ReadOptions) -> Telemetry | Trials:
    """What was read, with the studies that nobody asked for by themselves."""
    if not isinstance(data, Trials) or not options.beside or options.study is None:
        return data
    names = data.studies["study"]
    others = names[names != options.study]
    if others.empty:
        return data
    beside = Trials(**_of(data, others), reader=data.reader)
    return replace(data, **_of(data, [options.study]), beside=(beside,))


def with_others(run: Run, beside: Sequence[Trials]) -> Run:
    """The run with the trials of studies that it lacks behind its own."""
    for one in beside:
        new = _of(one, set(one.studies["study"]) - set(run.studies["study"]))
        run = replace(run, **{name: _joined(getattr(run, name), table, name) for name, table in new.items()})
    return run


def marked_apart(run: Run, names: Collection[str]) -> Run:
    """The run with ends of trials unknown that were marked later: what shows it is of one study or of the others, and
    only of the one it is noted.
    """
    others = set(run.studies["study"]) - set(names)
    if not others:
        return without_marked_ends(run)
    own, rest = (without_marked_ends(replace(run, **_of(run, part))) for part in (names, others))
    return replace(own, **{name: _joined(getattr(own, name), getattr(rest, name), name) for name in OF_STUDIES})


def without_others(run: Run, names: Collection[str]) -> Run:
    """The run of the studies that were asked for, and of the GPUs what no trial of another one had a part in."""
    if run.studies["study"].isin(names).all():
        return run
    chosen = of_studies(run, names)
    known = {column.name for column in TABLES["trials"].columns if column.required}
    empty = [name for name in chosen.trials if name not in known and chosen.trials[name].isna().all()]
    return replace(chosen, trials=chosen.trials.drop(columns=empty))


def _of(held: Run | Trials, names: Collection[str]) -> dict[str, pd.DataFrame]:
    tables = ((name, getattr(held, name)) for name in OF_STUDIES)
    return {name: table[table["study"].isin(list(names))].reset_index(drop=True) for name, table in tables}


def _joined(own: pd.DataFrame, others: pd.DataFrame, name: str) -> pd.DataFrame:
    parts = [part for part in (own, others) if len(part)]
    return conform(pd.concat(parts, ignore_index=True), TABLES[name]) if parts else own
