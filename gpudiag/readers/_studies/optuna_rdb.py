"""The SQL of an Optuna database, the same for SQLite, PostgreSQL and MySQL, and for every schema.

What a schema has is told from its columns, not from its revision:

    v0.9, v1.2  trials.value, studies.direction; the number is system attribute _number
    v1.3        trials.number; trial_values(step, value) are intermediate values
    v2.4        study_directions, trial_values(objective, value), trial_intermediate_values
    v2.6        trial_heartbeats
    v3.0.0.c/d  intermediate_value_type, value_type: NULL with INF_POS, INF_NEG or NAN
    v3.2.0.a    an index, nothing else (Optuna 3.2 to 5.0)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, Protocol

import numpy as np
import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._studies.pivot import floats
from gpudiag.readers._studies.stored import RUSTUNA, Stored, no_stored, pick_study
from gpudiag.readers.base import ReadOptions

FLOAT32_MAX = float(np.finfo(np.float32).max)
NEWEST = "v3.2.0.a"
_ZONES = pd.Timedelta(days=1)
"""No two zones are further apart."""
KNOWN = ("v0.9.0.a", "v1.2.0.a", "v1.3.0.a", "v2.4.0.a", "v2.6.0.a", "v3.0.0.a", "v3.0.0.b", "v3.0.0.c", "v3.0.0.d")

# Names are qualified because KEY is a reserved word that every dialect accepts after a dot.
_NEEDED = {
    "studies": ("study_id", "study_name"),
    "trials": ("trial_id", "study_id", "state", "datetime_start", "datetime_complete"),
    "trial_params": ("trial_id", "param_name", "param_value", "distribution_json"),
}


class SelectedColumn(NamedTuple):
    """A column to select. ``name`` is text that many rows repeat, ``text`` is text that few share."""

    sql: str
    kind: Literal["int", "float", "name", "text", "timestamp"]


SelectedColumns = dict[str, SelectedColumn]
TRIAL = {"trial_id": SelectedColumn("t.trial_id", "int")}
_JSON = {"key": SelectedColumn("t.key", "name"), "value_json": SelectedColumn("t.value_json", "text")}
_PARAM = {
    "name": SelectedColumn("t.param_name", "name"),
    "value": SelectedColumn("t.param_value", "float"),
    "distribution": SelectedColumn("t.distribution_json", "name"),
}


class Database(Protocol):
    """One read transaction on a database."""

    def columns(self, table: str) -> frozenset[str]:
        """Column names of a table; empty if there is no such table."""

    def select(self, what: SelectedColumns, table: str, where: str = "", *, few: bool = False) -> pd.DataFrame:
        """``SELECT sql AS name ... FROM table AS t``; the rows that can be read.

        ``few`` says that hardly any row of a large table is expected.
        """

    def apart(self, read: Callable[[Database], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
        """A read that may run beside the others from now on; calling the result waits for it."""


def select_sql(what: SelectedColumns, table: str, where: str) -> str:
    """The SELECT of every dialect. The columns are named c0, c1, ... because ``key`` and ``end`` are reserved."""
    fields = ", ".join(f"{field.sql} AS c{index}" for index, field in enumerate(what.values()))
    return f"SELECT {fields} FROM {table} AS t" + (f" WHERE {where}" if where else "")


def read_rdb(database: Database, options: ReadOptions, where: str, problems: ProblemLog) -> Stored:
    """All long tables, or those of the one study named, and of the studies beside it where these are asked for.

    Raises StudyNotFound, or InputError where a table that Optuna needs is missing or different.
    """
    _check(database, where)
    studies = _studies(database)
    pick_study(options.study, studies["study"], where)
    rows = ""
    if options.study is not None and len(studies) > 1:  # to ask for the study of each row takes half as long again
        chosen = studies["study"] == options.study
        if options.beside:
            chosen |= studies["study_id"].isin(_beside(database, studies.loc[chosen, "study_id"].iloc[0]))
        studies = studies[chosen]
        ids = ", ".join(str(int(one)) for one in studies["study_id"])
        rows = f"t.trial_id IN (SELECT x.trial_id FROM trials AS x WHERE x.study_id IN ({ids}))"
    reports = database.apart(partial(_reports, rows=rows))
    trials = _trials(database, rows, problems)
    return Stored(
        studies=studies,
        trials=trials,
        values=_values(database, rows),
        params=_attributes(database, "trial_params", _PARAM, "params", rows),
        reports=reports(),
        user_attrs=_attributes(database, "trial_user_attributes", _JSON, "user_attrs", rows),
        system_attrs=_attributes(database, "trial_system_attributes", _JSON, "system_attrs", rows),
        heartbeats=_heartbeats(database, rows),
        created_by=_created_by(database),
    )


def _check(database: Database, where: str) -> None:
    """Raise InputError where a table or column that every schema has is missing."""
    for table, needed in _NEEDED.items():
        missing = set(needed) - database.columns(table)
        if missing:
            revision = _revision(database)
            known = f"schema revision {revision}" if revision else "no schema revision"
            raise InputError(
                f"{where}: table {table} lacks {', '.join(sorted(missing))} ({known}; known are v0.9.0.a to {NEWEST}). "
                "Export it with study.trials_dataframe().to_csv() and pass that."
            )


def _revision(database: Database) -> str:
    if "version_num" not in database.columns("alembic_version"):
        return ""
    rows = database.select({"revision": SelectedColumn("t.version_num", "text")}, "alembic_version")
    return str(rows["revision"].iloc[0]) if len(rows) else ""


def newer_revision(database: Database) -> str:
    """The schema revision if it is none that gpudiag knows, else an empty text."""
    revision = _revision(database)
    return "" if revision in ("", *KNOWN, NEWEST) else revision


def _created_by(database: Database) -> str:
    """The version of Optuna that created the storage, RUSTUNA, or an empty text.

    Rustuna states a version of Optuna that it is like, and a schema revision never: Optuna's own storages have one
    wherever they have the table for it.
    """
    if "library_version" not in database.columns("version_info"):
        return ""
    rows = database.select({"version": SelectedColumn("t.library_version", "text")}, "version_info")
    version = str(rows["version"].iloc[0]) if len(rows) else ""
    unversioned = "version_num" in database.columns("alembic_version") and not _revision(database)
    return RUSTUNA if version and unversioned else version


def _studies(database: Database) -> pd.DataFrame:
    key = {"study_id": SelectedColumn("t.study_id", "int")}
    direction = {"direction": SelectedColumn("t.direction", "text")}
    names = database.select(key | {"study": SelectedColumn("t.study_name", "text")}, "studies")
    if "direction" in database.columns("studies"):
        rows = database.select(key | direction, "studies").assign(objective=0)
    elif database.columns("study_directions"):
        what = key | direction | {"objective": SelectedColumn("t.objective", "int")}
        rows = database.select(what, "study_directions").sort_values(["study_id", "objective"])
    else:
        rows = pd.DataFrame({"study_id": [], "direction": []})
    found: dict[object, list[str]] = {}
    for of, one in zip(rows["study_id"].tolist(), rows["direction"].tolist(), strict=True):
        if isinstance(one, str) and one != "NOT_SET":  # of a damaged study anything
            found.setdefault(of, []).append(one)
    directions = [",".join(found.get(one, ())) for one in names["study_id"].tolist()]
    return names.assign(directions=np.array(directions, dtype=object)).sort_values("study_id")


def _beside(database: Database, study_id: int) -> list[int]:
    """The studies that may have run at the same time as one, which may be written on clocks of other zones."""
    edges = ("MIN(t.datetime_start)", "MAX(t.datetime_start)", "MAX(t.datetime_complete)")
    key = {"study_id": SelectedColumn("t.study_id", "int")}
    what = key | {sql: SelectedColumn(sql, "timestamp") for sql in edges}
    spans = database.select(what, "trials", "t.study_id IS NOT NULL GROUP BY t.study_id").set_index("study_id")
    first, *lasts = (timestamps(spans[sql], ProblemLog()) for sql in edges)
    last = pd.concat(lasts, axis=1).max(axis=1)
    own = spans.index == study_id
    if not own.any():
        return []
    meet = (first <= last[own].iloc[0] + _ZONES) & (last >= first[own].iloc[0] - _ZONES)
    return [int(one) for one in spans.index[meet] if isinstance(one, int)]  # of a damaged file anything


def _trials(database: Database, rows: str, problems: ProblemLog) -> pd.DataFrame:
    has_number = "number" in database.columns("trials")
    what = TRIAL | {
        "study_id": SelectedColumn("t.study_id", "int"),
        "state": SelectedColumn("t.state", "name"),
        "start": SelectedColumn("t.datetime_start", "timestamp"),
        "end": SelectedColumn("t.datetime_complete", "timestamp"),
    }
    trials = database.select(
        what | ({"number": SelectedColumn("t.number", "int")} if has_number else {}), "trials", rows
    )
    if not has_number:
        stored = database.select(TRIAL | _JSON, "trial_system_attributes", _and("t.key = '_number'", rows))
        number = dict(zip(stored["trial_id"], pd.to_numeric(stored["value_json"], errors="coerce"), strict=True))
        trials["number"] = trials["trial_id"].map(number)
    trials["number"] = pd.to_numeric(trials["number"], errors="coerce")
    if trials["number"].isna().any():
        # A trial that has no number takes its place in the order of creation, as Optuna gives it.
        place = trials.sort_values("trial_id").groupby("study_id").cumcount()
        trials["number"] = trials["number"].fillna(place)
    for column in ("start", "end"):
        trials[column] = timestamps(trials[column], problems)
    return trials


def timestamps(texts: pd.Series, problems: ProblemLog) -> pd.Series:
    """Texts or datetimes without a zone as datetime64[us]; a damaged one becomes NaT."""
    if not len(texts):
        return texts.astype("datetime64[us]")
    cells = texts.astype("object")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # all that pandas 2 does about a second zone
            times = pd.to_datetime(cells, format="ISO8601", errors="coerce").astype("datetime64[us]")
    except (ValueError, TypeError, FutureWarning):  # No version of Optuna writes a zone here, so one is damage.
        plain = cells.where(~cells.astype(str).str.contains(r"(?:Z|[+-]\d{2}(?::?\d{2})?)$"), None)
        times = pd.to_datetime(plain, format="ISO8601", errors="coerce").astype("datetime64[us]")
    bad = times.isna() & texts.notna()
    if bad.any():
        problems.add("timestamp that is no date", int(bad.sum()), example=texts[bad].iloc[0])
    return times


def _values(database: Database, rows: str) -> pd.DataFrame:
    """Final objective values: in ``trial_values`` from v2.4 on, before in ``trials``."""
    columns = database.columns("trial_values")
    value = {"value": SelectedColumn("t.value", "float")}
    if "objective" in columns:
        kind = "value_type" if "value_type" in columns else ""
        return _with_infinities(database, "objective", value, "trial_values", kind, rows)
    if "value" in database.columns("trials"):
        return database.select(TRIAL | value, "trials", _and("t.value IS NOT NULL", rows)).assign(objective=0)
    return no_stored("values")


def _reports(database: Database, rows: str) -> pd.DataFrame:
    """Intermediate values: in ``trial_values`` before v2.4."""
    columns = database.columns("trial_intermediate_values")
    if columns:
        kind = "intermediate_value_type" if "intermediate_value_type" in columns else ""
        value = {"value": SelectedColumn("t.intermediate_value", "float")}
        return _with_infinities(database, "step", value, "trial_intermediate_values", kind, rows)
    if "step" in database.columns("trial_values"):
        return _with_infinities(
            database, "step", {"value": SelectedColumn("t.value", "float")}, "trial_values", "", rows
        )
    return no_stored("reports")


def _with_infinities(
    database: Database, key: str, value: SelectedColumns, table: str, kind: str, rows: str
) -> pd.DataFrame:
    """Values by trial and ``key``. NULL is NaN unless the type column ``kind`` says that it is an infinity.

    Without that column Optuna stored the largest float32 in place of an infinity.
    """
    index = {key: SelectedColumn(f"t.{key}", "int")}
    out = database.select(TRIAL | index | value, table, rows)
    number = floats(out["value"])
    if not kind:
        huge = np.abs(number) >= FLOAT32_MAX * (1 - 1e-5)
        return out.assign(value=np.where(huge, np.copysign(np.inf, number), number)) if huge.any() else out
    null = np.flatnonzero(np.isnan(number))
    if not len(null):
        return out
    sign = {"sign": SelectedColumn(f"CASE WHEN t.{kind} = 'INF_POS' THEN 1 ELSE -1 END", "int")}
    infinite = f"{value['value'].sql} IS NULL AND t.{kind} IN ('INF_POS', 'INF_NEG')"
    marked = database.select(TRIAL | index | sign, table, _and(infinite, rows), few=True)
    if len(marked):
        at = pd.MultiIndex.from_frame(out.iloc[null][["trial_id", key]])
        place = at.get_indexer(pd.MultiIndex.from_frame(marked[["trial_id", key]]))
        number = number.copy()
        number[null[place[place >= 0]]] = np.inf * marked["sign"].to_numpy(dtype=float)[place >= 0]
    return out.assign(value=number)


def _and(*conditions: str) -> str:
    return " AND ".join(filter(None, conditions))


def _attributes(database: Database, table: str, what: SelectedColumns, stored: str, rows: str) -> pd.DataFrame:
    if not database.columns(table):
        return no_stored(stored)
    return database.select(TRIAL | what, table, rows)


def _heartbeats(database: Database, rows: str) -> pd.DataFrame:
    if not database.columns("trial_heartbeats"):
        return no_stored("heartbeats")
    out = database.select(TRIAL | {"heartbeat": SelectedColumn("t.heartbeat", "timestamp")}, "trial_heartbeats", rows)
    return out.assign(heartbeat=timestamps(out["heartbeat"], ProblemLog()))
