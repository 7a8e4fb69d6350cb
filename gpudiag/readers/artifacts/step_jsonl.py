"""A training's log in JSON Lines, an object a step or an epoch: of structured logging, mmengine's ``scalars.json``,
detectron2's ``metrics.json``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpudiag.errors import InputError
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._steps.metric_rows import OF_CALLS, epoch_of_row, least_epoch
from gpudiag.readers._steps.spread_object import row_of
from gpudiag.readers._steps.step_log import StepLog
from gpudiag.readers._steps.step_object import STEPS, counts_calls, runtime_of_object, stamp_of_object, step_of_object
from gpudiag.readers._steps.time_columns import TimeColumns
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "step-jsonl"
_SERIES = "json"
_ENOUGH, _SHOWN = 2, 50


def recognises(source: Source) -> bool:
    """True if two of the first objects tell of a step, else of an epoch, and of its time or when it was."""
    if source.is_binary or not source.text.lstrip().startswith("{"):
        return False
    found = [said for line in source.lines[:_SHOWN] if (said := row_of(line))]
    if any("op_code" in said or "training_iteration" in said for said in found):
        return False  # a study's journal, results of Ray Tune
    of_steps = _that_count(found)
    dated = sum(bool(stamp_of_object(said) or runtime_of_object(said)) for said in of_steps)
    return max(dated, len(of_steps) * TimeColumns(of_steps).any) >= _ENOUGH


def read(source: Source, options: ReadOptions) -> Trials:
    """The steps that the objects tell of, in their order, as table ``steps``, or the epochs; what others tell of stands
    beside them.

    Raises InputError where none tells of either.
    """
    begins = [said for line in source.lines if (said := row_of(line))]
    times, least = TimeColumns(_that_count(begins)), least_epoch(begins)
    if times.is_open:  # the head may lie within the first epoch
        every = (row_of(line) for _, line in numbered_lines(source, ProblemLog()))
        times.look_on(said for said in every if said and step_of_object(said))
    dated = any(stamp_of_object(times.told(said)) for said in begins[:_SHOWN])
    problems, steps = ProblemLog(), StepLog(source.path, dated=dated)
    calls = 0
    for number, line in numbered_lines(source, problems):
        found = row_of(line)
        if found is None:
            if line.strip():
                torn = line.lstrip().startswith("{")
                problems.add("torn line" if torn else "line that is no object", line=number, example=line, lost=torn)
            continue
        row = times.told(found)
        stamp = stamp_of_object(row) if dated else runtime_of_object(row)
        if step := step_of_object(row) if times.by_step else epoch_of_row(row, _SERIES, least):
            steps.add(number, times.meant(step), stamp, line=line)
            calls += counts_calls(row)
        else:
            steps.tell(line, stamp)
    if not len(steps):
        raise InputError(
            f"{source.path}: holds no step of a training; expected objects with a step or an epoch and a loss."
        )
    frame, clock = steps.frame(options.timezone)
    name = as_text(source.path.name)
    notes = [f"{name}: {steps.note()}."]
    timed = any(frame[column].notna().any() for column in ("time", "begun_s", "elapsed_s", "step_s") if column in frame)
    if looked_at := times.note(timed=timed):
        notes.append(f"{name}: {looked_at}")
    if calls == len(steps) == frame["step"].max() - frame["step"].min() + 1:
        notes.append(f"{name}: {OF_CALLS}")
    if clock in ("local", "mixed"):
        notes.append(f"{name}: timestamps without a zone read as local time of {options.timezone}.")
    return Trials(steps=frame, problems=problems.all, notes=tuple(notes), reader=NAME, clock=clock)


def _that_count(objects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that tell of a step; without any, those that tell of an epoch."""
    of_steps = [said for said in objects if step_of_object(said)]
    return of_steps or [
        said for said in objects if epoch_of_row(said, _SERIES, 1) and not any(name in said for name in STEPS)
    ]


READER: Reader[Trials] = Reader(NAME, recognises, read)
