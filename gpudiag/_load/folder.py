"""The inputs in a folder that no run.toml names: whatever some reader recognises by content."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from gpudiag._load.intake import Intake, Unopened, try_take
from gpudiag._load.own_outputs import is_exported, is_own_output
from gpudiag._load.passed_over import PassedOver, some
from gpudiag.errors import InputError, StudyNotFound, UnknownInput
from gpudiag.faults import Fault, attempt
from gpudiag.manifest import MANIFEST, Manifest
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.url import scheme_of, sqlite_path
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.readers.identify import EXPECTED, KnownKind, identify

MAX_FILES = 20_000
STORAGES = ("optuna-sqlite", "optuna-journal")
"""Readers of files that hold studies by name."""


def refuse_several_runs(folder: Path) -> None:
    """A folder of runs is not a run: mixing them would give numbers of neither."""
    below = sorted(str(found.parent.relative_to(folder)) for found in folder.glob(f"*/{MANIFEST}"))
    if below:
        what = f"holds {len(below)} runs" if len(below) > 1 else "holds a run"
        raise InputError(f"{folder}: {what}, each with its own {MANIFEST} ({some(below)}); name one of them.")


def search(folder: Path, options: ReadOptions, manifest: str = MANIFEST) -> tuple[list[Intake], list[str]]:
    """Every input below the folder that some reader recognises by content, and the names of the other files but for
    the run's own ``manifest``, which is no input.
    """
    intakes: list[Intake] = []
    others: list[str] = []
    passed_over = PassedOver()
    for source, recognised in walk(folder, passed_over):
        name = str(source.path.relative_to(folder))  # "." for a folder that is an input itself, such as W&B's
        if recognised:
            intakes.append(try_take(source, options, shown_as=name))
        elif name not in (MANIFEST, manifest):
            others.append(name)
    if not any(intake.data is not None for intake in intakes):
        raise _nothing(folder, others, intakes, passed_over)
    if options.study:
        intakes = _of_study(options.study, folder, intakes)
    return intakes, others


def beside(
    folder: Path, manifest: Manifest, options: ReadOptions, named: Sequence[Intake], places: Sequence[str | Path]
) -> tuple[list[Intake], list[str]]:
    """Inputs of the kinds that its run.toml says nothing of, and no input named there holds (at ``places``); and the
    names of those that it leaves out.
    """
    held = tuple({type(intake.data) for intake in named})
    found, out = [], []
    for one, state in of_run(folder, manifest, places) if manifest.kinds_to_find else ():
        name = str(one.path.relative_to(folder))
        if state == "found":
            found.append(try_take(one, options, shown_as=name))
        elif state == "left out":
            out.append(name)
    found = [intake for intake in found if not isinstance(intake.data, held)]
    if options.study and "trials" in manifest.kinds_to_find:
        found = _of_study(options.study, folder, found)
    return found, out


def not_named(folder: Path, manifest: Manifest) -> Iterator[Source | Unopened]:
    """Files of the kinds that its run.toml says nothing of."""
    yield from (source for source, state in of_run(folder, manifest) if state == "found")


def of_run(
    folder: Path, manifest: Manifest, named: Sequence[str | Path] = ()
) -> Iterator[tuple[Source | Unopened, Literal["found", "named", "left out"]]]:
    """What a reader recognises in a folder with a run.toml: found by its kind, ``named`` there, or left out. What has a
    run.toml of its own is of another run.
    """
    files = {file_of(one) for one in named}
    for source, recognised in walk(folder):
        between = [above for above in source.path.parents if above != folder and above.is_relative_to(folder)]
        if not recognised or any((above / MANIFEST).is_file() for above in between):
            continue
        known = None if isinstance(source, Unopened) else identify(source)
        if known is None or known[0] in manifest.kinds_to_find:
            yield source, "found"
        else:
            real = _real(source.path)
            yield source, "named" if files & {real, *real.parents} else "left out"


def file_of(place: str | Path) -> Path | None:
    """The file at a path or an SQLite URL; None for what is no file."""
    if isinstance(place, str) and scheme_of(place) != "sqlite":
        return None
    try:
        return (sqlite_path(place) if isinstance(place, str) else place).resolve()
    except (InputError, ValueError, OSError):  # in memory; no name that a file could have
        return None


def not_used(names: list[str]) -> str:
    """A note on inputs that a run.toml leaves out."""
    what = "1 input" if len(names) == 1 else f"{len(names)} inputs"
    return f"run.toml leaves out {what} in the folder: {some(names)}."


def left(others: list[str]) -> str:
    """A note on files that no reader recognises."""
    what = "1 other file in the folder is" if len(others) == 1 else f"{len(others)} other files in the folder are"
    return f"{what} none of the kinds read: {some(others)}."


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


def _nothing(folder: Path, others: list[str], intakes: list[Intake], passed_over: PassedOver) -> InputError:
    if intakes:
        return InputError("; ".join(str(intake.record.error).rstrip(".") for intake in intakes[:3]) + ".")
    if passed_over.own and not others:
        return UnknownInput(f"{folder}: no data found; passed over: {passed_over}. Give what the run was read from.")
    held = "1 file in it is" if len(others) == 1 else f"{len(others)} files in it are"
    what = f"{held} none of these ({some(others)})" if others else "it holds no file that is looked at"
    if passed_over:
        what += f"; passed over: {passed_over}"
    elif not any(folder.iterdir()):
        return UnknownInput(f"{folder}: the folder is empty. Put a GPU log, a study or a training log into it.")
    return UnknownInput(f"{folder}: no data found: {what}. Expected is {EXPECTED} by content.")


def walk(folder: Path, passed_over: PassedOver | None = None) -> Iterator[tuple[Source | Unopened, bool]]:
    """Files, and folders that a reader takes whole, in a fixed order, and whether a reader recognises them.

    What cannot be opened counts as recognised: it may be an input. Reports and plans that gpudiag left there are passed
    over, and nothing is met twice, whatever links lead to it. ``passed_over`` takes the names of what was passed over.
    """
    whole = Source.open(folder)
    found = identify(whole)
    top = _real(folder)
    passed_over = PassedOver() if passed_over is None else passed_over
    met = {top}
    if found is not None:
        yield whole, True
        if not found[1].descends:
            yield from _telemetry_in(folder, top, met, passed_over)
            return
    pending = [(folder, found and found[1])]
    count = 0
    while pending:
        here, above = pending.pop(0)
        for path in _below(here, top, met, passed_over):
            count += 1
            if count > MAX_FILES:
                raise InputError(
                    f"{folder}: holds more than {MAX_FILES} files; name the inputs in a run.toml, "
                    "those of GPU metrics (telemetry) and what ran (trials, artifacts)."
                )
            if isinstance(path, Unopened):
                yield path, True
                continue
            source, found = _told(path)
            if isinstance(source, Unopened):
                yield source, True
                continue
            if is_exported(source) if found is not None else is_own_output(source):
                passed_over.own.append(path.name)
                continue
            reader = found[1] if found is not None and (found[1] is not above or not source.is_dir) else None
            if source.is_dir and (reader is None or reader.descends):
                pending.append((source.path, reader or above))
            if reader is not None or not source.is_dir:
                yield source, reader is not None
            if source.is_dir and reader is not None and not reader.descends:
                yield from _telemetry_in(source.path, top, met, passed_over)


def _telemetry_in(
    folder: Path, top: Path, met: set[Path], passed_over: PassedOver
) -> Iterator[tuple[Source | Unopened, bool]]:
    """Logs of GPU metrics beside the files of trials in a folder that a reader takes whole: they are no part of it."""
    for path in _below(folder, top, met, passed_over):
        if isinstance(path, Unopened) or not path.is_file():
            continue
        source, found = _told(path)
        if isinstance(source, Unopened) or (found is not None and found[0] == "telemetry"):
            yield source, True


def _told(path: Path) -> tuple[Source | Unopened, tuple[KnownKind, Reader] | None]:
    """A file and its reader; unopened where it cannot be read, or a reader fails on it."""
    try:
        source = Source.open(path)
        found = attempt("a reader", lambda: identify(source))
    except InputError as error:
        return Unopened(path, error), None
    if isinstance(found, Fault):
        return Unopened(path, InputError(f"{path}: {found}")), None
    return source, found


def _below(folder: Path, top: Path, met: set[Path], passed_over: PassedOver) -> Iterator[Path | Unopened]:
    """What is to be looked at in a folder: no hidden files, pipes and sockets, and nothing that was met or will be.

    Such as W&B's latest-run, or a link to a folder above. ``met``: real paths, to which these are added.
    """
    real_folder = _real(folder)
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        yield Unopened(folder, InputError.unopened(folder, error))
        return
    for path in paths:
        is_link = os.path.islink(path)  # noqa: PTH114 - Path.is_symlink raises where a folder may not be entered
        real = _real(path) if is_link else real_folder / path.name
        if _is_hidden(path.name):
            passed_over.hidden.append(path.name)
        elif real in met or (is_link and _is_met_anyway(real, top)):
            is_there = os.path.exists(real)  # noqa: PTH110 - likewise
            (passed_over.again if is_there else passed_over.broken).append(path.name)
        else:
            met.add(real)
            try:
                if path.is_file() or path.is_dir():
                    yield path
                else:
                    (passed_over.broken if is_link else passed_over.special).append(path.name)
            except OSError as error:  # the folder may be listed and not entered
                yield Unopened(path, InputError.unopened(path, error))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve raises for links that point at each other


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name in ("__pycache__", "node_modules")


def _is_met_anyway(target: Path, top: Path) -> bool:
    """Whether the search meets a link's target without the link, or began in it. What is hidden, only links lead to."""
    if not target.is_relative_to(top):
        return top.is_relative_to(target)
    return not any(_is_hidden(part) for part in target.relative_to(top).parts)
