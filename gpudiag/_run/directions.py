"""Whether lower or higher values of a study are better, where its record does not say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpudiag._run.tables import R, RunTables

STATE_DIRECTION = 'State direction = "minimize" or direction = "maximize" in run.toml.'


def undirected(run: RunTables) -> list[str]:
    """The studies of several values of which nothing says which is better: tables of trials, results of Ray Tune."""
    known = dict(zip(run.studies["study"], run.studies["directions"].fillna("").str.strip(","), strict=True))
    several = run.trials[_values(run)].groupby(run.trials["study"]).nunique().max(axis=1) > 1
    return [str(study) for study, many in several.items() if many and not known.get(study)]


def searches(run: RunTables) -> list[str]:
    """The studies that look for a best value: their direction is known, or two trials have a value. A batch is none."""
    valued = run.trials[_values(run)].notna().any(axis=1).groupby(run.trials["study"]).sum() > 1
    directed = run.studies.loc[run.studies["directions"].fillna("") != "", "study"]
    return list(dict.fromkeys([*directed, *valued.index[valued]]))


def with_directions(run: R, stated: Sequence[str]) -> R:
    """The run whose studies without a direction have the stated ones, one for each of their objectives."""
    if not stated:
        return run
    names = undirected(run)
    n = run.trials[_values(run)].notna().groupby(run.trials["study"]).any().sum(axis=1)
    fit = run.studies["study"].isin([name for name in names if n[name] == len(stated)])
    text = ",".join(stated).upper()
    directions = run.studies["directions"].mask(fit, text)
    if fit.any() or (run.studies["directions"] == text).any():
        return replace(run, studies=run.studies.assign(directions=directions))
    note = f"direction in run.toml ({', '.join(stated)}) is not used: no study without one has as many objectives."
    return replace(run, info=replace(run.info, notes=(*run.info.notes, note)))


def _values(run: RunTables) -> list[str]:
    return [name for name in run.trials if name == "value" or str(name).startswith("value_")]
