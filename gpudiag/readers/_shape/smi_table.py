"""The lines of the table that plain ``nvidia-smi`` prints, drivers 390 to 610: what each states.

Layouts differ in widths and headings, so that cells are told by their form: ``39C``, ``P0``, ``41W / 250W``,
``0MiB / 32768MiB``, ``69%``. Cells may hold ``N/A`` (also the utilization of a GPU in MIG mode) or ``ERR!``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from gpudiag.patterns import late
from gpudiag.readers._io.source import Source

_BANNER_LINE = late(r"\|\s+NVIDIA-SMI\s+\d+\.\d+")
_DRIVER = late(r"(?:Driver|KMD) Version:\s*(\d[\d.]*)")
_HEAD_ROW = late(
    r"\|\s*(?P<gpu>\d+)\s+(?P<name>\S.*?)\s+(?P<mode>On|Off|N/A|WDDM|TCC|MCDM|ERR!)\s*"
    r"\|\s*(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*(?P<display>\S*)\s*"
    r"\|\s*(?P<ecc>.*?)\s*\|\s*$"
)
_VALUE_ROW = late(
    r"\|\s*(?P<fan>\S+)\s+(?P<temp>\S+)\s+(?P<perf>\S+)\s+(?P<power>\S+)\s*/\s*(?P<cap>\S+?)\s*"
    r"\|\s*(?P<memory>\S.*?)\s*\|\s*(?P<util>\S+)\s+.*\|\s*$"
)
_PROCESS_ROW = late(
    r"\|\s+(?P<gpu>\d+)\s+(?:\S+\s+\S+\s+)?(?P<pid>\d{1,10})\s+(?:C|G|C\+G|M\+C|M|\S{1,3})\s+(?P<name>\S.*?)\s+"
    r"(?P<memory>\d+MiB|N/A|-|ERR!)\s*\|\s*$"
)
_MEMORY = late(r"(\d+)MiB\s*/\s*(\d+)MiB")
_NUMBER = late(r"(\d+(?:\.\d+)?)(%|C|W|MiB)?")
LOST = late(r"GPU is lost|GPU requires reset", re.IGNORECASE)
NAN = float("nan")


@dataclass(frozen=True)
class GpuHeading:
    """First line of a GPU: index, name (cut to the width of its cell), PCI bus id and uncorrectable ECC errors."""

    gpu: str
    name: str
    bus_id: str
    ecc_uncorrected: float = NAN


@dataclass(frozen=True)
class SmiReadings:
    """Second line of a GPU; NaN is unknown. ``lost`` is the text that says the GPU is gone."""

    fan_pct: float
    temp_c: float
    pstate: float
    power_w: float
    power_limit_w: float
    mem_used_mib: float
    mem_total_mib: float
    util_pct: float
    errors: int
    lost: str = ""


def is_table(source: Source) -> bool:
    """True for a log of tables: two of them, or one with nothing but prose of its own length around it."""
    if "NVIDIA-SMI" not in source.text:
        return False
    lines = [line for line in source.lines if line.strip()]
    banners = sum(_BANNER_LINE.search(line) is not None for line in lines)
    framed = sum(line.rstrip().endswith(("|", "+")) and ("|" in line or "--" in line) for line in lines)
    return banners > 1 or (banners == 1 and 2 * framed >= len(lines))


def driver(line: str) -> str:
    """The driver version in a banner line, or an empty text."""
    match = _DRIVER.search(line)
    return match[1] if match else ""


def head_row(line: str) -> GpuHeading | None:
    match = _HEAD_ROW.match(line)
    if match is None:
        return None
    errors = float(match["ecc"]) if match["ecc"].isdecimal() else NAN
    return GpuHeading(match["gpu"], match["name"], match["bus"], errors)


@lru_cache(maxsize=65536)
def value_row(line: str) -> SmiReadings | None:
    """The values of one GPU, or None if the line is torn or something else."""
    match = _VALUE_ROW.match(line)
    if match is None:
        return None
    lost = LOST.search(match["memory"])
    memory = _MEMORY.fullmatch(match["memory"])
    if memory is None and not lost and _number(match["memory"], "MiB") is None and "/" not in match["memory"]:
        return None
    cells = [
        _number(match[name], unit)
        for name, unit in (("fan", "%"), ("temp", "C"), ("power", "W"), ("cap", "W"), ("util", "%"))
    ]
    if any(cell is None for cell in cells):
        return None
    fan, temp, power, cap, util = (cell for cell in cells if cell is not None)
    perf = match["perf"]
    return SmiReadings(
        fan_pct=fan,
        temp_c=temp,
        pstate=float(perf[1:]) if perf[:1] == "P" and perf[1:].isdecimal() else NAN,
        power_w=power,
        power_limit_w=cap,
        mem_used_mib=float(memory[1]) if memory else NAN,
        mem_total_mib=float(memory[2]) if memory else NAN,
        util_pct=util,
        errors=line.count("ERR!"),
        lost=lost[0] if lost else "",
    )


def _number(cell: str, unit: str) -> float | None:
    """The number in a cell, NaN for a cell that says it has none, None for a cell of another form."""
    if cell in ("N/A", "ERR!", "-", "Off", "[N/A]", "Unknown"):
        return NAN
    match = _NUMBER.fullmatch(cell)
    return float(match[1]) if match and match[2] == unit else None


@lru_cache(maxsize=65536)
def process_row(line: str) -> tuple[str, int, str, float] | None:
    """GPU, pid, name and memory in MiB of a row below ``Processes:``."""
    match = _PROCESS_ROW.match(line)
    if match is None:
        return None
    memory = match["memory"]
    return match["gpu"], int(match["pid"]), match["name"], float(memory[:-3]) if memory[-3:] == "MiB" else NAN
