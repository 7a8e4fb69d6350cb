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
from gpudiag.readers._shape.identity import GpuIdentity, resolve
from gpudiag.readers._shape.machines import Machines
from gpudiag.readers._shape.tidy import DUPLICATE, arranged, frame, tidy
from gpudiag.readers.base import Telemetry
from gpudiag.schema import TABLES
from gpudiag.statement import NOTHING, Statement

TWICE = "{twice:sample stands|samples stand} in more than one log; each was counted once."
BY_NUMBER = (
    "Logs that overlap in time name {gpus} by number alone{which}. They were assumed to record one machine. If each "
    "records another machine, there are {n_gpus:GPU}, not {n_taken}, and GPU time is too small by as much. Then name "
    "the files or their folders by machine, as node1.csv, or record uuid."
)
WHICH = " ({logs})"
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


def taken_for(parts: Sequence[Telemetry], paths: Sequence[str]) -> list[str]:
    """What :func:`merge` would note of which GPUs of the logs it takes for one."""
    return _common_names(parts, paths)[2] if len(parts) > 1 else []


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
    owned = [identity for own in identities for identity in own]
    judge = Machines(parts, identities, paths)
    ids, notes = resolve(owned, judge.apart)
    if by_log := _by_log(identities, ids, parts, paths):
        ids, notes = resolve(by_log, judge.apart)
        notes[0] = LOGS
    logs_of = {gpu: judge.unsure([at for at, own in enumerate(ids) if own == gpu]) for gpu in dict.fromkeys(ids)}
    unsure = {gpu: logs for gpu, logs in logs_of.items() if logs}
    if unsure:
        notes.append(str(_by_number(unsure, len(set(ids)), paths)))
    left = iter(ids)
    return [{str(row["gpu"]): next(left) for row in own} for own in rows], list(unsure), notes


def _by_number(unsure: Mapping[str, Sequence[int]], n_taken: int, paths: Sequence[str]) -> Statement:
    """What is not known of GPUs of logs that may be of a machine each, by both readings."""
    logs = sorted({log for own in unsure.values() for log in own})
    which = Statement(WHICH, logs=log_names.shortened([paths[log] for log in logs])) if paths else NOTHING
    n_gpus = n_taken + sum(len(own) - 1 for own in unsure.values())
    return Statement(BY_NUMBER, gpus=list(unsure), which=str(which), n_gpus=n_gpus, n_taken=n_taken)


def _by_log(
    identities: Sequence[Sequence[GpuIdentity]], ids: Sequence[str], parts: Sequence[Telemetry], paths: Sequence[str]
) -> list[GpuIdentity]:
    """The identities with their log in place of a host, where an index has two GPUs and no log names its host."""
    owned = [(log, identity) for log, own in enumerate(identities) for identity in own]
    found = {(identity.index, gpu) for (_, identity), gpu in zip(owned, ids, strict=True) if identity.index}
    if len(found) == len({index for index, _ in found}) or any(identity.host for _, identity in owned):
        return []
    holders = [at for at, part in enumerate(parts) if len(part.gpus)]
    gpus = [[gpu for (log, _), gpu in zip(owned, ids, strict=True) if log == at] for at in holders]
    names = log_names.apart([paths[at] for at in holders], gpus) if paths else []
    of_log = dict(zip(holders, names, strict=False))
    return [replace(identity, host=of_log[log]) for log, identity in owned] if of_log else []


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
