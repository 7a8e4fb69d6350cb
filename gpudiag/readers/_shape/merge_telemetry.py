"""Several logs as one: a GPU is one GPU however each log names it, and each of its samples stands once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC

import numpy as np
import pandas as pd

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._shape import log_names, near_samples
from gpudiag.readers._shape.finish import describe
from gpudiag.readers._shape.identity import GpuIdentity, resolve, same_model
from gpudiag.readers._shape.tidy import DUPLICATE, arranged, frame, tidy
from gpudiag.readers.base import Telemetry
from gpudiag.schema import TABLES
from gpudiag.statement import NOTHING, Statement
from gpudiag.units import SECOND_US

_OTHER_SIZE = 1.15
"""Memory totals this far apart are of two boards: less may be MB for MiB, or what the driver reserves."""
_CONFLICT_SHARE = 0.05
_BEYOND_SHARE = 0.4
"""For logs in whole seconds. Of one H100 recorded twice, half a second apart, 0-28 % of samples lay beyond; of two
recordings of other runs laid over each other, 50-87 % (benchmarks/gpu_search.py, four runs)."""
_LEAST_CONFLICTS = 3
"""A log cut within a row or an instant differs in the sample at the cut, which says nothing."""
_TOLERANCE = {"util_pct": 1.0, "mem_used_mib": 2.0}
"""Differences up to these are rounding."""
_LEAST_BETWEEN = 40
_AROUND = 3
_BETWEEN_SHARE = 0.5
"""Of samples of one GPU two in seven are the least or the greatest among their six neighbors in another log of it."""
DIFFERENT_SAMPLES = "two logs differ in {n_different} of the {n_shared} samples that both took at the same instant"
DIFFERENT_BETWEEN = (
    "{n_different} of the {n_between} samples of one log lie beyond all that the other has shortly before and after"
)
TWICE = "{twice:sample stands|samples stand} in more than one log; each was counted once."
OVERLAP_US = 60 * SECOND_US
"""A log that is continued in another one may overlap with it for less."""
BY_NUMBER = (
    "Logs that overlap in time name {gpus} by number alone; they were taken for recordings of one machine. Record uuid "
    "or pci.bus_id if they are of several."
)


LOGS = "GPUs of logs that hold different ones under one index are named log/index."


def merge(parts: Sequence[Telemetry], paths: Sequence[str] = ()) -> Telemetry:
    """One telemetry from several logs, sorted by GPU and time.

    Where two logs hold a GPU at the same instant, values known to one of them complete the other's, and the
    later log's hold where both know; such samples are counted. Samples shortly after each other are one as well
    (:mod:`~gpudiag.readers._shape.near_samples`), but where the logs may be of two machines. Logs of one index whose
    names, memory sizes or samples contradict each other are of two GPUs (of two machines, as a rule). With the
    ``paths`` of the logs, such GPUs are named by their log: node1/0, node2/0.
    """
    if not parts:
        return Telemetry()
    if len(parts) == 1:
        return parts[0]
    parts = _events_apart(parts, paths)
    names, unsure, notes = _common_names(parts, paths)
    log = ProblemLog()
    rows, turns = _joined(parts, names, unsure, notes)
    samples = arranged(TABLES["gpu"], rows, UTC, log, written=False)
    tables = {"gpu": frame(TABLES["gpu"], samples)} | {
        table: tidy(TABLES[table], _stacked(parts, table, names), UTC, log, written=False)
        for table in ("processes", "host", "events")
    }
    twice = sum(problem.count for problem in log.all if problem.kind == DUPLICATE)
    if twice:
        notes.append(str(Statement(TWICE, twice=twice)))
    clocks = {part.clock for part in parts}
    known = _stacked(parts, "gpus", names)
    return Telemetry(
        **tables,
        gpus=describe(samples, None if known is None else known.groupby("gpu", sort=False).first().reset_index()),
        problems=(*(problem for part in parts for problem in part.problems), *log.all),
        notes=tuple(dict.fromkeys([*(note for part in parts for note in part.notes), *notes])),
        reader=", ".join(dict.fromkeys(part.reader for part in parts)),
        clock=clocks.pop() if len(clocks) == 1 else "local",
        taking_turns=turns,
    )


def _events_apart(parts: Sequence[Telemetry], paths: Sequence[str]) -> list[Telemetry]:
    """The parts with events that name the whole paths of their logs, where two logs have one name in two folders."""
    names = [set(part.events["path"].dropna()) if "path" in part.events else set() for part in parts]
    met = Counter(name for own in names for name in own)
    return (
        [
            replace(part, events=part.events.assign(path=path)) if any(met[name] > 1 for name in own) else part
            for part, path, own in zip(parts, paths, names, strict=True)
        ]
        if paths
        else list(parts)
    )


def _common_names(
    parts: Sequence[Telemetry], paths: Sequence[str]
) -> tuple[list[dict[str, str]], list[str], list[str]]:
    """For each part, the name over all parts of each of its GPUs; those that may be several by it; notes."""
    rows = [part.gpus.to_dict("records") for part in parts]
    identities = [[_face(row, part) for row in own] for own, part in zip(rows, parts, strict=True)]
    _number_the_only(identities)
    owned = [(part, identity) for part, own in zip(parts, identities, strict=True) for identity in own]

    def apart(one: int, other: int) -> Statement:
        (first, identity), (second, another) = owned[one], owned[other]
        return NOTHING if first is second else _difference(first, identity, second, another)

    ids, notes = resolve([identity for _, identity in owned], apart)
    if by_log := _by_log(owned, ids, parts, paths):
        ids, notes = resolve(by_log, apart)
        notes[0] = LOGS
    unsure = [gpu for gpu in dict.fromkeys(ids) if _overlap([owned[at] for at, own in enumerate(ids) if own == gpu])]
    if unsure:
        notes.append(str(Statement(BY_NUMBER, gpus=unsure)))
    left = iter(ids)
    return [{str(row["gpu"]): next(left) for row in own} for own in rows], unsure, notes


def _by_log(
    owned: Sequence[tuple[Telemetry, GpuIdentity]], ids: Sequence[str], parts: Sequence[Telemetry], paths: Sequence[str]
) -> list[GpuIdentity]:
    """The identities with their log in place of a host, where an index has two GPUs and no log names its host."""
    found = {(identity.index, gpu) for (_, identity), gpu in zip(owned, ids, strict=True) if identity.index}
    if len(found) == len({index for index, _ in found}) or any(identity.host for _, identity in owned):
        return []
    holders = [at for at, part in enumerate(parts) if len(part.gpus)]
    gpus = [[gpu for (part, _), gpu in zip(owned, ids, strict=True) if part is parts[at]] for at in holders]
    names = log_names.apart([paths[at] for at in holders], gpus) if paths else []
    of_part = {id(parts[at]): name for at, name in zip(holders, names, strict=False)}
    return [replace(identity, host=of_part[id(part)]) for part, identity in owned] if of_part else []


def _face(row: Mapping[str, object], part: Telemetry) -> GpuIdentity:
    """What a log says of a GPU; a log of processes alone that knows uuids made its numbers up."""
    known = {key: str(row[key]) for key in ("uuid", "bus_id", "name", "host") if pd.notna(row.get(key))}
    made_up = not len(part.gpu) and {"uuid", "bus_id"} & known.keys()
    return GpuIdentity(index="" if made_up else str(row["gpu"]), **known)


def _number_the_only(identities: Sequence[list[GpuIdentity]]) -> None:
    """Where every log knows one GPU, and all name it alike or not at all, those without its index have it too."""
    known = [identity for own in identities for identity in own]
    indices = {identity.index for identity in known} - {""}
    for key in ("uuid", "bus_id"):
        if len(indices) != 1 or len({getattr(identity, key) for identity in known} - {""}) > 1:
            return
    for own in identities:
        own[:] = [replace(identity, index=identity.index or min(indices)) for identity in own]


def _overlap(logs: Sequence[tuple[Telemetry, GpuIdentity]]) -> bool:
    """Whether logs of one tool that name a GPU by its number alone hold it at the same time."""
    ends: dict[str, int] = {}
    bare = [(one, identity) for one, identity in logs if not (identity.uuid or identity.bus_id)]
    samples = [(one.reader, _samples(one, identity)["time"]) for one, identity in bare]
    for reader, times in sorted((each for each in samples if len(each[1])), key=lambda each: each[1].iloc[0]):
        first, last = (times.iloc[at].value // 1000 for at in (0, -1))
        if min(ends.get(reader, first), last) - first > OVERLAP_US:
            return True
        ends[reader] = max(ends.get(reader, last), last)
    return False


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
    if not shared and first.reader == second.reader:  # two tools may mean different things by utilization
        between, differ = _beyond_neighbors(_samples(first, identity), _samples(second, another))
        if between >= _LEAST_BETWEEN and differ > _BETWEEN_SHARE * between:
            return Statement(DIFFERENT_BETWEEN, n_different=differ, n_between=between)
    return NOTHING


def _size_mib(part: Telemetry, identity: GpuIdentity) -> float:
    if "mem_total_mib" not in part.gpus:
        return float("nan")
    return float(part.gpus.loc[part.gpus["gpu"] == identity.index, "mem_total_mib"].iloc[0])


def _samples(part: Telemetry, identity: GpuIdentity) -> pd.DataFrame:
    return part.gpu[part.gpu["gpu"] == identity.index]


def _conflicts(one: pd.DataFrame, other: pd.DataFrame) -> tuple[int, int]:
    """How many instants two logs share, and in how many of them utilization or used memory differs.

    Whole seconds are no instants: two logs that write them may sample a GPU at both ends of a second. There a
    sample differs where it lies beyond all that the other log has from its row before to its row after.
    """
    times = [log["time"].to_numpy("datetime64[us]").view("int64") for log in (one, other)]
    seconds = [not (log % SECOND_US).any() for log in times]
    if seconds[0] != seconds[1]:
        return 0, 0
    _, left, right = np.intersect1d(*times, return_indices=True)
    reach = 1 if all(seconds) else 0
    differ = {name: np.zeros(len(left), dtype=bool) for name in _TOLERANCE}
    for name, tolerance in _TOLERANCE.items():
        if name in one and name in other:
            value = one[name].to_numpy("float64")[left]
            low, high = _range(other[name].to_numpy("float64"), right, range(-reach, reach + 1))
            differ[name] = (value < low - tolerance) | (value > high + tolerance)
    if not reach:
        return len(left), int(np.logical_or(*differ.values()).sum())
    most = max(int(found.sum()) for found in differ.values())
    return len(left), most if most > _BEYOND_SHARE * len(left) else 0


def _beyond_neighbors(one: pd.DataFrame, other: pd.DataFrame) -> tuple[int, int]:
    """How many samples the sparser of two logs took while the other recorded, and how many of them differ in
    utilization or used memory from all of the other's last and next ones.
    """
    sparse, dense = sorted((one, other), key=len)
    when, all_times = (log["time"].to_numpy("datetime64[us]").view("int64") for log in (sparse, dense))
    if not len(when):
        return 0, 0
    inside = (when > all_times[0]) & (when < all_times[-1])
    after = np.searchsorted(all_times, when[inside])
    most = 0
    for name, tolerance in _TOLERANCE.items():
        if name in one and name in other:
            value = sparse[name].to_numpy("float64")[inside]
            low, high = _range(dense[name].to_numpy("float64"), after, range(-_AROUND, _AROUND))
            most = max(most, int(((value < low - tolerance) | (value > high + tolerance)).sum()))
    return int(inside.sum()), most


def _range(values: np.ndarray, at: np.ndarray, around: range) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest known value of the rows ``around`` each of the rows ``at``."""
    rows = np.clip(at[:, None] + np.array(around), 0, len(values) - 1)
    return np.fmin.reduce(values[rows], axis=1), np.fmax.reduce(values[rows], axis=1)


def _stacked(parts: Sequence[Telemetry], table: str, names: Sequence[Mapping[str, str]]) -> pd.DataFrame | None:
    """The rows of one table of all parts under common names of GPUs; None if there is no row."""
    frames = [_renamed(getattr(part, table), own) for part, own in zip(parts, names, strict=True)]
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else None


def _joined(
    parts: Sequence[Telemetry], names: Sequence[Mapping[str, str]], unsure: Sequence[str], notes: list[str]
) -> tuple[pd.DataFrame | None, tuple[str, ...]]:
    """The samples of all parts, near ones of two logs as one, which ``notes`` then tell; GPUs whose logs take turns."""
    stack = _stacked(parts, "gpu", names)
    if stack is None:
        return None, ()
    made = near_samples.joined(stack, np.repeat(np.arange(len(parts)), [len(part.gpu) for part in parts]), unsure)
    notes += [str(made.told)] * bool(made.told)
    return made.rows, made.taking_turns


def _renamed(frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    if "gpu" not in frame or all(old == new for old, new in names.items()):
        return frame
    return frame.assign(gpu=frame["gpu"].map(names).fillna(frame["gpu"]))
