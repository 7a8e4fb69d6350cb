"""CSV files of ``study.trials_dataframe()`` and of optuna-dashboard."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpudiag.readers._io.csv_records import cells_of, header_and_rows
from gpudiag.readers._io.lines import delimiter_of
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._studies.flat import from_columns, typed
from gpudiag.readers._studies.trial_columns import LOOKED_AT, NUMBER, is_own_header, is_own_table, is_trials_header
from gpudiag.readers._studies.trial_rows import HEADER_AGAIN
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "optuna-trials-csv"
DASHBOARD_NAME = "optuna-dashboard-csv"

_COUNTS = {"number", *NUMBER}
_NUMBERED = re.compile("(?i)number|trial")
_DASHBOARD = {"Number": "number", "State": "state", "Value": "value"}
_DASHBOARD_FAMILIES = {"Param ": "params_", "UserAttribute ": "user_attrs_", "Objective ": "values_"}


def recognises(source: Source) -> bool:
    """The header of ``trials_dataframe().to_csv()``, with or without index, flat or with two header lines; or a table
    of trials that somebody wrote.
    """
    names = plain_names(_header(source))
    of_optuna = is_trials_header(names) and not recognises_dashboard(source)
    return of_optuna or is_own_table(_first_rows(source, names))


def _first_rows(source: Source, names: list[str]) -> list[dict[str, str]]:
    if not names or not is_own_header(names):
        return []
    rows = (cells_of(line, delimiter_of(source.lines[0])) for line in source.lines[1 : LOOKED_AT + 1])
    return [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]


def recognises_dashboard(source: Source) -> bool:
    """The header of optuna-dashboard's download, which carries no times."""
    return _header(source)[:2] == ["Number", "State"]


def _header(source: Source) -> list[str]:
    if source.is_binary or not source.lines:
        return []
    line = source.lines[0]
    return cells_of(line, delimiter_of(line)) if _NUMBERED.search(line) else []


def plain_names(header: Sequence[str]) -> list[str]:
    """Column names, with those of a ``multi_index`` frame that was flattened by str() made plain."""
    out = []
    for name in header:
        if name.startswith("('") and name.endswith(")"):
            parts = [part.strip().strip("'\"") for part in name[1:-1].split(",", 1)]
            name = "_".join(part for part in parts if part)
        out.append(name)
    return out


def _rows(source: Source, problems: ProblemLog) -> list[list[str]]:
    text = source.read_text()
    # Whoever writes such a file ends its lines, so a last line without an end was cut, maybe inside a number.
    problems.add("last line without its end, its last cell may be cut", int(not text.endswith(("\n", "\r"))))
    header, rows = header_and_rows(text, delimiter_of(source.lines[0]), problems, source.path)
    return [header, *(cells for _, cells in rows)]


def _below(headers: list[list[str]], rows: list[list[str]], problems: ProblemLog) -> list[list[str]]:
    """The rows without headers that repeat. What follows a header of other columns is another table, and lost."""
    named = [at for at, row in enumerate(rows) if _is_header(row)]
    other = next((at for at in named if rows[at] != headers[0]), len(rows))
    problems.add(HEADER_AGAIN, sum(at < other for at in named))
    problems.add("row below a header of other columns", len(rows[other + 1 :]), lost=True)
    return [row for row in rows[:other] if row not in headers] if named else rows


def _is_header(row: Sequence[str]) -> bool:
    """Whether a row holds names in place of cells; few rows take the long way."""
    if not any(cell.strip().lower() in _COUNTS for cell in row):
        return False
    names = plain_names(row)
    return is_trials_header(names) or is_own_header(names) or names[:2] == ["Number", "State"]


def _columns(names: Sequence[str], rows: Sequence[Sequence[str]], problems: ProblemLog) -> dict[str, list[object]]:
    """Cells by column. A row of another width (torn) is dropped."""
    good = [row for row in rows if len(row) == len(names)]
    problems.add("row of another width", len(rows) - len(good), lost=True)
    return {name: typed(list(cells)) for name, cells in zip(names, zip(*good, strict=True), strict=False)} or {
        name: [] for name in names
    }


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial per row; the study is called as the options say, else like the file."""
    problems = ProblemLog()
    header, *rows = _rows(source, problems)
    names, headers = plain_names(header), [header]
    if len(set(names) - {""}) < len([name for name in names if name]) and rows and "number" not in rows[0]:
        # A multi_index frame: the second line holds the names inside params, user_attrs, ...
        second, *rows = rows
        headers.append(second)
        names = ["_".join(part for part in pair if part) for pair in zip(names, second, strict=False)]
    return from_columns(_columns(names, _below(headers, rows, problems), problems), source, options, NAME, problems)


def read_dashboard(source: Source, options: ReadOptions) -> Trials:
    """optuna-dashboard's CSV: states, values and parameters, but neither times nor durations."""
    problems = ProblemLog()
    header, *rows = _rows(source, problems)
    names = [_dashboard_name(name) for name in header]
    columns = _columns(names, _below([header], rows, problems), problems)
    out = from_columns(columns, source, options, DASHBOARD_NAME, problems)
    note = f"{source.path.name}: an optuna-dashboard CSV carries no times; export the study itself to see durations."
    return Trials(out.trials, out.reports, out.studies, out.events, out.problems, (*out.notes, note), out.reader)


def _dashboard_name(name: str) -> str:
    for prefix, ours in _DASHBOARD_FAMILIES.items():
        if name.startswith(prefix):
            return ours + name.removeprefix(prefix)
    return _DASHBOARD.get(name, name)


READER: Reader[Trials] = Reader(NAME, recognises, read)
DASHBOARD: Reader[Trials] = Reader(DASHBOARD_NAME, recognises_dashboard, read_dashboard)
