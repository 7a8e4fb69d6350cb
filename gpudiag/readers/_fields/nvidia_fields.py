"""The fields of nvidia-smi --query-gpu under all their names, and what a header line of them means."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from gpudiag.readers._delimited.grid import Field, FieldKind, Layout, is_missing
from gpudiag.readers._delimited.unnamed_cells import aligned
from gpudiag.readers._fields.aliases import meaning_of
from gpudiag.readers._fields.ecc_counters import PART, PARTS, TOTAL
from gpudiag.readers._shape.timestamp_forms import NVIDIA, tell_form

REASON_BITS = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
}
"""Bits of NVML's clocks-event reasons, by the end of the field's name."""

_BY_TARGET: tuple[tuple[str, FieldKind, str, str], ...] = (
    ("time", "time", "", "timestamp"),
    ("index", "number", "", "index gpu_index"),
    ("uuid", "text", "", "uuid gpu_uuid"),
    ("bus_id", "text", "", "pci.bus_id gpu_bus_id"),
    ("name", "text", "", "name gpu_name"),
    ("driver", "text", "", "driver_version"),
    ("host", "text", "", "hostname host node"),
    ("util_pct", "number", "%", "utilization.gpu"),
    ("mem_util_pct", "number", "%", "utilization.memory"),
    ("enc_pct", "number", "%", "utilization.encoder"),
    ("dec_pct", "number", "%", "utilization.decoder"),
    ("mem_used_mib", "number", "MiB", "memory.used"),
    ("mem_total_mib", "number", "MiB", "memory.total"),
    ("mem_reserved_mib", "number", "MiB", "memory.reserved"),
    ("mem_free_mib", "number", "MiB", "memory.free"),
    ("power_w", "number", "W", "power.draw gpu.power.draw power.draw.average gpu.power.draw.average "
     "power.draw.instant gpu.power.draw.instant"),
    ("power_limit_w", "number", "W", "enforced.power.limit gpu.power.current_limit power.limit "
     "gpu.power.requested_limit"),
    ("power_default_w", "number", "W", "power.default_limit gpu.power.default_limit"),
    ("temp_c", "number", "", "temperature.gpu"),
    ("mem_temp_c", "number", "", "temperature.memory"),
    ("fan_pct", "number", "%", "fan.speed"),
    ("pstate", "number", "", "pstate"),
    ("sm_clock_mhz", "number", "MHz", "clocks.current.sm clocks.sm clocks.current.graphics clocks.gr"),
    ("sm_clock_max_mhz", "number", "MHz", "clocks.max.sm clocks.max.graphics clocks.max.gr"),
    ("mem_clock_mhz", "number", "MHz", "clocks.current.memory clocks.mem"),
    ("throttle_reasons", "mask", "", "clocks_event_reasons.active clocks_throttle_reasons.active"),
    (TOTAL, "number", "", "ecc.errors.uncorrected.volatile.total"),
    *((PART + name, "number", "", f"ecc.errors.uncorrected.volatile.{name.replace('sram_', 'sram.')}")
      for name in PARTS),
)  # fmt: skip
"""Target, kind, unit, and the names by preference: of two that are there, the first with known cells is read."""

_UNDOTTED_NAMES = """
    timestamp index name gpu_name uuid gpu_uuid gpu_bus_id driver_version kmd_version count serial gpu_serial hostname
    host node pstate compute_mode compute_cap vbios_version persistence_mode addressing_mode display_mode
    display_active display_attached edpp_multiplier gpu_recovery_action
"""
_UNDOTTED = frozenset(_UNDOTTED_NAMES.split())
_NAME = re.compile(r"(?P<name>[A-Za-z][\w.]*)(?: ?\[(?P<unit>[^\]]+)\])?")
_REASON = re.compile(r"clocks_(?:event|throttle)_reasons\.(\w+)")
_COUNTER = re.compile(r"clocks_event_reasons_counters\.(\w+)")
COUNTER = "counter_"
"""Beginning of the target of a cumulative counter of reason time; its bit follows."""


def split_header(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def legal(names: Sequence[str]) -> bool:
    """True if these can be names of --query-gpu fields, one of them at least being one we read."""
    parts = [_NAME.fullmatch(name) for name in names]
    bare = [part["name"] for part in parts if part is not None]
    if len(bare) < len(names) or any("." not in name and name not in _UNDOTTED for name in bare):
        return False
    return any(_field(name).target not in ("", "time", "index", "name", "host") for name in names)


def announces(line: str, below: Callable[[], list[str]]) -> Layout | None:
    """The layout that a header line of --query-gpu announces, with the units that the rows below it show."""
    names = split_header(line)
    return layout_of(names, below()) if legal(names) else None


def layout_of(names: Sequence[str], rows: Sequence[str]) -> Layout:
    """The layout of columns with these names; a few rows tell whether cells carry units."""
    separator = ", " if not rows or any(", " in row for row in rows) or len(names) == 1 else ","
    table = _alike([[cell.strip() for cell in row.split(",")] for row in rows], len(names))
    named = aligned(names, [_field(name).target for name in names], table)
    columns = [[cells[place] for cells in table if not is_missing(cells[place])] for place in range(len(named))]
    fields = [_with_unit(_field(name), cells, columns) for name, cells in zip(named, columns, strict=True)]
    layout = Layout(tuple(_preferred(fields, columns)), separator)
    if len(named) == len(names):
        return layout
    times = [cells for field, cells in zip(fields, columns, strict=True) if field.kind == "time"]
    return replace(layout.relaxed(), timestamp=(tell_form(times[0]) if times else None) or NVIDIA)


def _alike(rows: Sequence[list[str]], size: int) -> list[list[str]]:
    """The rows as long as the header; if hardly any is, those of the commonest greater length."""
    lengths = Counter(len(row) for row in rows if len(row) >= size)
    if 4 * lengths[size] >= lengths.total():
        return [row for row in rows if len(row) == size]
    return [row for row in rows if len(row) == lengths.most_common(1)[0][0]]


def own_name(name: str) -> str:
    """The --query-gpu name of a column that a person named in other words; the name itself if none fits."""
    if _field(name).target:
        return name
    target = meaning_of(name).target
    target = "mem_util_pct" if target == "mem_pct" else target
    return next((names.split()[0] for known, _, _, names in _BY_TARGET if known == target), name)


@lru_cache
def _field(written: str) -> Field:
    match = _NAME.fullmatch(written)
    name = match["name"] if match else written
    for target, kind, unit, names in _BY_TARGET:
        if name in names.split():
            return Field(written, target, kind, unit, prefix="P" if target == "pstate" else "")
    if (match := _REASON.fullmatch(name)) and match[1] in REASON_BITS:
        return Field(written, f"flag_{REASON_BITS[match[1]]}", "flag", bit=REASON_BITS[match[1]])
    if (match := _COUNTER.fullmatch(name)) and match[1] in REASON_BITS:
        return Field(written, f"{COUNTER}{REASON_BITS[match[1]]}", "number", "us", bit=REASON_BITS[match[1]])
    return Field(written)


def _with_unit(field: Field, cells: Sequence[str], columns: Sequence[Sequence[str]]) -> Field:
    """The field with what its cells show of units and fractions; without a known cell, the file's habit decides."""
    if field.kind != "number":
        return field
    whole = bool(cells) and all(cell.removesuffix(f" {field.unit}").isdecimal() for cell in cells)
    field = replace(field, whole=whole and field.target not in ("index", "pstate"))
    if not field.unit:
        return field
    suffix = f" {field.unit}"
    shown = cells or [cell for column in columns for cell in column]
    ends = (suffix,) if cells else (" %", " MiB", " W", " MHz", " us")
    return replace(field, unit=suffix if not shown or any(cell.endswith(ends) for cell in shown) else "")


def _preferred(fields: Sequence[Field], columns: Sequence[Sequence[str]]) -> list[Field]:
    """The fields with at most one for each target; flags and counters only where nothing better tells the reasons."""
    chosen: dict[str, int] = {}
    told = {field.target for field in fields}
    for target, _, _, names in _BY_TARGET:
        if target in told:
            places = [place for place, field in enumerate(fields) if field.target == target]
            rank = names.split().index
            chosen[target] = min(places, key=lambda place: (not columns[place], rank(_bare(fields[place].name))))
    kinds = ["mask"] if "throttle_reasons" in chosen else ["flag"] if any(f.kind == "flag" for f in fields) else []
    for place, field in enumerate(fields):
        if field.kind == "flag" or field.target.startswith(COUNTER):
            wanted = not kinds or (kinds == ["flag"] and field.kind == "flag")
            if wanted:
                chosen.setdefault(field.target, place)
    return [
        field if not field.target or chosen.get(field.target) == place else Field(field.name)
        for place, field in enumerate(fields)
    ]


def _bare(written: str) -> str:
    match = _NAME.fullmatch(written)
    return match["name"] if match else written
