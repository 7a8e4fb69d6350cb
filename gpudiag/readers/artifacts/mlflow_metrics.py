"""What a training logged with MLflow, as the file store keeps it: folder ``metrics`` of a run (``mlruns/<experiment>/
<run>/metrics``), a file a metric with a line ``milliseconds value step`` a value.

The system metrics below it are telemetry.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpudiag.readers._fields.mlflow_store import FOLDER, SYSTEM, description, is_run
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.scalar_events import Scalar
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.ticks import is_epoch
from gpudiag.readers._steps.metric_kinds import MLFLOW
from gpudiag.readers._steps.scalar_steps import take
from gpudiag.readers._steps.step_log import StepLog
from gpudiag.readers._steps.step_object import is_of_training
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "mlflow-steps"
_MOST = 2**53
_NO_STEPS = "was logged without steps: give MLflow's log_metric a step to see how long each took."


def recognises(source: Source) -> bool:
    """The metrics of a run, with a loss or a learning rate of a training among them."""
    path = source.path
    return (
        source.is_dir
        and path.name == FOLDER
        and is_run(path.parent)
        and any(is_of_training(name) for name, _ in _files(path))
    )


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Name and file of each metric but those of the system; train/loss lies in a folder below."""
    for path in sorted(folder.rglob("*")):
        below = path.relative_to(folder)
        if below.parts[0] != SYSTEM and not path.is_symlink() and path.is_file():
            yield as_text(below.as_posix()), path


def read(source: Source, options: ReadOptions) -> Trials:
    """The steps of the training as table ``steps``, with the evaluations between them."""
    problems = ProblemLog()
    scalars = sorted(_scalars(source.path, problems), key=lambda one: one.time_s)
    log = StepLog(source.path, named=as_text(source.path.parent.name))
    of_training = {one.tag for one in scalars if is_of_training(one.tag)}
    stepped = len({one.step for one in scalars if one.tag in of_training}) > 1
    if stepped:
        take(scalars, log, MLFLOW)
    name = str(description(source.path.parent).get("run_name") or as_text(source.path.parent.name))
    if not len(log):
        what = f"'{min(of_training)}' {_NO_STEPS}" if of_training and not stepped else "holds no step of a training."
        return Trials(problems=problems.all, notes=(f"{name}: {what}",), reader=NAME)
    frame, clock = log.frame(options.timezone)
    return Trials(steps=frame, problems=problems.all, notes=(f"{name}: {log.note()}.",), reader=NAME, clock=clock)


def _scalars(folder: Path, problems: ProblemLog) -> Iterator[Scalar]:
    for name, path in _files(folder):
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            problems.add("metric that cannot be opened", example=name, lost=True)
            continue
        for number, line in enumerate(lines, start=1):
            found = _scalar(name, line)
            if found:
                yield found
            else:
                problems.add("torn line", line=number, example=f"{name}: {line}", lost=True)


def _scalar(name: str, line: str) -> Scalar | None:
    """What a line holds; behind the step may stand the data set that the value is of. Early versions wrote no step."""
    parts = line.split(" ")
    try:
        time_s, value, step = int(parts[0]) / 1000, float(parts[1]), int(parts[2]) if len(parts) > 2 else 0
    except (ValueError, IndexError, OverflowError):
        return None
    return Scalar(time_s, step, name, value) if is_epoch(time_s) and abs(step) < _MOST else None


READER: Reader[Trials] = Reader(NAME, recognises, read)
