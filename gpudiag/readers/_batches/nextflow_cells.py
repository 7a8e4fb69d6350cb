"""The cells of Nextflow's trace file: its columns, and durations and sizes as it writes them.

Names are those of TraceRecord.FIELDS (https://github.com/nextflow-io/nextflow). With ``trace.raw`` durations are whole
milliseconds and sizes bytes, without a unit; a unit is never missing otherwise, but for ``0``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

NOTHING = ("", "-", "null")
_NAMES = (
    "task_id hash native_id process module container tag name status exit submit start complete duration realtime %cpu "
    "%mem rss vmem peak_rss peak_vmem rchar wchar syscr syscw read_bytes write_bytes attempt workdir script scratch "
    "queue cpus memory disk time env error_action vol_ctxt inv_ctxt hostname cpu_model"
)
FIELDS = frozenset(_NAMES.split())
_OWN = frozenset(("hash", "native_id", "realtime", "%cpu", "peak_rss", "peak_vmem", "rchar", "wchar"))
_TIMES = frozenset(("submit", "start", "complete", "duration", "realtime"))
_LENGTH_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LENGTH = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) ?(ms|[smhd])")
MOST_S = 3e8
"""No task takes ten years."""
_SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,15})?)(?: ?([KMGTPEZ]?)B)?")


def is_trace_header(names: Iterable[str]) -> bool:
    """Nothing but columns of Nextflow, among them a state, a time and two that hardly anybody else has."""
    held = set(names)
    return held <= FIELDS and "status" in held and len(held & _OWN) > 1 and bool(held & _TIMES)


def seconds(cell: str) -> float:
    """``1m 39s``, ``7.2s``, ``325ms`` or raw milliseconds in seconds; NaN for anything else."""
    if cell.isascii() and cell.isdigit():
        cell += "ms"
    found = [_LENGTH.fullmatch(part) for part in cell.split(" ")]
    length = math.fsum(float(one[1]) * _LENGTH_S[one[2]] if one else math.nan for one in found)
    return length if length <= MOST_S else math.nan


def mib(cell: str) -> float:
    """``108.1 MB`` (of 1024 KB) or raw bytes in MiB; NaN for anything else."""
    found = _SIZE.fullmatch(cell)
    if found is None:
        return math.nan
    return float(found[1]) * 1024.0 ** (" KMGTPEZ".index(found[2] or " ") - 2)


def count(cell: str) -> float:
    """A whole number; NaN for anything else."""
    return float(cell) if re.fullmatch(r"[0-9]{1,9}", cell) else math.nan


def percent(cell: str) -> float:
    """``79.6%`` or, raw, ``79.6``; of several cores more than 100. NaN for anything else."""
    found = re.fullmatch(r"([0-9]{1,7}(?:\.[0-9]{1,15})?)%?", cell)
    return float(found[1]) if found else math.nan
