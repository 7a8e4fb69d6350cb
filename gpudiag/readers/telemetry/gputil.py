"""``GPUtil.showUtilization()``: blocks ``| ID | GPU | MEM |``, printed among other lines or alone.

``MEM`` is used over total memory; without ``all=True`` no size is printed, so that it cannot be told in MiB.
"""

from __future__ import annotations

import re

from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.moments import Moment, read_moment
from gpudiag.readers._shape.snapshots import Snapshots, quantity
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "GPUtil"
NOTE = "GPUtil printed memory as a share of its size only; say memory by another tool to have it in MiB."

_HEADER = re.compile(r"\s*\|\s*ID\s*\|(?:\s*GPU\s*\|\s*MEM\s*\||\s*Name\s*\|.*GPU util\..*\|)\s*")
_COLUMNS = {
    "GPU": ("util_pct", "%"),
    "GPU util.": ("util_pct", "%"),
    "GPU temp.": ("temp_c", "C"),
    "Memory total": ("mem_total_mib", "MB"),
    "Memory used": ("mem_used_mib", "MB"),
}


def recognises(source: Source) -> bool:
    """True where such blocks are most of the file; a training log that prints one is another kind of input."""
    lines = [line for line in source.lines if line.strip()]
    block = sum(line.lstrip().startswith(("|", "----")) for line in lines)
    return 2 * block >= len(lines) and any(_HEADER.fullmatch(line) for line in lines)


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    snapshots = Snapshots()
    names: list[str] = []
    moment: Moment | None = None
    for number, line in numbered_lines(source, log):
        stated = read_moment(line)
        if _HEADER.fullmatch(line):
            names = [name.strip() for name in line.strip().split("|")]
            snapshots.begin(moment)
            moment = None
        elif names and line.lstrip().startswith("|"):
            _row(line, names, number, snapshots, log)
        elif stated and stated.day and stated.clock:
            moment, names = stated, []
        elif line.strip(" -"):
            log.add("line that is no sample", line=number, example=line)
            names = names if line.lstrip().startswith("-") else []
    sized = any("mem_used_mib" in row for row in snapshots.gpu)
    return snapshots.finish(source, NAME, options, log, () if sized else (NOTE,))


def _row(line: str, names: list[str], number: int, snapshots: Snapshots, log: ProblemLog) -> None:
    cells = dict(zip(names, (cell.strip() for cell in line.strip().split("|")), strict=False))
    if line.count("|") != len(names) - 1 or not cells.get("ID", "").isdecimal():
        log.add("torn row", line=number, example=line, lost=True)
        return
    values = {column: quantity(cells[name], unit) for name, (column, unit) in _COLUMNS.items() if name in cells}
    snapshots.describe(cells["ID"], name=cells.get("Name"), uuid=cells.get("UUID"))
    snapshots.sample(cells["ID"], number, **values)


READER = Reader(NAME, recognises, read)
