"""Rows of numbers that nothing names: how their cells are set apart, and what is done so that they can be read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import and_

from gpudiag.readers._delimited.grid import is_missing
from gpudiag.readers._delimited.table_text import Prepare
from gpudiag.readers._fields.aliases import Meaning, scale_in
from gpudiag.readers._shape.moments import read_moment
from gpudiag.readers._shape.timestamp_forms import tell_form

NAME_THEM = (
    "name them in order with --columns, or as columns in run.toml: timestamp,util_pct,mem_used_mib,power_w ('-' for "
    "one to skip)"
)
_SEPARATORS = (",", ";", "\t")
_MEASURED = re.compile(r"(-?\d+(?:\.\d+)?) ?([A-Za-z%°]{0,3})")
_CLOCK = re.compile(rb"(?m)^([^,\n]*\d:\d\d(?::\d\d(?:\.\d+)?)?) +(?=-?\d[\d.]* ?%?(?:,|\r?$))")
_MOST = 0.8
"""Share of lines that are such rows, all as wide; the same text between them, such as a header, counts once."""
_FEWEST = 5


def number_rows(lines: Sequence[str]) -> tuple[str, int] | None:
    """The separator of rows of numbers and how many each has, the time among them; None for other lines.

    Numbers may carry a unit. A column alone has the separator ``,``.
    """
    filled = [line for line in clock_apart("\n".join(lines).encode()).decode().split("\n") if line.strip()]
    filled = [line for line in filled if _cell(line) or not read_moment(line)]
    for separator in _SEPARATORS:
        rows = [[cell.strip() for cell in line.split(separator)] for line in filled]
        widths = Counter(len(row) for row in rows if all(map(_cell, row)))
        width, count = widths.most_common(1)[0] if widths else (0, 0)
        others = {line for line, row in zip(filled, rows, strict=True) if not all(map(_cell, row))}
        if count >= max(_FEWEST, _MOST * (widths.total() + len(others))) and (width > 1 or separator == ","):
            return separator, width
    return None


def alike(rows: Sequence[list[str]]) -> list[list[str]]:
    """The rows without those few in which a number lacks the unit that it has in most."""
    bare = [[(match := _MEASURED.fullmatch(cell)) is not None and not match[2] for cell in row] for row in rows]
    few = [sum(column) < (1 - _MOST) * len(rows) for column in zip(*bare, strict=True)]
    return [row for row, own in zip(rows, bare, strict=True) if not any(map(and_, own, few))]


def _cell(cell: str) -> bool:
    return bool(_MEASURED.fullmatch(cell)) or is_missing(cell) or tell_form([cell]) is not None


def clock_apart(data: bytes) -> bytes:
    """``15:38:43.359 30, 636`` with a comma behind the time, which a shell set before a row of nvidia-smi."""
    return _CLOCK.sub(rb"\1, ", data)


def in_one_unit(meanings: Sequence[Meaning], rows: Sequence[Sequence[str]], separator: str) -> Prepare | None:
    """For columns in which cells carry one unit or another, as ``466 mW`` and ``6.69 W``; None where none is such."""
    mixed: dict[int, dict[str, float]] = {}
    for place, meaning in enumerate(meanings if rows and len(rows[0]) == len(meanings) else ()):
        units = {match[2] for row in rows if (match := _MEASURED.fullmatch(row[place])) and match[2]}
        scales = {unit: scale_in(meaning.target, unit) for unit in units} if meaning.metric else {}
        if len({scale for scale in scales.values() if scale is not None}) > 1:
            mixed[place] = {unit: scale / meaning.scale for unit, scale in scales.items() if scale is not None}
    return (lambda data: _in_one_unit(data, mixed, separator)) if mixed else None


def _in_one_unit(data: bytes, mixed: Mapping[int, Mapping[str, float]], separator: str) -> bytes:
    lines = []
    for line in data.decode(errors="replace").split("\n"):
        cells = line.split(separator)
        for place, scales in mixed.items():
            match = _MEASURED.fullmatch(cells[place].strip()) if place < len(cells) else None
            if match and match[2] in scales:
                cells[place] = repr(float(match[1]) * scales[match[2]])
        lines.append(separator.join(cells))
    return "\n".join(lines).encode()
