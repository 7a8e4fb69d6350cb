"""``history``: many diagnoses of the same training over time, and whether the newest is worse than the noise."""

from __future__ import annotations

import re
from pathlib import Path

from gpudiag.errors import InputError
from gpudiag.fleets.history.noise import judged
from gpudiag.fleets.history.runs import changed, read_runs
from gpudiag.report._notebook.runner import DOCUMENT
from gpudiag.report.fleet.history import Difference, History, HistoryQuantity, HistoryRun


def history(folder: str | Path) -> History:
    """The history in the diagnosis.json files below a folder, in the order in which the runs began.

    Raises InputError where there are fewer than two.
    """
    read, left = read_runs(sorted(Path(folder).rglob(DOCUMENT)))
    places = {(run.name, run.start, *run.values.items()): (run, path) for run, path in read}  # a copy is no second run
    runs = [run for run, _ in places.values()]
    if len(runs) < 2:
        held = f"{len(runs)} {DOCUMENT}" if runs else f"no {DOCUMENT}"
        remedy = f"make them with gpudiag report RUN... -o {folder}"
        raise InputError(f"{folder}: holds {held}, and a history needs two; {remedy}.")
    runs.sort(key=lambda run: (run.start or "", run.name))
    newest = next(path for run, path in places.values() if run is runs[-1])
    quantities = tuple(judged(runs))
    return History(
        "gpudiag.history/1",
        tuple(runs),
        quantities,
        tuple(left.values()),
        (*_differing(runs), *_other_steps(runs, quantities)),
        changed(*runs[-2:]),
        tuple(why for path, why in left.items() if _may_be_newer(path, newest)),
    )


def _may_be_newer(path: Path, newest: Path) -> bool:
    """Whether a file without a known time may be of a later run: it was written later, or its name comes later."""
    later = path.lstat().st_mtime_ns >= newest.stat().st_mtime_ns
    return later or _in_order(path) > _in_order(newest)


def _in_order(path: Path) -> list[tuple[int, str]]:
    """The name with its numbers as numbers: 10 is after 9."""
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", str(path))]


def _differing(runs: list[HistoryRun]) -> tuple[Difference, ...]:
    """In what the newest run is not the training of the earlier ones. A new name of the study is none, where the trials
    vary the same parameters: each night may have a study of its own.
    """
    newest, earlier = runs[-1], runs[:-1]
    known = [run.parameters for run in earlier if run.parameters]
    if newest.parameters and known:
        other = sum(one != newest.parameters for one in known)
        return (Difference("parameters of the trials", other, len(earlier)),) if other else ()
    names, mine = [_stems(run) for run in earlier if run.studies], _stems(newest)
    other = sum(not one & mine for one in names) if mine else 0
    return (Difference("names of the studies", other, len(earlier)),) if other else ()


def _other_steps(runs: list[HistoryRun], quantities: tuple[HistoryQuantity, ...]) -> tuple[Difference, ...]:
    """That the training of the newest run is of another number of steps, where that decides."""
    if not any(one.of_other_work for one in quantities):
        return ()
    other = sum(run.steps is not None and run.steps != runs[-1].steps for run in runs[:-1])
    return (Difference("steps of the training", other, len(runs) - 1),)


def _stems(run: HistoryRun) -> set[str]:
    """Names of studies without numbers, which are those of nights and versions."""
    return {re.sub(r"[\d\W_]+", "", name) for name in run.studies}
