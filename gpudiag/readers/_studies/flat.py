"""Exports with one row per trial and names such as ``params_lr``: what all of them have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import pandas as pd

from gpudiag.errors import InputError
from gpudiag.patterns import late
from gpudiag.readers._io.csv_records import number_of
from gpudiag.readers._io.json_values import INT_DIGITS
from gpudiag.readers._io.paths import as_text, without_kind
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._studies.end_order import checked_ends
from gpudiag.readers._studies.fold import settle_local
from gpudiag.readers._studies.given_states import NO_STATES, NUMBERS_READ, are_numbers, named, reason_of, state_of
from gpudiag.readers._studies.other_dates import in_iso
from gpudiag.readers._studies.pivot import column, plain
from gpudiag.readers._studies.stored import named_studies, pick_study
from gpudiag.readers._studies.timestamps import Timestamps, is_nothing, moments_of
from gpudiag.readers._studies.trial_columns import own_columns
from gpudiag.readers._studies.trial_lengths import Lengths, lengths_of
from gpudiag.readers._studies.trial_rows import good_rows, plain_text, studies_of_rows, study_column
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.schema import REPORTS, STUDIES, TRIALS, conform, empty, text_dtype

_FAMILIES = {"params_": "params.", "user_attrs_": "user_attrs.", "system_attrs_": "system_attrs."}
_KNOWN = ("number", "value", "datetime_start", "datetime_complete", "duration", "state")
NO_NUMBER = "value of a trial that is no number"
UNREAD_LENGTH = "length of a trial without a unit; call its column duration_s, _ms, _min or _h"
STEP_DIGITS = 18
"""Of the largest step; a longer number is none."""
_STEP = re.compile(r"intermediate_values_(-?\d+)$")
_INTEGER = late(rf"[+-]?\d{{1,{INT_DIGITS}}}$")

CellColumns = Mapping[str, Sequence[object]]


def from_columns(
    columns: CellColumns, source: Source, options: ReadOptions, reader: str, problems: ProblemLog
) -> Trials:
    """Tables from columns of cells (None where empty). Raises InputError if no row is a trial.

    A table that names no study is called as the caller says, else like the file; so is, of one that does, what names
    none. Raises StudyNotFound where such a table lacks the study that was asked for.
    """
    columns = own_columns(columns)
    if "number" not in columns:
        raise InputError(f"{source.path}: expected a column 'number', got {', '.join(map(str, columns))[:100]!r}.")
    by_number = [NUMBERS_READ] if are_numbers(columns.get("state", ())) else []
    told, called = study_column(columns), without_kind(source.path)
    studies = studies_of_rows(columns, told, called if told else options.study or called)
    if told:
        pick_study(options.study, studies, source.path)
    cells: CellColumns = named(columns, str(source.path))
    asked = _only(cells, studies, studies == options.study) if options.study else (cells, studies)
    good = good_rows(*asked, problems)  # what is wrong in studies beside it is no matter of the one asked for
    if options.study and options.beside:
        asked, good = (cells, studies), good_rows(cells, studies, ProblemLog())
    count = len(good)
    cells, studies = _only(*asked, good)
    if count and not len(studies):
        raise InputError(f"{source.path}: none of its {count} rows is a trial (a number and a state such as COMPLETE).")
    number = np.array([int(plain_text(cell)) for cell in cells["number"]], dtype="int64")
    frame = pd.DataFrame({"study": pd.Series(studies, dtype=text_dtype()), "trial": number})
    lengths = lengths_of(cells, len(number))
    frame["state"] = _states(cells, lengths)
    frame["detail"] = pd.Series(list(map(reason_of, cells.get("state", [None] * len(number)))), dtype=text_dtype())
    times = _times(frame, cells, options, problems)
    frame["start"], frame["end"] = times.start, checked_ends(times.start, times.end, source.path, problems)
    frame["duration_s"] = _stated(frame, lengths, problems)
    spoken_for = (told, lengths.column)
    others = {name: own for name, own in cells.items() if name not in spoken_for}
    wide, objectives = _wide(others, len(number), problems)
    reports = _reports(cells, frame)
    order = np.lexsort((number, pd.factorize(studies)[0]))
    frame = pd.concat([frame, pd.DataFrame(wide, index=frame.index)], axis=1).iloc[order]
    names = list(times.clocks) or [options.study or called]
    shown = {"study": names, "directions": "", "source": as_text(source.path)}
    clocks = [times.clocks.get(name, "unknown") for name in names]
    return Trials(
        trials=conform(frame, TRIALS) if len(frame) else empty(TRIALS),
        reports=reports,
        studies=conform(pd.DataFrame(shown).assign(clock=clocks), STUDIES),
        problems=problems.all,
        notes=(*times.notes, *objectives, *by_number, *([] if "state" in cells or not len(frame) else [NO_STATES])),
        reader=reader,
    )


def _only(columns: CellColumns, studies: np.ndarray, keep: np.ndarray) -> tuple[CellColumns, np.ndarray]:
    return {name: list(compress(cells, keep)) for name, cells in columns.items()}, studies[keep]


def typed(texts: Sequence[str]) -> list[object]:
    """Cells of a text file: integers, numbers, True/False or text, by what the whole column is."""
    there = [text for text in texts if text != ""]
    if there and all(_INTEGER.match(text) for text in there):
        return [int(text) if text else None for text in texts]
    if there and set(there) <= {"True", "False"}:
        return [text == "True" if text else None for text in texts]
    try:
        return [number_of(text) if text else None for text in texts]
    except ValueError:
        return [text or None for text in texts]


def _states(cells: CellColumns, lengths: Lengths) -> list[str]:
    """The state column; without one a trial with a value is COMPLETE and any other of unknown end FAIL or RUNNING."""
    if "state" in cells:
        return [state_of(cell) for cell in cells["state"]]
    took = np.isfinite(lengths.seconds) | lengths.unread
    valued = (name for name in ("value", *cells) if name in cells and name.startswith("value"))
    values = next((cells[name] for name in valued), [None] * len(took))
    ends = cells.get("datetime_complete", [None] * len(took))
    ended = [not is_nothing(end) or bool(lasted) for end, lasted in zip(ends, took, strict=True)]
    return [
        "FAIL" if is_nothing(value) and over else "RUNNING" if is_nothing(value) else "COMPLETE"
        for value, over in zip(values, ended, strict=True)
    ]


def _stated(frame: pd.DataFrame, lengths: Lengths, problems: ProblemLog) -> np.ndarray:
    """Seconds that trials took of which the start or the end is unknown. A length to the second tells the other one."""
    ended = ~frame["state"].isin(["RUNNING", "WAITING"])
    exact_us = np.round(1e6 * np.where(lengths.exact & ended, lengths.seconds, np.nan))
    exact = pd.Series(pd.to_timedelta(exact_us, unit="us")).astype("timedelta64[us]")
    start, end = frame["start"], frame["end"]
    frame["start"], frame["end"] = start.fillna(end - exact), end.fillna(start + exact)
    unknown = (frame["start"].isna() | frame["end"].isna()).to_numpy()
    lost = int((unknown & lengths.unread & ended).sum())
    problems.add(UNREAD_LENGTH, lost, example=lengths.example)
    return np.where(unknown, lengths.seconds, np.nan)


@dataclass(frozen=True)
class _Times:
    start: pd.Series
    end: pd.Series
    clocks: dict[str, str]
    notes: tuple[str, ...]


def _times(frame: pd.DataFrame, cells: CellColumns, options: ReadOptions, problems: ProblemLog) -> _Times:
    """Starts and ends, study by study, since each may have been written on a clock of its own."""
    given, dates = in_iso([cells.get(name, [None] * len(frame)) for name in _KNOWN[2:4]])
    columns = [np.array(cells, dtype=object) for cells in given]
    parts: list[tuple[pd.Series, pd.Series]] = []
    clocks: dict[str, str] = {}
    read_as: dict[str, list[str]] = {}
    for study, own in frame.groupby("study", sort=False):
        start, end = (moments_of(column[own.index].tolist(), options.timezone, problems) for column in columns)
        clock, times = _clock(start, end), (start.time.set_axis(own.index), end.time.set_axis(own.index))
        local = settle_local(own["trial"], times[0], times[1], options.timezone) if clock == "local" else None
        parts.append((local.start, local.end) if local else times)
        clocks[str(study)] = clock
        if clock in ("local", "mixed"):
            read_as.setdefault(f"(assumed{local.said if local else ''})", []).append(str(study))
    notes = dates + [
        f"{named_studies(names)}: timestamps without a zone read as local time of {options.timezone} {doubt}."
        for doubt, names in read_as.items()
    ]
    nothing = [(frame["trial"].astype("datetime64[us, UTC]"),) * 2]
    starts, ends = (pd.concat(list(both)).reindex(frame.index) for both in zip(*(parts or nothing), strict=True))
    return _Times(starts, ends, clocks, tuple(notes))


def _wide(cells: CellColumns, rows: int, problems: ProblemLog) -> tuple[dict[str, pd.Series], list[str]]:
    """Objectives, parameters and attributes; columns that are none of these become user attributes."""
    out: dict[str, pd.Series] = {}
    names: list[str] = []
    several = _valued(cells)
    for name, values in cells.items():
        prefix = next((p for p in _FAMILIES if name.startswith(p)), "")
        if name in several and name != "value":
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
        if target.startswith("value"):
            numbers = pd.to_numeric(series, errors="coerce").astype(float)
            odd = [str(cell) for cell in series[numbers.isna()] if not is_nothing(cell)]
            problems.add(NO_NUMBER, len(odd), example=next(iter(odd), ""))
            series = numbers
        out[target] = series
    return out, names and [f"Objectives: {', '.join(names)}."]


def _valued(cells: CellColumns) -> list[str]:
    """The columns of the objectives: the only one, else one for each."""
    return ["value"] if "value" in cells else [name for name in cells if name.startswith(("values_", "value_"))]


def _reports(cells: CellColumns, trials: pd.DataFrame) -> pd.DataFrame:
    """Intermediate values, where the export was asked for them (``intermediate_values_<step>``)."""
    parts = []
    for name, values in cells.items():
        found = _STEP.match(name)
        if found and len(found[1]) <= STEP_DIGITS:
            numbers = pd.to_numeric(pd.Series(list(values), dtype="object"), errors="coerce").astype(float)
            told = trials[["study", "trial"]].assign(step=int(found[1]), value=numbers)
            parts.append(told[numbers.notna()])
    if not parts:
        return empty(REPORTS)
    order = {study: place for place, study in enumerate(trials["study"].unique())}
    reports = pd.concat(parts, ignore_index=True)
    by = [reports["step"], reports["trial"], reports["study"].map(order)]
    return conform(reports.iloc[np.lexsort(by)], REPORTS)


def _clock(start: Timestamps, end: Timestamps) -> str:
    found = {timestamps.clock for timestamps in (start, end)} - {"unknown"}
    return "unknown" if not found else found.pop() if len(found) == 1 else "mixed"
