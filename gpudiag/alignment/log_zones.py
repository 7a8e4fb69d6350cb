"""A log without a time zone beside one with it that tells of the same steps whole quarters of an hour from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np
import pandas as pd

from gpudiag.alignment.apply import later
from gpudiag.alignment.other_zone import TIMES
from gpudiag.readers.base import Trials
from gpudiag.statement import Statement
from gpudiag.timezones import are_zones_apart, quarters_s

ENOUGH = 20
"""Fewer steps that both tell of are no proof: two trainings may begin on the hour."""
ALIKE = 0.9
"""Share of the steps of the shorter that both tell of, and of these at one distance."""
APART_S = 2.0
"""Two programs that stamp the same step may differ by so much."""
MOVED = (
    "{name} states no time zone and tells of the same steps as {other}, {shift_s} {side} it. It was moved by that, "
    "onto the clock of {other}. State its zone as timezone in run.toml."
)

LEFT = (
    "{name} states no time zone and tells of the same steps as {other}, {shift_s} {side} it. {other} was moved by "
    "that, since the logs of GPUs state no zone either. State their zone as timezone in run.toml."
)


def logs_in_one_zone(parts: Sequence[Trials], *, local_gpus: bool = False) -> list[Trials]:
    """The parts, each log without a zone on the clock of that with one which tells of its steps in another zone.

    It is one distance all along, by a log in its folder, one above or one below, and none tells of them as it is.
    ``local_gpus``: no log of GPUs states a zone either; then that with one is moved, so that logs stay on their clock.
    """
    zoned = [at for at, part in enumerate(parts) if part.clock == "utc" and len(part.steps)]
    out = list(parts)
    for at, part in enumerate(parts):
        if part.clock != "local" or part.steps.empty:
            continue
        found = {other: by for other in zoned if (by := _apart_s(part, parts[other])) is not None}
        if len(set(found.values())) != 1 or not (apart_s := next(iter(found.values()))):
            continue
        other = next(iter(found))
        names = {"name": PurePath(_path(part)).name, "other": PurePath(_path(parts[other])).name}
        note = str(
            Statement(
                LEFT if local_gpus else MOVED, **names, shift_s=abs(apart_s), side="after" if apart_s > 0 else "before"
            )
        )
        for one in found if local_gpus else (at,):
            if out[one] is parts[one]:
                out[one] = _moved(parts[one], apart_s if local_gpus else -apart_s, note)
    return out


def _moved(part: Trials, by_s: float, note: str) -> Trials:
    trials, events, steps, profiled = (
        later(table, TIMES, np.full(len(table), by_s))
        for table in (part.trials, part.events, part.steps, part.profiled)
    )
    return replace(part, trials=trials, events=events, steps=steps, profiled=profiled, notes=(*part.notes, note))


def _path(part: Trials) -> str:
    return str(part.steps["path"].iloc[0])


def _apart_s(part: Trials, other: Trials) -> float | None:
    """By how many whole quarters of an hour (s) the part is later than the other at nearly all steps; else None."""
    folders = [PurePath(_path(one)).parent for one in (part, other)]
    if not (folders[0].is_relative_to(folders[1]) or folders[1].is_relative_to(folders[0])):
        return None
    first, second = _moments(part.steps), _moments(other.steps)
    apart_s = (first - second).dropna().dt.total_seconds()
    if len(apart_s) < max(ENOUGH, ALIKE * min(len(first), len(second))):
        return None
    middle_s = float(apart_s.median())
    if float((apart_s - middle_s).abs().le(APART_S).mean()) < ALIKE:
        return None
    if abs(middle_s) <= APART_S:
        return 0.0
    return quarters_s(middle_s) if are_zones_apart(middle_s, APART_S) else None


def _moments(steps: pd.DataFrame) -> pd.Series:
    """When each step was first told of, by what is counted and its number."""
    dated = steps.dropna(subset=["time"]).drop_duplicates(["unit", "step"])
    return dated.set_index(["unit", "step"])["time"]
