"""TensorBoard's event files (``events.out.tfevents.*``): the scalars that a training wrote, by step and time."""

from __future__ import annotations

from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._steps.event_folders import is_event_file, scalars_of, with_evaluations
from gpudiag.readers._steps.scalar_steps import take
from gpudiag.readers._steps.step_log import StepLog
from gpudiag.readers._steps.step_object import is_of_training
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "tensorboard"


def read(source: Source, options: ReadOptions) -> Trials:
    """The steps of the training as table ``steps``, with the evaluations between them; without any where no loss and no
    learning rate of a training was written.
    """
    problems, log = ProblemLog(), StepLog(source.path, named=as_text(source.path.parent.name))
    found = scalars_of(source, problems)
    if any(map(is_of_training, {one.tag for one in found})):
        take(with_evaluations(found, source.path), log)
    name = as_text(source.path.name)
    if not len(log):
        damaged = " in what could be read of it" if problems.all else ""
        none = f"no scalar{damaged}"
        what = f"{len(found)} scalars, but no loss and no learning rate of a training" if found else none
        return Trials(problems=problems.all, notes=(f"{name}: holds {what}.",), reader=NAME)
    frame, clock = log.frame(options.timezone)
    return Trials(steps=frame, problems=problems.all, notes=(f"{name}: {log.note()}.",), reader=NAME, clock=clock)


READER: Reader[Trials] = Reader(NAME, is_event_file, read)
