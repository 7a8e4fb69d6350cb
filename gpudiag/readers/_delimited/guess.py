"""Columns of a --query-gpu log without a header, told from the units that its cells carry."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from gpudiag.readers._delimited.grid import is_missing
from gpudiag.readers._shape.identity import BUS_ID, UUID
from gpudiag.readers._shape.prose_rows import MOST_INDEX, TEMPERATURES_C

TIMESTAMP = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_WITH_UNIT = re.compile(r"-?\d+(?:\.\d+)? (%|MiB|W|MHz|us)")
_PSTATE = re.compile(r"P\d{1,2}")
_NAME = re.compile(r"(?:NVIDIA|Tesla|GeForce|Quadro|GRID|TITAN|RTX|GTX|A\d+|H\d+|L\d+)[\w ().+/-]*")
_MASK = re.compile(r"0x[0-9a-fA-F]{16}")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_VERSION = re.compile(r"[0-9A-F]+(?:\.[0-9A-F]+){2,4}")
_STATES = ("Active", "Not Active", "Enabled", "Disabled", "Default", "Yes", "No", "None")
_FORMS = (_NUMBER, _WITH_UNIT, TIMESTAMP, UUID, BUS_ID, _PSTATE, _HEX, _VERSION, _NAME)
_DOCUMENTED = [
    "timestamp",
    "name",
    "pci.bus_id",
    "driver_version",
    "pstate",
    "pcie.link.gen.max",
    "pcie.link.gen.current",
    "temperature.gpu",
    "utilization.gpu",
    "utilization.memory",
    "memory.total",
    "memory.free",
    "memory.used",
]
_MOST_REASONS = 4
"""So many reasons hold a clock back at once at most; a mask of those that a board knows has more."""
_MOST_ALIKE = 0.8


def rows_like(lines: Sequence[str]) -> list[list[str]]:
    """The cells of those lines that look like rows of --query-gpu, all with the commonest number of cells."""
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]
    rows = [row for row in rows if all(map(_legal, row)) and (any(map(_WITH_UNIT.fullmatch, row)) or _stamped(row))]
    if not rows:
        return []
    width = Counter(map(len, rows)).most_common(1)[0][0]
    return [row for row in rows if len(row) == width]


def has_units(rows: Sequence[Sequence[str]]) -> bool:
    """True if units tell what at least one column is."""
    return any(_WITH_UNIT.fullmatch(cell) for row in rows for cell in row)


def _stamped(row: Sequence[str]) -> bool:
    return len(row) > 1 and TIMESTAMP.fullmatch(row[0]) is not None and any(map(_NUMBER.fullmatch, row[1:]))


def _legal(cell: str) -> bool:
    return is_missing(cell) or cell in _STATES or any(form.fullmatch(cell) for form in _FORMS)


def guess_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """A field name for each column, ``unknown`` where nothing tells."""
    columns = [[cell for cell in column if not is_missing(cell)] for column in zip(*_alike(rows), strict=True)]
    names = ["unknown"] * len(columns)
    for form, name in (
        (TIMESTAMP, "timestamp"),
        (UUID, "uuid"),
        (BUS_ID, "pci.bus_id"),
        (_PSTATE, "pstate"),
        (_NAME, "name"),
    ):
        for place, cells in enumerate(columns):
            if cells and all(map(form.fullmatch, cells)):
                names[place] = name
                break
    for place, name in [*_masks(columns), *_by_unit(columns)]:
        names[place] = name
    for place, name in _bare(columns, names):
        names[place] = name
    return names


def is_documented(names: Sequence[str]) -> bool:
    """True for the columns of the query that NVIDIA documents, of which the order is known."""
    return len(names) == len(_DOCUMENTED) and all(
        name in (known, "unknown") for name, known in zip(names, _DOCUMENTED, strict=True)
    )


def _alike(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """The rows without the few that are torn: those with a cell in another form than most of its column."""
    forms = [[_form(cell) for cell in row] for row in rows]
    usual = [Counter(filter(None, column)).most_common(1) for column in zip(*forms, strict=True)]
    alike = [
        row
        for row, own in zip(rows, forms, strict=True)
        if all(not form or form == most[0][0] for form, most in zip(own, usual, strict=True))
    ]
    return alike if len(alike) >= _MOST_ALIKE * len(rows) else list(rows)


def _form(cell: str) -> str:
    """What a cell looks like: a unit, or the pattern it fits; empty if it is unknown."""
    if is_missing(cell):
        return ""
    if match := _WITH_UNIT.fullmatch(cell):
        return match[1]
    return next((form.pattern for form in _FORMS if form.fullmatch(cell)), "?")


def _masks(columns: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    """The one column of masks that can be those of active reasons."""
    found = [place for place, cells in enumerate(columns) if cells and all(map(_MASK.fullmatch, cells))]
    found = [place for place in found if max(int(cell, 16).bit_count() for cell in columns[place]) <= _MOST_REASONS]
    return [(place, "clocks_event_reasons.active") for place in found if len(found) == 1]


def _by_unit(columns: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    units: dict[str, list[int]] = {"%": [], "MiB": [], "W": [], "MHz": [], "us": []}
    for place, cells in enumerate(columns):
        matches = [_WITH_UNIT.fullmatch(cell) for cell in cells]
        found = {match[1] for match in matches if match}
        if len(found) == 1 and all(matches):
            units[found.pop()].append(place)
    named = list(zip(units["%"], ("utilization.gpu", "utilization.memory"), strict=False))
    named += list(zip(units["W"], ("power.draw", "power.limit"), strict=False))
    named += list(zip(units["MHz"], ("clocks.sm", "clocks.mem"), strict=False))
    if len(units["MHz"]) > 1 and _may_be_the_most(columns[units["MHz"][1]], columns[units["MHz"][0]]):
        named.remove((units["MHz"][1], "clocks.mem"))
    return named + _memory(units["MiB"], columns)


def _may_be_the_most(cells: Sequence[str], clocks: Sequence[str]) -> bool:
    """True for one clock throughout that the others never pass: that of the memory, or clocks.max.sm."""
    highest = max(float(cell.split()[0]) for cell in clocks)
    return len(set(cells)) == 1 and float(cells[0].split()[0]) >= highest


def _memory(places: Sequence[int], columns: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    """Of sizes that differ the largest is the total; of the others used comes first unless the total led them."""
    if len(places) < 2:
        return [(place, "memory.used") for place in places]
    total = max(places, key=lambda place: max(float(cell.split()[0]) for cell in columns[place]))
    rest = [place for place in places if place != total]
    names = ("memory.free", "memory.used") if len(rest) > 1 and total == places[0] else ("memory.used", "memory.free")
    return [(total, "memory.total"), *zip(rest, names, strict=False)]


def _bare(columns: Sequence[Sequence[str]], names: Sequence[str]) -> list[tuple[int, str]]:
    """Bare whole numbers: a small one that comes early is the index, one in the range of temperatures is that."""
    named: dict[str, int] = {}
    for place, cells in enumerate(columns):
        if names[place] != "unknown" or not cells or not all(cell.isdecimal() for cell in cells):
            continue
        values = [int(cell) for cell in cells]
        if place <= 2 and max(values) <= MOST_INDEX:
            named.setdefault("index", place)
        elif min(values) >= TEMPERATURES_C[0] and max(values) <= TEMPERATURES_C[1]:
            named.setdefault("temperature.gpu", place)
    return [(place, name) for name, place in named.items()]
