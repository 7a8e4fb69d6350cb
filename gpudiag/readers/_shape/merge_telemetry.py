"""Several logs as one: a GPU is one GPU however each log names it, and each of its samples stands once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC

import numpy as np
import pandas as pd

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._shape.finish import describe
from gpudiag.readers._shape.identity import GpuIdentity, resolve, same_model
from gpudiag.readers._shape.tidy import DUPLICATE, tidy
from gpudiag.readers.base import Telemetry
from gpudiag.schema import TABLES
from gpudiag.statement import NOTHING, Statement

_OTHER_SIZE = 1.15
"""Memory totals this far apart are of two boards: less may be MB for MiB, or what the driver reserves."""
_CONFLICT_SHARE = 0.05
_LEAST_CONFLICTS = 3
"""A log cut within a row or an instant differs in the sample at the cut, which says nothing."""
_TOLERANCE = {"util_pct": 1.0, "mem_used_mib": 2.0}
"""Differences up to these are rounding."""
DIFFERENT_SAMPLES = "two logs differ in {n_different} of the {n_shared} samples that both took at the same instant"
TWICE = "{twice:sample stands|samples stand} in more than one log; each was counted once."


def merge(parts: Sequence[Telemetry]) -> Telemetry:
    """One telemetry from several logs, sorted by GPU and time.

    Where two logs hold a GPU at the same instant, values known to one of them complete the other's, and the
    later log's hold where both know; such samples are counted. Logs of one index whose names, memory sizes or
    samples at the same instants contradict each other are of two GPUs (of two machines, as a rule).
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
        notes.append(str(Statement(TWICE, twice=twice)))
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
    identities = [[_face(row) for row in part.gpus.to_dict("records")] for part in parts]
    owned = [(part, identity) for part, own in zip(parts, identities, strict=True) for identity in own]

    def apart(one: int, other: int) -> Statement:
        (first, identity), (second, another) = owned[one], owned[other]
        return NOTHING if first is second else _difference(first, identity, second, another)

    ids, notes = resolve([identity for _, identity in owned], apart)
    left = iter(ids)
    return [{identity.index: next(left) for identity in own} for own in identities], notes


def _face(row: Mapping[str, object]) -> GpuIdentity:
    known = {key: str(row[key]) for key in ("uuid", "bus_id", "name") if pd.notna(row.get(key))}
    return GpuIdentity(index=str(row["gpu"]), **known)


def _difference(first: Telemetry, identity: GpuIdentity, second: Telemetry, another: GpuIdentity) -> Statement:
    """Why two logs' GPUs of one index are two; NOTHING if nothing says so."""
    if not same_model(identity.name, another.name):
        return Statement("{one} and {other}", one=identity.name, other=another.name)
    sizes = sorted((_size_mib(first, identity), _size_mib(second, another)))
    if sizes[1] > _OTHER_SIZE * sizes[0] > 0:
        small, large = (f"{size:.0f}" for size in sizes)
        return Statement("of {small} and {large} MiB", small=small, large=large)
    shared, differ = _conflicts(_samples(first, identity), _samples(second, another))
    if differ >= _LEAST_CONFLICTS and differ > _CONFLICT_SHARE * shared:
        return Statement(DIFFERENT_SAMPLES, n_different=differ, n_shared=shared)
    return NOTHING


def _size_mib(part: Telemetry, identity: GpuIdentity) -> float:
    if "mem_total_mib" not in part.gpus:
        return float("nan")
    return float(part.gpus.loc[part.gpus["gpu"] == identity.index, "mem_total_mib"].iloc[0])


def _samples(part: Telemetry, identity: GpuIdentity) -> pd.DataFrame:
    return part.gpu[part.gpu["gpu"] == identity.index]


def _conflicts(one: pd.DataFrame, other: pd.DataFrame) -> tuple[int, int]:
    """How many instants two logs share, and in how many of them utilization or used memory differs."""
    _, left, right = np.intersect1d(
        one["time"].to_numpy("datetime64[us]"), other["time"].to_numpy("datetime64[us]"), return_indices=True
    )
    differ = np.zeros(len(left), dtype=bool)
    for name, tolerance in _TOLERANCE.items():
        if name in one and name in other:
            step = one[name].to_numpy("float64")[left] - other[name].to_numpy("float64")[right]
            differ |= np.abs(step) > tolerance
    return len(left), int(differ.sum())


def _stacked(parts: Sequence[Telemetry], table: str, names: Sequence[Mapping[str, str]]) -> pd.DataFrame | None:
    """The rows of one table of all parts under common names of GPUs; None if there is no row."""
    frames = [_renamed(getattr(part, table), own) for part, own in zip(parts, names, strict=True)]
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else None


def _renamed(frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    if "gpu" not in frame or all(old == new for old, new in names.items()):
        return frame
    return frame.assign(gpu=frame["gpu"].map(names).fillna(frame["gpu"]))
