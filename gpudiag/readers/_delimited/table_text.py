"""Home-made tables made splittable: quotes, aligned columns, unquoted decimal commas."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Prepare = Callable[[bytes], bytes]
"""A change to a block of whole lines that keeps the number of lines."""

_QUOTED = re.compile(rb'"([^"\n]*)"')
_QUOTED_LINES = re.compile(rb'"([^"\n]*)((?:\n[^"\n]*){1,3})"([^\n]*)')
_DECIMAL = re.compile(rb"-?\d+,\d+")


def unquote(data: bytes) -> bytes:
    """Cells without their quotes; a comma in one becomes a point between digits, else a semicolon."""
    return _QUOTED.sub(_plain_cell, data).replace(b'"', b"")


def unquote_lines(data: bytes) -> bytes:
    """As :func:`unquote`, where cells hold line breaks: of each such cell the first line is kept.

    Blank lines take the place of the breaks, so that line numbers stay true.
    """
    return unquote(_QUOTED_LINES.sub(_first_line, data))


def _plain_cell(match: re.Match[bytes]) -> bytes:
    cell = match[1]
    return cell.replace(b",", b".") if _DECIMAL.fullmatch(cell) else cell.replace(b",", b";")


def _first_line(match: re.Match[bytes]) -> bytes:
    return match[1] + match[3] + b"\n" * match[2].count(b"\n")


def squeeze(data: bytes) -> bytes:
    """Columns that are aligned with blanks, set apart by one."""
    return re.sub(rb"(?m)^ | $", b"", re.sub(rb"[ \t]+", b" ", data))


def join_decimals(names: int, numbers: Sequence[int]) -> Prepare:
    """For rows in which every number was written with a comma and not quoted: ``13:32,361,5`` is two cells."""
    row = [rb"(-?\d+),(\d+)" if place in numbers else rb"([^,\n]*)()" for place in range(names)]
    pattern = re.compile(rb"(?m)^" + rb",".join(row) + rb"$")

    def one(match: re.Match[bytes]) -> bytes:
        pairs = zip(match.groups()[::2], match.groups()[1::2], strict=True)
        return b",".join(whole + (b"." + part if part else b"") for whole, part in pairs)

    return lambda data: pattern.sub(one, data)


def tiles_as_gpus(device: int, tile: int, separator: str) -> Prepare:
    """For rows of tiles of a device: ``0`` and ``1`` become ``0:1`` in the column of the device."""
    mark = separator.encode()

    def one(line: bytes) -> bytes:
        cells = line.split(mark)
        if len(cells) > max(device, tile) and cells[device].strip().isdigit() and cells[tile].strip().isdigit():
            cells[device] = cells[device].strip() + b":" + cells[tile].strip()
        return mark.join(cells)

    return lambda data: b"\n".join(map(one, data.split(b"\n")))


def quoting(text: str) -> Prepare | None:
    """What must be done about quotes in a log that begins like this."""
    if '"' not in text:
        return None
    lines = text.split("\n")
    odd = sum(line.count('"') % 2 for line in lines)
    return unquote_lines if 4 * odd > len(lines) else unquote
