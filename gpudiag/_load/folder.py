"""The inputs in a folder that has no run.toml to name them: whatever some reader recognises by content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpudiag._load.intake import Intake, try_take
from gpudiag._load.own_outputs import is_own_output
from gpudiag.errors import InputError, StudyNotFound, UnknownInput
from gpudiag.manifest import MANIFEST
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import EXPECTED, identify

MAX_FILES = 20_000
STORAGES = ("optuna-sqlite", "optuna-journal")
"""Readers of files that hold studies by name."""


def refuse_several_runs(folder: Path) -> None:
    """A folder of runs is not a run: mixing them would give numbers of neither."""
    below = sorted(str(found.parent.relative_to(folder)) for found in folder.glob(f"*/{MANIFEST}"))
    if below:
        what = f"holds {len(below)} runs" if len(below) > 1 else "holds a run"
        raise InputError(f"{folder}: {what}, each with its own {MANIFEST} ({_some(below)}); name one of them.")


def search(folder: Path, options: ReadOptions) -> tuple[list[Intake], list[str]]:
    """Every input below the folder that some reader recognises by content, and a note on the other files."""
    intakes: list[Intake] = []
    others: list[str] = []
    for source, recognised in walk(folder):
        name = str(source.path.relative_to(folder)) if source.path != folder else folder.name
        if recognised:
            intakes.append(try_take(source, options, shown_as=name))
        else:
            others.append(name)
    if not any(intake.data is not None for intake in intakes):
        raise _nothing(folder, others, intakes)
    if options.study:
        intakes = _of_study(options.study, folder, intakes)
    if not others:
        return intakes, []
    return intakes, [_left(others)]


def _left(others: list[str]) -> str:
    what = "1 other file in the folder is" if len(others) == 1 else f"{len(others)} other files in the folder are"
    return f"{what} none of the kinds read: {_some(others)}."


def _of_study(study: str, folder: Path, intakes: list[Intake]) -> list[Intake]:
    """The inputs where one holds the study that was named; then it is no fault of the others that they do not.

    Raises StudyNotFound. A trial table without names of studies takes the name that is given.
    """
    without = [intake for intake in intakes if isinstance(intake.error, StudyNotFound)]
    unread = [str(intake.error) for intake in intakes if intake.error is not None]
    of_trials = [intake.record for intake in intakes if isinstance(intake.data, Trials)]
    if without and not any(record.reader in STORAGES for record in of_trials):
        raise StudyNotFound(" ".join(unread))
    if not of_trials and not unread:
        raise StudyNotFound(f"{folder}: has no study '{study}'; it holds no study at all.")
    return [_left_out(intake) if intake in without else intake for intake in intakes]


def _left_out(intake: Intake) -> Intake:
    note = f"Left out: {intake.record.error}"
    return replace(intake, record=replace(intake.record, kind="trials", error=None, notes=(note,)), error=None)


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _nothing(folder: Path, others: list[str], intakes: list[Intake]) -> InputError:
    if intakes:
        return InputError("; ".join(str(intake.record.error) for intake in intakes[:3]))
    held = "its one file is" if len(others) == 1 else f"its {len(others)} files are"
    empty = "it holds only what gpudiag left there" if any(folder.iterdir()) else "it is empty"
    what = f"{held} none of these ({_some(others)})" if others else empty
    return UnknownInput(f"{folder}: no data found; expected {EXPECTED} by content, but {what}.")


def walk(folder: Path) -> Iterator[tuple[Source, bool]]:
    """Files, and folders that a reader takes whole, in a fixed order, and whether a reader recognises them.

    Reports and plans that gpudiag left there are passed over.
    """
    whole = Source.open(folder)
    found = identify(whole)
    if found is not None:
        yield whole, True
        if not found[1].descends:
            return
    pending = [(folder, found and found[1])]
    count = 0
    while pending:
        here, above = pending.pop(0)
        for path in sorted(here.iterdir()):
            if path.name.startswith(".") or path.name in ("__pycache__", "node_modules"):
                continue
            if path.is_symlink() and path.resolve().is_relative_to(folder.resolve()):
                continue  # such as W&B's latest-run: what it points to is met anyway
            if not (path.is_file() or path.is_dir()):
                continue  # a link to nowhere, a pipe, a socket
            count += 1
            if count > MAX_FILES:
                raise InputError(f"{folder}: holds more than {MAX_FILES} files; name the inputs in a run.toml.")
            source = Source.open(path)
            found = identify(source)
            if found is None and is_own_output(source):
                continue
            reader = found[1] if found is not None and (found[1] is not above or path.is_file()) else None
            if path.is_dir() and (reader is None or reader.descends):
                pending.append((path, reader or above))
            if reader is not None or path.is_file():
                yield source, reader is not None
