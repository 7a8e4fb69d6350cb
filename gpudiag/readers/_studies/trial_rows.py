"""Which rows of a table are trials, and of which study each is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from gpudiag.readers._io.problems import INCOMPLETE, ProblemLog
from gpudiag.readers._studies.given_states import state_of
from gpudiag.schema import STATES

STUDY = ("study_name", "study")
"""Columns that name the study of a row, the first of them that a table has."""
UNKNOWN_STATE = f"{INCOMPLETE} trials whose state is none that is known"
"""Left out, they would make a rate of failures that of the others."""
NUMBER_TWICE = f"{INCOMPLETE} of trials with one number in one study only the first is read"
SAID_AGAIN = "row that says again what one before it says, left out"
HEADER_AGAIN = "header, which a table that was appended to repeats"
GONE_ON = "row of a trial that had not ended, left out for a later row of it"
_INDEX = ("", "Unnamed: 0")
"""Names of a column that only counts rows."""


def study_column(columns: Mapping[str, Sequence[object]]) -> str:
    """The column that names the study of each row; empty without one."""
    return next((name for name in STUDY if any(cell is not None for cell in columns.get(name, ()))), "")


def studies_of_rows(columns: Mapping[str, Sequence[object]], told: str, default: str) -> np.ndarray:
    """The study that each row names in the column ``told``, and the default where it names none."""
    rows = len(next(iter(columns.values()), ()))
    cells = columns[told] if told else [None] * rows
    out = np.empty(rows, dtype=object)
    out[:] = [default if cell is None or not (text := plain_text(cell)) else text for cell in cells]
    return out


def good_rows(columns: Mapping[str, Sequence[object]], studies: np.ndarray, problems: ProblemLog) -> np.ndarray:
    """Rows with a number of their own within their study and, where there is that column, a known state."""
    numbers = [plain_text(cell) if cell is not None else "" for cell in columns["number"]]
    good = np.array([bool(re.fullmatch(r"\d{1,18}", text)) for text in numbers], dtype=bool)
    header = np.array(numbers, dtype=object) == "number"
    problems.add(HEADER_AGAIN, int(header.sum()))
    bad = ~good & ~header
    example = f"number {numbers[np.argmax(bad)]!r}" if bad.any() else ""
    problems.add("row without a number", int(bad.sum()), example=example, lost=True)
    if "state" in columns:
        known = np.array([state_of(cell) in STATES for cell in columns["state"]], dtype=bool)
        words = {str(cell) for cell, odd in zip(columns["state"], good & ~known, strict=True) if odd}
        problems.add(UNKNOWN_STATE, int((good & ~known).sum()), example=", ".join(sorted(words)), lost=True)
        good &= known
    return good & ~_twice(columns, numbers, studies, good, problems)


def _twice(
    columns: Mapping[str, Sequence[object]], numbers: list[str], studies: np.ndarray, good: np.ndarray, log: ProblemLog
) -> np.ndarray:
    """Rows whose number a row of their study before them has: the same trial once more, or another trial."""
    keys = pd.DataFrame({"study": studies, "number": numbers})
    twice = np.zeros(len(keys), dtype=bool)
    twice[good] = keys[good].duplicated().to_numpy()
    if twice.any():
        earlier = _before_its_end(columns, keys, good)
        log.add(GONE_ON, int(earlier.sum()))
        last = good & ~earlier
        said = {f"cell {name}": list(map(str, cells)) for name, cells in columns.items() if name not in _INDEX}
        other = keys[last].duplicated()
        again = keys.assign(**said)[last].duplicated()
        log.add(SAID_AGAIN, int(again.sum()))
        n_other = int((other & ~again).sum())
        example = f"{n_other:,} of {last.sum():,} left out; a column {STUDY[0]} tells studies apart"
        log.add(NUMBER_TWICE, n_other, example=example, lost=True)
        twice = earlier
        twice[last] = other.to_numpy()
    return twice


def _before_its_end(columns: Mapping[str, Sequence[object]], keys: pd.DataFrame, good: np.ndarray) -> np.ndarray:
    """Rows of what had not ended, behind which there is another of the same number and, where it had one, start: a
    table that was appended to as trials went on.
    """
    out = np.zeros(len(keys), dtype=bool)
    if "state" in columns:
        goes_on = np.array([state_of(cell) in ("RUNNING", "WAITING") for cell in columns["state"]], dtype=bool)
        rows = keys.assign(start=pd.Series(columns.get("datetime_start"), keys.index, dtype=object))[good]
        begun = rows["start"].notna()
        behind = rows.duplicated(list(keys), keep="last").mask(begun, rows.duplicated(keep="last"))
        out[good] = goes_on[good] & behind.to_numpy(bool)
    return out


def plain_text(cell: object) -> str:
    """The text of a cell; a whole number that a gap in its column made a float is whole again."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()
