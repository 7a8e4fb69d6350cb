"""Rows that have more cells than the header has names: which of the cells has none, told by what the cells hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpudiag.readers._delimited.grid import Layout, is_missing
from gpudiag.readers._shape.identity import UUID
from gpudiag.readers._shape.timestamp_forms import tell_form

_MEASURED = re.compile(r"(-?\d+(?:[.,]\d+)?) ?([A-Za-z%°].*)?")
_UNITS = {"pct": "%", "mib": "MiB MB GiB GB KiB KB B", "w": "W mW", "mhz": "MHz GHz Hz", "c": "C °C", "j": "J mJ Wh"}
"""For the unit that ends a target: how cells may write it."""
_HIGHEST = {"pct": 100.0, "c": 130.0, "w": 2500.0, "mhz": 20_000.0}
MOST_GPUS = 64
_BY_FORM = ("", "known", "event", "name", "driver", "host", "elapsed", "pstate", "throttle_reasons")
"""Targets whose cells may look like anything."""


def aligned(names: Sequence[str], targets: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The names with an empty one for each cell that has none; ``timestamp`` for a time that the header leaves out, and
    ``date`` for the first half of one.

    Cells without a name stand at the end (a comma too many, something appended), unless what they push under the
    names cannot be that: then in front (a numbering, the date of a shell before a line of nvidia-smi), or else between.
    A name that may belong to either of two cells is left out.

    Args:
        names: those of the header.
        targets: what each name means, as a column of the schema or one of ``time index uuid ...``.
        rows: the cells of some rows, all equally many.
    """
    extra = (len(rows[0]) if rows else len(names)) - len(names)
    if extra <= 0:
        return list(names)
    columns = [[cell for cell in column if not is_missing(cell)] for column in zip(*rows, strict=True)]
    front = [*[""] * extra, *names]
    time = targets.index("time") if "time" in targets else len(names)
    for at in range(time, min(time + extra, len(columns) - 1)):
        if _is_time([" ".join(row[at : at + 2]) for row in rows]):  # a timestamp whose blank parts cells
            whole = aligned(names, targets, [[*row[:at], " ".join(row[at : at + 2]), *row[at + 2 :]] for row in rows])
            return [*whole[:at], "date", *whole[at:]]
    if "time" not in targets and _is_time(columns[0]):
        return ["timestamp", *aligned(names, targets, [row[1:] for row in rows])]
    misfits = {
        at: sum(not _fits(target, column) for target, column in zip(targets, _without(columns, at, extra), strict=True))
        for at in range(len(names) + 1)
    }
    best = [at for at, count in misfits.items() if count == min(misfits.values())]
    numbered = _counts(columns[0], len(rows))
    if numbered and misfits[0] < misfits[len(names)]:
        return front
    either = numbered and 0 in best and targets[0] != "index"  # what counts up may as well be the first measurement
    if len(names) in best and not either:
        return [*names, *[""] * extra]
    if 0 in best and not either:
        return front
    ways = [[*names[:at], *[""] * extra, *names[at:]] for at in best]
    return [cell[0] if len(set(cell)) == 1 else "" for cell in zip(*ways, strict=True)]


def left_out(names: Sequence[str], layout: Layout) -> list[str]:
    """A sentence if some of the names could not be given to a cell."""
    lost = [name for name in names if name and name not in {field.name for field in layout.fields}]
    if not lost:
        return []
    return [
        f"Its rows have more cells than its header has names, and which are {', '.join(lost)} cannot be told: these "
        "were left out. Name all cells in order with --columns, or as columns in run.toml."
    ]


def _without(columns: Sequence[Sequence[str]], at: int, extra: int) -> list[Sequence[str]]:
    return [*columns[:at], *columns[at + extra :]]


def _counts(cells: Sequence[str], rows: int) -> bool:
    """True for what can be a numbering of the rows; a single row shows none."""
    numbers = [int(cell) for cell in cells if cell.isdecimal()]
    return len(numbers) == rows > 1 and numbers == list(range(numbers[0], numbers[0] + rows))


def _is_time(cells: Sequence[str]) -> bool:
    form = tell_form(cells)
    return form is not None and form.kind in ("text", "epoch")


def _fits(target: str, cells: Sequence[str]) -> bool:
    """True if these cells can be a column of this meaning."""
    if target in _BY_FORM or not cells:
        return True
    if target in ("time", "date"):
        form = tell_form(cells)
        return target == "date" or (form is not None and form.kind != "relative")
    if target == "uuid":
        return all(map(UUID.fullmatch, cells))
    if target == "bus_id":
        return all(":" in cell and "." in cell for cell in cells)
    if target == "index":
        return not any(cell.isdecimal() and int(cell) >= MOST_GPUS for cell in cells) and not _is_measured(cells)
    highest = _HIGHEST.get(target.rsplit("_", 1)[-1], float("inf"))
    return all(is_quantity(target, cell) for cell in cells) and (
        max(float(match[1].replace(",", ".")) for cell in cells if (match := _MEASURED.fullmatch(cell))) <= highest
    )


def is_quantity(target: str, cell: str) -> bool:
    """True for a number, alone or with a unit in which this may be measured."""
    match = _MEASURED.fullmatch(cell)
    unit = match[2] or "" if match else ""
    return match is not None and unit in ("", *_UNITS.get(target.rsplit("_", 1)[-1], unit).split())


def _is_measured(cells: Sequence[str]) -> bool:
    """True for times, fractions and numbers with a unit, which number no GPU."""
    return _is_time(cells) or all(not cell.isdecimal() and _MEASURED.fullmatch(cell) for cell in cells)
