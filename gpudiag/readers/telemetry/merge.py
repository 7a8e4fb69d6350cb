"""Several logs as one: a GPU is one GPU however each log names it, and each of its samples stands once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry.identity import Face, resolve
from gpudiag.schema import EVENTS, GPU, GPUS, HOST, PROCESSES, Table, conform, empty


def merge(parts: Sequence[Telemetry]) -> Telemetry:
    """One telemetry from several logs, sorted, with a sample that stands in two of them counted once.

    Where two logs hold a GPU at the same instant, values known to one of them complete the other's.
    """
    if not parts:
        return Telemetry()
    if len(parts) == 1:
        return parts[0]
    names, notes = _common_names(parts)
    clocks = {part.clock for part in parts}
    return Telemetry(
        gpu=_joined([_renamed(p.gpu, n) for p, n in zip(parts, names, strict=True)], GPU),
        gpus=_one_row_each([_renamed(p.gpus, n) for p, n in zip(parts, names, strict=True)]),
        processes=_joined([_renamed(p.processes, n) for p, n in zip(parts, names, strict=True)], PROCESSES),
        host=_joined([p.host for p in parts], HOST),
        events=_joined([_renamed(p.events, n) for p, n in zip(parts, names, strict=True)], EVENTS, unique=False),
        problems=tuple(problem for p in parts for problem in p.problems),
        notes=(*dict.fromkeys(note for p in parts for note in p.notes), *notes),
        reader=", ".join(dict.fromkeys(p.reader for p in parts)),
        clock=clocks.pop() if len(clocks) == 1 else "local",
    )


def _common_names(parts: Sequence[Telemetry]) -> tuple[list[dict[str, str]], list[str]]:
    """For each part, the name over all parts of each of its GPUs."""
    faces = [[_face(row) for row in part.gpus.to_dict("records")] for part in parts]
    ids, notes = resolve([face for own in faces for face in own])
    left = iter(ids)
    return [{face.index: next(left) for face in own} for own in faces], notes


def _face(row: dict) -> Face:
    known = {key: str(row[key]) for key in ("uuid", "bus_id", "name") if key in row and pd.notna(row[key])}
    return Face(index=row["gpu"], **known)


def _renamed(frame: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    if "gpu" not in frame or all(old == new for old, new in names.items()):
        return frame
    return frame.assign(gpu=frame["gpu"].map(names).fillna(frame["gpu"]))


def _joined(frames: list[pd.DataFrame], table: Table, *, unique: bool = True) -> pd.DataFrame:
    """Rows of all frames by key; a key that stands twice is one row, completed from both."""
    filled = [frame for frame in frames if len(frame)]
    if not filled:
        return empty(table)
    both = conform(pd.concat(filled, ignore_index=True), table)
    keys = list(table.key)
    if not unique:
        return both.sort_values("time", kind="stable", ignore_index=True)
    both = both.sort_values(keys, kind="stable", ignore_index=True)
    twice = both.duplicated(keys, keep=False)
    if twice.any():
        once = both[twice].groupby(keys, sort=False, dropna=False).last().reset_index()
        both = pd.concat([both[~twice], conform(once, table)], ignore_index=True)
        both = both.sort_values(keys, kind="stable", ignore_index=True)
    return conform(both, table)


def _one_row_each(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """One row per GPU, each column as first known."""
    filled = [frame for frame in frames if len(frame)]
    if not filled:
        return empty(GPUS)
    table = pd.concat(filled, ignore_index=True).replace({None: np.nan})
    return conform(table.groupby("gpu", sort=True).first().reset_index(), GPUS)
