"""Exports with one row per trial and names such as ``params_lr``: what all of them have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import INCOMPLETE, ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._studies.end_order import checked_ends
from gpudiag.readers._studies.fold import settle_local
from gpudiag.readers._studies.given_states import NUMBERS_READ, are_numbers, named, state_of
from gpudiag.readers._studies.pivot import column, plain
from gpudiag.readers._studies.timestamps import Timestamps, duration_s, to_utc
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.schema import REPORTS, STATES, STUDIES, TRIALS, conform, empty, text_dtype

_FAMILIES = {"params_": "params.", "user_attrs_": "user_attrs.", "system_attrs_": "system_attrs."}
_KNOWN = ("number", "value", "datetime_start", "datetime_complete", "duration", "state")
UNKNOWN_STATE = f"{INCOMPLETE} trials whose state is none that is known"
"""Left out, they would make a rate of failures that of the others."""
STEP_DIGITS = 18
"""Of the largest step; a longer number is none."""
_STEP = re.compile(r"intermediate_values_(-?\d+)$")
_INTEGER = re.compile(r"[+-]?\d{1,18}$")

CellColumns = Mapping[str, Sequence[object]]


def is_trials_header(names: Sequence[str]) -> bool:
    """True for the column names of ``study.trials_dataframe()``, with any further columns."""
    known = set(names)
    valued = "value" in known or "values" in known or any(name.startswith(("value_", "values_")) for name in names)
    dated = "datetime_start" in known or any(name.startswith("params_") for name in names)
    return "number" in known and valued and (dated or "state" in known)


def from_columns(
    columns: CellColumns, source: Source, options: ReadOptions, reader: str, problems: ProblemLog
) -> Trials:
    """Tables from columns of cells (None where empty). Raises InputError if no row is a trial.

    The export names no study: it is called as the caller says, else like the file.
    """
    if "number" not in columns:
        raise InputError(f"{source.path}: expected a column 'number', got {', '.join(map(str, columns))[:100]!r}.")
    by_number = [NUMBERS_READ] if are_numbers(columns.get("state", ())) else []
    columns = named(columns, str(source.path))
    keep = _good_rows(columns, problems)
    count = len(next(iter(columns.values()), ()))
    if count and not keep.any():
        raise InputError(f"{source.path}: none of its {count} rows is a trial (a number and a state such as COMPLETE).")
    study = options.study or as_text(source.path.name).split(".")[0]
    cells = {name: [cell for cell, good in zip(values, keep, strict=True) if good] for name, values in columns.items()}
    number = np.array([int(str(cell)) for cell in cells["number"]], dtype="int64")
    start, end = (_timestamps(cells.get(name), len(number), options, problems) for name in _KNOWN[2:4])
    frame = pd.DataFrame({"trial": number, "state": _states(cells, len(number))})
    clock = _clock(start, end)
    local = settle_local(frame["trial"], start.time, end.time, options.timezone) if clock == "local" else None
    frame["start"], ends = (local.start, local.end) if local else (start.time, end.time)
    frame["end"] = checked_ends(frame["start"], ends, source.path, problems)
    open_ended = frame["start"].isna() | frame["end"].isna()
    stated = [duration_s(cell) for cell in cells.get("duration", [None] * len(number))]
    frame["duration_s"] = np.where(open_ended, stated, np.nan)
    wide, objectives = _wide(cells, len(number))
    frame = pd.concat([frame.assign(study=study), pd.DataFrame(wide, index=frame.index)], axis=1)
    studies = pd.DataFrame(
        {"study": [study], "directions": [""], "source": [as_text(source.path)], "clock": [clock]}, dtype=text_dtype()
    )
    order = np.argsort(number, kind="stable")
    return Trials(
        trials=conform(frame.iloc[order], TRIALS) if len(frame) else empty(TRIALS),
        reports=_reports(cells, study, number),
        studies=conform(studies, STUDIES),
        problems=problems.all,
        notes=(*_clock_note(study, clock, local.said if local else "", options), *objectives, *by_number),
        reader=reader,
    )


def typed(texts: Sequence[str]) -> list[object]:
    """Cells of a text file: integers, numbers, True/False or text, by what the whole column is."""
    there = [text for text in texts if text != ""]
    if there and all(_INTEGER.match(text) for text in there):
        return [int(text) if text else None for text in texts]
    if there and set(there) <= {"True", "False"}:
        return [text == "True" if text else None for text in texts]
    try:
        return [float(text) if text else None for text in texts]
    except ValueError:
        return [text or None for text in texts]


def _good_rows(columns: CellColumns, problems: ProblemLog) -> np.ndarray:
    """Rows with a number of their own and, where there is that column, a known state."""
    numbers = [str(cell) if cell is not None else "" for cell in columns["number"]]
    good = np.array([bool(re.fullmatch(r"\d{1,18}", text)) for text in numbers], dtype=bool)
    example = next((f"number {n!r}" for n, ok in zip(numbers, good, strict=True) if not ok), "")
    problems.add("row without a number", int((~good).sum()), example=example, lost=True)
    if "state" in columns:
        known = np.array([state_of(cell) in STATES for cell in columns["state"]], dtype=bool)
        words = {str(cell) for cell, odd in zip(columns["state"], good & ~known, strict=True) if odd}
        problems.add(UNKNOWN_STATE, int((good & ~known).sum()), example=", ".join(sorted(words)), lost=True)
        good &= known
    twice = pd.Series(numbers, dtype="object").where(good).duplicated().to_numpy() & good
    problems.add("trial number used twice, first kept", int(twice.sum()), lost=True)
    return good & ~twice


def _states(cells: CellColumns, rows: int) -> list[str]:
    """The state column; without one a trial with a value is COMPLETE and any other of unknown end FAIL or RUNNING."""
    if "state" in cells:
        return [state_of(cell) for cell in cells["state"]]
    values = next((cells[name] for name in cells if name.startswith("value")), [None] * rows)
    ends = cells.get("datetime_complete", [None] * rows)
    return [
        "COMPLETE" if value is not None else "FAIL" if end is not None else "RUNNING"
        for value, end in zip(values, ends, strict=True)
    ]


def _timestamps(cells: Sequence[object] | None, rows: int, options: ReadOptions, problems: ProblemLog) -> Timestamps:
    timestamps = to_utc(cells if cells is not None else [None] * rows, options.timezone)
    problems.add("timestamp that is no date", timestamps.bad, example=timestamps.example)
    return timestamps


def _wide(cells: CellColumns, rows: int) -> tuple[dict[str, pd.Series], list[str]]:
    """Objectives, parameters and attributes; columns that are none of these become user attributes."""
    out: dict[str, pd.Series] = {}
    names: list[str] = []
    several = [name for name in cells if name.startswith(("values_", "value_"))]
    for name, values in cells.items():
        prefix = next((p for p in _FAMILIES if name.startswith(p)), "")
        if name in several:
            metric = name.partition("_")[2]
            target = f"value_{several.index(name)}" if len(several) > 1 else "value"
            names += [f"{target} is '{metric}'"] if not metric.isdigit() else []
        elif name == "value":
            target = name
        elif name in _KNOWN or name in ("", "trial_id") or _STEP.match(name):
            continue
        else:
            target = _FAMILIES[prefix] + name.removeprefix(prefix) if prefix else f"user_attrs.{name}"
        objects = np.empty(rows, dtype=object)
        objects[:] = [plain(value) for value in values]
        series = column(objects, np.arange(rows), rows)
        out[target] = pd.to_numeric(series, errors="coerce").astype(float) if target.startswith("value") else series
    return out, names and [f"Objectives: {', '.join(names)}."]


def _reports(cells: CellColumns, study: str, number: np.ndarray) -> pd.DataFrame:
    """Intermediate values, where the export was asked for them (``intermediate_values_<step>``)."""
    parts = []
    for name, values in cells.items():
        found = _STEP.match(name)
        if found and len(found[1]) <= STEP_DIGITS:
            numbers = pd.to_numeric(pd.Series(list(values), dtype="object"), errors="coerce").astype(float)
            parts.append(pd.DataFrame({"trial": number, "step": int(found[1]), "value": numbers})[numbers.notna()])
    if not parts:
        return empty(REPORTS)
    return conform(pd.concat(parts).sort_values(["trial", "step"], kind="stable").assign(study=study), REPORTS)


def _clock(start: Timestamps, end: Timestamps) -> str:
    found = {timestamps.clock for timestamps in (start, end)} - {"unknown"}
    return "unknown" if not found else found.pop() if len(found) == 1 else "mixed"


def _clock_note(study: str, clock: str, doubt: str, options: ReadOptions) -> tuple[str, ...]:
    if clock not in ("local", "mixed"):
        return ()
    return (f"Study '{study}': timestamps without a zone read as local time of {options.timezone} (assumed{doubt}).",)
