"""Folders of event files: which of them hold what evaluations found, and of which training these are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

from gpudiag.errors import InputError
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.scalar_events import Scalar, scalars
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.tfrecord import records
from gpudiag.readers._steps.step_object import is_of_evaluation

_VERSION = b"brain.Event:"
EVALUATIONS = ("eval", "evaluation", "val", "valid", "validation")
"""Folders in which Keras, TensorFlow and others write what an evaluation found, by the same tags as the training."""
_BESIDE_TRAINING = "test"
_TRAINING = ("train", "training")
_MOST_FILES = 16


def is_event_file(source: Source) -> bool:
    """The first record names the version of its format."""
    return _VERSION in source.head[:64]


def scalars_of(source: Source, problems: ProblemLog) -> list[Scalar]:
    """The scalars of an event file, in their order; with ``eval/`` before each tag of which the folder says that it is
    of an evaluation.
    """
    found = _all_of(source, problems)
    of_folder = {tag: f"eval/{tag}" for tag in {one.tag for one in found} if _is_of_evaluation(tag, source.path)}
    return [one._replace(tag=of_folder[one.tag]) if one.tag in of_folder else one for one in found]


def with_evaluations(own: Sequence[Scalar], path: Path) -> list[Scalar]:
    """The scalars of a training with those that its evaluations wrote meanwhile into files of their own."""
    if not own or any(before.time_s > after.time_s for before, after in pairwise(own)):
        return list(own)
    found: list[Scalar] = []
    for other in islice(_files_in(_folders_beside(path, {one.tag for one in own})), _MOST_FILES):
        found += _of_training(own, list(_evaluations_in(other)))
    return sorted([*own, *found], key=lambda one: one.time_s)


def _of_training(own: Sequence[Scalar], evaluated: Sequence[Scalar]) -> Iterator[Scalar]:
    """What a file tells of evaluations while a training wrote, and of the one behind its last step: of that step, in a
    file that was begun before. Another training may have written into the same folder later.
    """
    begin_s, end_s = own[0].time_s, own[-1].time_s
    begun = any(begin_s <= one.time_s <= end_s for one in evaluated)
    for one in evaluated:
        if begin_s <= one.time_s <= end_s or (begun and one.time_s > end_s and one.step == own[-1].step):
            yield one


def _evaluations_in(path: Path) -> Iterator[Scalar]:
    """The scalars of a file that its folder says are of an evaluation; others may be of another training."""
    try:
        source = Source.open(path)
    except InputError:  # told where it is read itself, as all that is wrong in it
        return
    for one in _all_of(source, ProblemLog()) if is_event_file(source) else ():
        if _is_of_evaluation(one.tag, path):
            yield one._replace(tag=f"eval/{one.tag}")


def _all_of(source: Source, problems: ProblemLog) -> list[Scalar]:
    with source.stream() as stream:
        return list(scalars(records(stream, problems), problems))


def _is_of_evaluation(tag: str, path: Path) -> bool:
    """Whether the folder says so. ``add_scalars`` of PyTorch writes each of several scalars into a folder of its own,
    named by both.
    """
    folder = as_text(path.parent.name)
    own, among = folder.lower(), _among(tag)
    if own in EVALUATIONS or (
        own == _BESIDE_TRAINING and any((path.parent.parent / one).is_dir() for one in _TRAINING)
    ):
        return True
    return folder.startswith(among) and is_of_evaluation(folder.removeprefix(among))


def _among(tag: str) -> str:
    return tag.replace("/", "_") + "_"


def _folders_beside(path: Path, tags: Iterable[str]) -> Iterator[Path]:
    """Of Keras and its like those beside ``train``; of ``add_scalars`` those within the folder, or beside it."""
    folder = path.parent
    if folder.name.lower() in _TRAINING:
        yield from (folder.parent / name for name in (*EVALUATIONS, _BESIDE_TRAINING))
    yield from _named(folder, "")
    for tag in tags:
        if as_text(folder.name).startswith(_among(tag)):
            yield from _named(folder.parent, _among(tag))


def _named(folder: Path, begin: str) -> Iterator[Path]:
    """The folders below one whose names say that they are of an evaluation, and begin so."""
    for one in _listed(folder):
        name = as_text(one.name)
        if name.startswith(begin) and "_" in name and is_of_evaluation(name.removeprefix(begin)) and one.is_dir():
            yield one


def _files_in(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in dict.fromkeys(folders):
        if not folder.is_symlink():
            yield from (one for one in _listed(folder) if one.is_file())


def _listed(folder: Path) -> list[Path]:
    """What lies in a folder; nothing where it is none, or may not be listed."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
