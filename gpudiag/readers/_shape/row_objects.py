"""Rows of a table in one JSON object: each under its time or number, or all of them below the names of columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gpudiag.readers._fields.aliases import meaning_of
from gpudiag.readers._shape.moments import read_moment
from gpudiag.readers._studies.timestamps import EPOCH_S

_NUMBER = re.compile(r"\d{1,19}(?:\.\d{1,9})?")


def row_objects(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """An object for each row that ``value`` holds, with its time; ``value`` itself where it holds none.

    Under numbers that are no times, rows have times of their own: else they are GPUs.
    """
    if isinstance(columns := value.get("columns"), list) and isinstance(value.get("data"), list):
        return _split(columns, value["data"], value.get("index")) or [value]
    if not value or not all(isinstance(item, dict | list) for item in value.values()):
        return [value]
    if all(map(is_time, value)):
        return [_timed(key, item if isinstance(item, dict) else {"gpus": item}) for key, item in value.items()]
    if all(isinstance(item, dict) and key.isdecimal() for key, item in value.items()):
        times = [_date_of(row) for row in value.values()]
        if all(times) and len({*times}) == len(times):  # at one time they are GPUs
            return list(value.values())
    return [value]


def is_time(key: str) -> bool:
    """Whether a key states a date with a time of day, or a number since 1970."""
    if _NUMBER.fullmatch(key):
        return float(key) >= EPOCH_S
    moment = read_moment(key)
    return moment is not None and moment.day and moment.clock


def counts_rows(names: Iterable[str]) -> bool:
    """Whether all names are numbers or times, as those of rows are."""
    return all(name.isdecimal() or is_time(name) for name in names)


def _split(columns: list[Any], data: list[Any], index: Any) -> list[Mapping[str, Any]]:
    """The rows of a frame as pandas splits it; none where it is anything else."""
    if not all(isinstance(row, list) and len(row) == len(columns) for row in data):
        return []
    rows: list[Mapping[str, Any]] = [dict(zip(map(str, columns), row, strict=True)) for row in data]
    keys = list(map(str, index)) if isinstance(index, list) and len(index) == len(data) else []
    return [_timed(key, row) for key, row in zip(keys, rows, strict=True)] if keys and all(map(is_time, keys)) else rows


def _timed(key: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
    return row if _has_time(row) else {"timestamp": key, **row}


def _has_time(row: Mapping[str, Any]) -> bool:
    return any(meaning_of(name).target in ("time", "date") for name in row)


def _date_of(row: Mapping[str, Any]) -> str:
    """The time of a row, which is none of how long something took, as that of a trial is; empty where it has none."""
    cells = (str(cell) for name, cell in row.items() if meaning_of(name).target == "time")
    return next(filter(is_time, cells), "")
