"""TensorBoard's event files (``events.out.tfevents.*``): the scalars that a training wrote, by step and time."""

from __future__ import annotations

from pathlib import Path

from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.scalar_events import scalars
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.tfrecord import records
from gpudiag.readers._steps.scalar_steps import take
from gpudiag.readers._steps.step_log import StepLog
from gpudiag.readers._steps.step_object import is_of_evaluation
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "tensorboard"
_VERSION = b"brain.Event:"
_EVALUATIONS = ("eval", "evaluation", "val", "valid", "validation")
"""Folders in which Keras, TensorFlow and others write what an evaluation found, by the same tags as the training."""
_BESIDE_TRAINING = ("test",)
_TRAINING = ("train", "training")


def recognises(source: Source) -> bool:
    """The first record of an event file names the version of its format."""
    return _VERSION in source.head[:64]


def read(source: Source, options: ReadOptions) -> Trials:
    """The steps of the training as table ``steps``, with the evaluations between them; without any where no loss and no
    learning rate of a training was written.
    """
    problems, log = ProblemLog(), StepLog(source.path, named=as_text(source.path.parent.name))
    with source.stream() as stream:
        found = list(scalars(records(stream, problems), problems))
    of_folder = {tag: f"eval/{tag}" for tag in {one.tag for one in found} if _is_of_evaluation(tag, source.path)}
    found = [one._replace(tag=of_folder[one.tag]) if one.tag in of_folder else one for one in found]
    take(found, log)
    name = as_text(source.path.name)
    if not len(log):
        what = f"{len(found)} scalars, but no loss and no learning rate of a training" if found else "no scalar"
        return Trials(problems=problems.all, notes=(f"{name}: holds {what}.",), reader=NAME)
    frame, clock = log.frame(options.timezone)
    return Trials(steps=frame, problems=problems.all, notes=(f"{name}: {log.note()}.",), reader=NAME, clock=clock)


def _is_of_evaluation(tag: str, path: Path) -> bool:
    """Whether the folder says so. ``add_scalars`` of PyTorch writes each of several scalars into a folder of its own,
    named by both.
    """
    folder = as_text(path.parent.name)
    own = folder.lower()
    if own in _EVALUATIONS or (own in _BESIDE_TRAINING and _has_training(path)):
        return True
    among = tag.replace("/", "_") + "_"
    return folder.startswith(among) and is_of_evaluation(folder.removeprefix(among))


def _has_training(path: Path) -> bool:
    return any((path.parent.parent / name).is_dir() for name in _TRAINING)


READER: Reader[Trials] = Reader(NAME, recognises, read)
