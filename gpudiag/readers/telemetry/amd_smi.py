"""``amd-smi metric --csv -w`` and ``amd-smi monitor``, as CSV or aligned text; timestamps are seconds since 1970.

The tool's MB are MiB. ``umc_activity`` is how busy the memory controller was. Lists in a cell are not read.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from gpudiag.readers._io.csv_records import cells_of
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.moments import Moment
from gpudiag.readers._shape.snapshots import Snapshots, quantity
from gpudiag.readers._shape.ticks import is_epoch
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "amd-smi"

_METRIC = {
    "util_pct": ("gfx_activity",),
    "mem_util_pct": ("umc_activity",),
    "power_w": ("socket_power", "current_socket_power", "average_socket_power"),
    "temp_c": ("edge", "hotspot"),
    "mem_temp_c": ("mem",),
    "sm_clock_mhz": ("gfx_0_clk",),
    "mem_clock_mhz": ("mem_0_clk",),
    "mem_used_mib": ("used_vram",),
    "mem_total_mib": ("total_vram",),
    "energy_j": ("total_energy_consumption",),
}
_MONITOR = {
    "util_pct": ("gfx_util", "gfx%", "gfx"),
    "mem_util_pct": ("mem_util", "mem%", "mem"),
    "power_w": ("power", "power_usage"),
    "temp_c": ("gpu_temp", "gpu_t", "hotspot_temperature"),
    "mem_temp_c": ("mem_temp", "mem_t", "memory_temperature"),
    "sm_clock_mhz": ("gfx_clock", "gfx_clk"),
    "mem_clock_mhz": ("mem_clock", "mem_clk"),
    "mem_used_mib": ("vram_used",),
    "mem_total_mib": ("vram_total",),
}
"""The same name ``mem`` is a temperature in metric and a utilization in monitor."""

_SIZE = r"\d+(?:\.\d+)?"
_USAGE = re.compile(rf"({_SIZE}) ?/ *({_SIZE}) ?GB")
_TOKEN = re.compile(
    rf"{_SIZE} ?/ *{_SIZE} ?GB"
    r"|N/A(?: ?Mb/s)?|-?\d+(?:\.\d+)?(?: ?(?:W|°C|\S?C|%|MHz|MB|Mb/s|V))?(?=\s|$)|\S+"
)
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(?:\s*(?:W|\S{0,2}C|%|MHz|MB|J))?")


def _header(line: str) -> tuple[list[str], bool] | None:
    """Names in lower case and whether commas part them, if the line is a header of one of the commands."""
    comma = "," in line
    names = [name.strip().lower() for name in line.split(",")] if comma else line.lower().split()
    if names[:1] != ["gpu"] and names[:2] != ["timestamp", "gpu"]:
        return None
    rest = set(names)
    metric = comma and {"gfx_activity", "umc_activity"} <= rest
    monitor = bool(rest & {"gpu_temp", "gpu_t", "hotspot_temperature"}) and bool(rest & set(_MONITOR["util_pct"]))
    return (names, comma) if metric or monitor else None


def recognises(source: Source) -> bool:
    return any(_header(line) for line in source.lines if "gpu" in line[:40].lower())


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    snapshots = Snapshots()
    names: list[str] = []
    comma = False
    last, seen = "", set[str]()
    for number, line in numbered_lines(source, log):
        header = _header(line) if not line[:1].isdecimal() else None
        if header is not None:
            names, comma = header
            continue
        cells = _cells(line, comma)
        if not cells:
            continue
        values = dict(zip(names, cells, strict=False))
        timestamp = values.get("timestamp", "")
        if (
            len(cells) != len(names)
            or not values["gpu"].isdecimal()
            or ("timestamp" in names and moment_of(timestamp) is None)
        ):
            torn = cells[0].isdecimal()
            log.add("torn row" if torn else "line that is no sample", line=number, example=line, lost=torn)
            continue
        if not snapshots.moments or timestamp != last or values["gpu"] in seen:
            snapshots.begin(moment_of(timestamp))
            last, seen = timestamp, set()
        seen.add(values["gpu"])
        snapshots.sample(values["gpu"], number, **columns_of(values))
    return snapshots.finish(source, NAME, options, log)


def columns_of(values: dict[str, str]) -> dict[str, float | None]:
    """The columns of table ``gpu`` from cells by their names in lower case."""
    if match := _USAGE.fullmatch(values.get("vram_usage", "")):
        sizes = (f"{float(size) * 1024:g} MB" for size in match.groups())
        values |= zip(("vram_used", "vram_total"), sizes, strict=True)
    columns = _METRIC if "gfx_activity" in values else _MONITOR
    return {key: _first(values, places) for key, places in columns.items()}


def _cells(line: str, comma: bool) -> list[str]:
    if comma:
        return [cell.strip() for cell in cells_of(line)]
    return _TOKEN.findall(line)


def moment_of(text: str) -> Moment | None:
    """The moment of a count of seconds since 1970."""
    epoch_s = quantity(text)
    if not is_epoch(epoch_s):
        return None
    return Moment(datetime.fromtimestamp(epoch_s, UTC).replace(tzinfo=None), utc=True)


def _first(values: dict[str, str], names: tuple[str, ...]) -> float | None:
    for name in names:
        match = _NUMBER.fullmatch(values.get(name, ""))
        if match:
            return float(match[1])
    return None


READER = Reader(NAME, recognises, read)
