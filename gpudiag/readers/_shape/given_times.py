"""Columns of times in a frame that somebody holds: datetimes, text as a table of text has it, or counts since 1970."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import polars as pl

from gpudiag.errors import InputError
from gpudiag.readers._delimited.grid import missing
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._shape.given_numbers import shown
from gpudiag.readers._shape.timestamp_forms import TimestampForm, decided, steps_back, swapped, tell_form

NO_DATE = "timestamp that is no date"
_EXPECTED = (
    "expected datetimes, text such as 2026-02-15 06:12:48, or a count of s, ms, us or ns since 1970: convert it with "
    "pandas.to_datetime, which takes a format, a unit and an origin."
)
_SAMPLE = 100
_MOST_UNREAD = 0.2
"""More cells than this share in another form are a second form, not slips of the pen."""
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_DATES = ("datetime64", "datetime", "date", "empty")
_ISO_ZONE = r"[T ]\S*(?:Z|[+-]\d\d(?::?\d\d)?)$"
_WHY = {"relative": ", which counts from an unknown start", "clock": ", a time of day without its date"}


def read_times(columns: Mapping[str, pd.Series], log: ProblemLog) -> tuple[dict[str, pd.Series], list[str]]:
    """The columns as datetimes, UTC where a zone is known, and a note where day and month had to be told apart.

    Text is read in one form in all columns; cells in another one are counted in ``log`` and become NaT.

    Raises:
        InputError: a column holds no times, or times that cannot be told: a time of day, a count since an unknown
            start, or several forms.
    """
    given = {name: v.astype(object) if isinstance(v.dtype, pd.CategoricalDtype) else v for name, v in columns.items()}
    kinds = {name: pd.api.types.infer_dtype(values, skipna=True) for name, values in given.items()}
    texts = {name: _texts(values) for name, values in given.items() if kinds[name] == "string"}
    form, notes = form_of_texts(texts) if texts else (None, [])
    out: dict[str, pd.Series] = {}
    for name, values in given.items():
        if kinds[name] in _DATES:
            out[name] = _datetimes(name, values)
        elif name in texts:
            out[name] = _checked(name, texts[name], _read(form, texts[name]), log)
        elif kinds[name] in _NUMBERS:
            numbers = pl.from_pandas(pd.to_numeric(values))
            out[name] = _checked(name, numbers, _read(_form(name, numbers), numbers), log)
        else:
            raise _refused(name, values.dropna().iloc[0])
    return out, notes


def _texts(values: pd.Series) -> pl.Series:
    cells = pl.Series("", values.astype(object).where(values.notna(), None).tolist(), dtype=pl.String).str.strip_chars()
    return cells.to_frame().select(pl.when(~missing(pl.col(""))).then(pl.col(""))).to_series()


def form_of_texts(texts: Mapping[str, pl.Series]) -> tuple[TimestampForm | None, list[str]]:
    """The form in which text of all columns is read, and a note where day and month had to be told apart."""
    cells = pl.concat(texts.values())
    form = _form(next((name for name, column in texts.items() if column.is_not_null().any()), ""), cells)
    if form is None or not form.ambiguous:
        return form, []
    # Rows of a frame may come in any order, so that only how far they lie apart counts.
    readings = [reading.read(cells).drop_nulls() for reading in (form, swapped(form))]
    scores = [(len(cells) - len(times), steps_back([times.sort().to_physical().to_numpy()])) for times in readings]
    form, note = decided(form, scores)
    return form, [note]


def _form(name: str, cells: pl.Series) -> TimestampForm | None:
    """The form of most cells; None if it is left to ISO 8601, such as a date alone."""
    known = cells.drop_nulls()
    form = tell_form(known.gather_every(max(1, len(known) // _SAMPLE)).cast(pl.String).to_list())
    if form is not None and form.kind in _WHY:
        raise _refused(name, known[0], _WHY[form.kind])
    return form


def _read(form: TimestampForm | None, cells: pl.Series) -> pd.Series:
    if form is None:
        texts = cells.cast(pl.String).to_pandas().astype(object)
        zoned = texts.str.contains(_ISO_ZONE, na=False)
        most = bool(2 * zoned.sum() > texts.notna().sum())
        return pd.to_datetime(texts.where(zoned == most), format="ISO8601", errors="coerce", utc=most)
    times = pd.Series(form.read(cells).to_numpy())
    return times.dt.tz_localize("UTC") if form.zoned else times


def _checked(name: str, cells: pl.Series, times: pd.Series, log: ProblemLog) -> pd.Series:
    """The times, if they are those of nearly all cells."""
    unread = times.isna().to_numpy() & cells.is_not_null().to_numpy()
    count, known = int(unread.sum()), len(cells) - cells.null_count()
    if not count:
        return times
    first = cells[int(unread.argmax())]
    if count == known:
        raise _refused(name, first)
    if count > _MOST_UNREAD * known:
        other = cells[int(times.notna().to_numpy().argmax())]
        raise _refused(name, other, f" and {shown(first)}, which are of two forms")
    log.add(NO_DATE, count, example=f"{name} {shown(first)}")
    return times


def _datetimes(name: str, values: pd.Series) -> pd.Series:
    aware = values.dtype == object and all(getattr(value, "tzinfo", None) is not None for value in values.dropna())
    try:
        return pd.to_datetime(values, utc=aware and values.notna().any())
    except ValueError as error:
        raise _refused(name, values.dropna().iloc[0], " beside times with other zones or none") from error


def _refused(name: str, value: object, why: str = ", no known form of time") -> InputError:
    return InputError(f"DataFrame: column {name!r} holds {shown(value)}{why}; {_EXPECTED}")
