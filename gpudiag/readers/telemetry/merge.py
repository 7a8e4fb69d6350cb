"""Several logs as one: a GPU is one GPU however each log names it, and each of its samples stands once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC

import pandas as pd

from gpudiag.readers.base import Telemetry
from gpudiag.readers.problems import ProblemLog
from gpudiag.readers.telemetry.finish import describe
from gpudiag.readers.telemetry.identity import Face, resolve
from gpudiag.readers.telemetry.tidy import DUPLICATE, tidy
from gpudiag.schema import TABLES


def merge(parts: Sequence[Telemetry]) -> Telemetry:
    """One telemetry from several logs, sorted by GPU and time.

    Where two logs hold a GPU at the same instant, values known to one of them complete the other's, and the
    later log's hold where both know; such samples are counted.
    """
    if not parts:
        return Telemetry()
    if len(parts) == 1:
        return parts[0]
    names, notes = _common_names(parts)
    log = ProblemLog()
    tables = {
        table: tidy(TABLES[table], _stacked(parts, table, names), UTC, log, written=False)
        for table in ("gpu", "processes", "host", "events")
    }
    twice = sum(problem.count for problem in log.all if problem.kind == DUPLICATE)
    if twice:
        what = "1 sample stands" if twice == 1 else f"{twice} samples stand"
        notes.append(f"{what} in more than one log; each was counted once.")
    clocks = {part.clock for part in parts}
    known = _stacked(parts, "gpus", names)
    return Telemetry(
        **tables,
        gpus=describe(tables["gpu"], None if known is None else known.groupby("gpu", sort=False).first().reset_index()),
        problems=(*(problem for part in parts for problem in part.problems), *log.all),
        notes=(*dict.fromkeys(note for part in parts for note in part.notes), *notes),
        reader=", ".join(dict.fromkeys(part.reader for part in parts)),
        clock=clocks.pop() if len(clocks) == 1 else "local",
    )


def _common_names(parts: Sequence[Telemetry]) -> tuple[list[dict[str, str]], list[str]]:
    """For each part, the name over all parts of each of its GPUs."""
    faces = [[_face(row) for row in part.gpus.to_dict("records")] for part in parts]
    ids, notes = resolve([face for own in faces for face in own])
    left = iter(ids)
    return [{face.index: next(left) for face in own} for own in faces], notes


def _face(row: Mapping[str, object]) -> Face:
    known = {key: str(row[key]) for key in ("uuid", "bus_id", "name") if pd.notna(row.get(key))}
    return Face(index=str(row["gpu"]), **known)


def _stacked(parts: Sequence[Telemetry], table: str, names: Sequence[Mapping[str, str]]) -> pd.DataFrame | None:
    """The rows of one table of all parts under common names of GPUs; None if there is no row."""
    frames = [_renamed(getattr(part, table), own) for part, own in zip(parts, names, strict=True)]
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else None


def _renamed(frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    if "gpu" not in frame or all(old == new for old, new in names.items()):
        return frame
    return frame.assign(gpu=frame["gpu"].map(names).fillna(frame["gpu"]))
