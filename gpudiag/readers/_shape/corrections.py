"""What the numbers of a whole file show to be other than its columns say; each correction is told in a note."""

from __future__ import annotations

from collections.abc import Collection, MutableMapping, Sequence

import numpy as np

from gpudiag.readers._fields.ecc_counters import add_up
from gpudiag.readers._fields.nvidia_fields import COUNTER
from gpudiag.readers._shape.guessed_names import checked

_MOST_BOARD_W = 2500.0
"""No board draws this much: a log whose typical "W" is above it holds milliwatts (Jetson, NVML's own unit)."""
_MOST_BOARD_MIB = 1e7
"""No GPU holds 10 TB: "MiB" above it are KiB or bytes."""
_LEAST_BOARD_MIB = 512.0
"""No board that trains has less: a smaller total is in GiB."""
_ROUNDED_UP = 1.05
_KIB_BOARD = 310 * 2.0**20
"""A total of up to 310 GiB as KiB is a board's; the same number as bytes would be a board of less than 310 MiB."""
_MEMORY = ("mem_total_mib", "mem_used_mib", "mem_free_mib", "mem_reserved_mib")
_MAXIMA = {"mem_max_mib": ("mem_used_mib", "mem_total_mib"), "power_max_w": ("power_w", "power_limit_w")}
"""A column called maximum: what it is the most of, and the limit that it is where it never changes."""
PEAKS = frozenset(_MAXIMA)
_ASSUMED = {"_mib": "MiB", "_w": "W", "_mhz": "MHz"}
_NO_SLIP = 10
"""Utilization above 100 in so many rows of a GPU, and in one of so many, is a sum over GPUs: what is below is no mean
either.
"""
_CLOSE_PCT = 1.5
_AGREE = 0.95


def correct(
    columns: MutableMapping[str, np.ndarray], code: np.ndarray, *, guessed: bool = False, unitless: Collection[str] = ()
) -> list[str]:
    """Correct the columns of one file in place; returns a sentence for each correction.

    Args:
        columns: arrays by column; rows of one GPU stand together, in the order of the file.
        code: which GPU each row speaks of.
        guessed: the columns were named by their units alone.
        unitless: the columns for which neither a name nor a cell tells a unit.
    """
    notes = _maxima(columns, code)
    unitless = {_MAXIMA[name][1] if name in _MAXIMA else name for name in unitless}
    notes += _unitless(columns, [name for name in columns if name in unitless])
    add_up(columns)
    notes += checked(columns, code) if guessed else []
    notes += [*milliwatts(columns), *_fractions(columns), *_sums(columns, code)]
    notes += [*_sizes(columns), *_memory_percent(columns)]
    return [*notes, *_energy(columns, code), *_reasons_from_counters(columns, code)]


def _maxima(columns: MutableMapping[str, np.ndarray], code: np.ndarray) -> list[str]:
    """A maximum that never changes and is not the most that was measured is the limit; any other may be a peak.

    Memory does not reach its limit; power may go above its own.
    """
    left_out = []
    for name, (measured, limit) in _MAXIMA.items():
        if (most := columns.pop(name, None)) is None or limit in columns:
            continue
        changes = (np.abs(np.diff(most)) > 0) & (np.diff(code) == 0)
        values = columns.get(measured, most)
        above = name == "power_max_w" and np.any(values > most)
        if measured in columns and not changes.any() and (above or not np.any(values >= most)):
            columns[limit] = most
        else:
            left_out.append(measured)
    return [f"Its maximum of {', '.join(left_out)} may be a peak: it was not taken for a limit."] if left_out else []


def _unitless(columns: MutableMapping[str, np.ndarray], names: Sequence[str]) -> list[str]:
    """Sizes without a unit share one: MiB, unless the numbers are too large for it, or a total too small."""
    sizes = [name for name in _MEMORY if name in names]
    most = {name: float(np.nanmax(columns[name], initial=0.0)) for name in sizes}
    notes, names = _host_percent(columns, names)
    if sizes and max(most.values()) > _MOST_BOARD_MIB:
        kib = most.get("mem_total_mib", 0.0) > _MOST_BOARD_MIB and max(most.values()) <= _KIB_BOARD
        if most.get("mem_total_mib", 0.0) <= _MOST_BOARD_MIB:  # no board is that small in bytes: its total is in MiB
            sizes = [name for name in sizes if name != "mem_total_mib"]
        for name in sizes:
            columns[name] = columns[name] / (2**10 if kib else 2**20)
        unit = "KiB" if kib else "bytes"
        notes.append(f"The log gives no unit for {', '.join(sizes)}: by their size its numbers were taken as {unit}.")
        names = [name for name in names if name not in sizes]
    elif 1 <= most.get("mem_total_mib", 0.0) < _LEAST_BOARD_MIB:
        sizes = [name for name in sizes if most[name] <= most["mem_total_mib"] * _ROUNDED_UP]
        for name in sizes:
            columns[name] = columns[name] * 2**10
        notes.append(f"The log gives no unit for {', '.join(sizes)}: by their size its numbers were taken as GiB.")
        names = [name for name in names if name not in sizes]
    assumed = [f"{name} in {unit}" for name in names for ending, unit in _ASSUMED.items() if name.endswith(ending)]
    return [*notes, f"The log gives no unit for some columns; assumed: {', '.join(assumed)}."] if assumed else notes


def _host_percent(columns: MutableMapping[str, np.ndarray], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """A sentence and the other names where the memory of a host is told in no unit, and too small for MiB."""
    host = [name for name in names if name.startswith("host.ram_")]
    if not host or max(float(np.nanmax(columns[name], initial=0.0)) for name in host) >= _LEAST_BOARD_MIB:
        return [], list(names)
    for name in host:
        del columns[name]
    return ["The log gives no unit for the host's memory, which may be per cent or GiB: it was not used."], [
        name for name in names if name not in host
    ]


def milliwatts(columns: MutableMapping[str, np.ndarray]) -> list[str]:
    """Power in milliwatts as watts, in place, whatever the order of the rows; returns a sentence for each column."""
    notes = []
    for name in ("power_w", "power_limit_w"):
        values = columns.get(name)
        if values is None or not len(values) or not np.fmax.reduce(values) > _MOST_BOARD_W:
            continue
        if 2 * (values > _MOST_BOARD_W).sum() > (~np.isnan(values)).sum():
            columns[name] = values / 1000
            notes.append(f"{name} was labeled W but its numbers are milliwatts; it was divided by 1000.")
    return notes


def _fractions(columns: MutableMapping[str, np.ndarray]) -> list[str]:
    """Utilization from 0 to 1 as per cent: the driver knows only whole per cents."""
    notes = []
    for name in ("util_pct", "mem_pct"):
        values = columns.get(name, np.empty(0))
        if goes_from_0_to_1(values):
            columns[name] = values * 100
            notes.append(f"{name} goes from 0 to 1 in the log; it was multiplied by 100.")
    return notes


def _sums(columns: MutableMapping[str, np.ndarray], code: np.ndarray) -> list[str]:
    """Utilization that is above 100 too often to be that of one GPU is left out for this GPU."""
    values = columns.get("util_pct", np.empty(0))
    high = values > 100
    if high.sum() < _NO_SLIP:
        return []
    above, told = (np.bincount(code[rows], minlength=int(code.max()) + 1) for rows in (high, ~np.isnan(values)))
    sums = (above >= _NO_SLIP) & (_NO_SLIP * above >= told)
    if not sums.any():
        return []
    columns["util_pct"] = np.where(sums[code], np.nan, values)
    if np.isnan(columns["util_pct"]).all():
        del columns["util_pct"]
    rows = f"{above[sums].sum():,} rows"
    return [f"util_pct is above 100 in {rows}: it may be a sum over GPUs, and was not used for the GPUs named there."]


def goes_from_0_to_1(values: np.ndarray) -> bool:
    """Whether these are parts of one: none beyond, and not all of them whole."""
    if not len(values) or np.fmax.reduce(values) > 1:  # as in nearly every log
        return False
    return bool(np.fmin.reduce(values) >= 0 and (values % 1 > 0).any())


def _memory_percent(columns: MutableMapping[str, np.ndarray]) -> list[str]:
    """What a percentage of memory means: the share that is used, or NVML's share of time in which memory was accessed.

    A share that is used equals used / total, or else is no whole number, which NVML's always is.
    """
    share = columns.pop("mem_pct", None)
    if share is None or np.isnan(share).all():
        return []
    used, total = columns.get("mem_used_mib"), columns.get("mem_total_mib")
    known = ~np.isnan(share)
    if used is not None and total is not None:
        known &= ~np.isnan(used) & (total > 0)
        full = 100 * used[known] / total[known]
        fills = known.any() and float((np.abs(full - share[known]) <= _CLOSE_PCT).mean()) >= _AGREE
        idle = bool(known.any()) and float(np.max(full, initial=0.0)) <= _CLOSE_PCT
        if fills and not idle:
            return ["Its percentage of memory equals used / total: it is how full memory is, not how busy."]
    elif (share[known] != np.round(share[known])).any():
        if total is not None:
            columns["mem_used_mib"] = share * total / 100
        return ["Its percentage of memory has fractions, so it is how full memory is, not NVML's memory utilization."]
    if "mem_util_pct" not in columns:
        columns["mem_util_pct"] = share
    return ["Its percentage of memory was taken as NVML's memory utilization (time with accesses), not as fullness."]


def _energy(columns: MutableMapping[str, np.ndarray], code: np.ndarray) -> list[str]:
    """A counter never falls; energy that does is that of single samples, which the power column tells better."""
    energy = columns.get("energy_j")
    if energy is None or not ((np.diff(energy) < 0) & (np.diff(code) == 0)).any():
        return []
    del columns["energy_j"]
    return ["Its energy column falls, so it is no counter; it was not used."]


def _sizes(columns: MutableMapping[str, np.ndarray]) -> list[str]:
    """Used or total memory, whichever the log lacks, from free memory."""
    free = columns.pop("mem_free_mib", None)
    if free is None or ("mem_used_mib" in columns) == ("mem_total_mib" in columns):
        return []
    reserved = np.nan_to_num(columns.get("mem_reserved_mib", 0.0))
    if "mem_used_mib" in columns:
        total = columns["mem_used_mib"] + free + reserved
        if not (total > 0).any():
            return []
        columns["mem_total_mib"] = np.where(total > 0, total, np.nan)
        return ["The log has no total memory: it was taken as used plus free."]
    columns["mem_used_mib"] = columns["mem_total_mib"] - free - reserved
    return ["The log has no used memory: it was taken as total minus free."]


def _reasons_from_counters(columns: MutableMapping[str, np.ndarray], code: np.ndarray) -> list[str]:
    """A counter of the time a reason was active that has grown since the GPU's sample before sets its bit."""
    names = [name for name in columns if name.startswith(COUNTER)]
    if not names:
        return []
    order = np.argsort(code, kind="stable")
    same = np.diff(code[order]) == 0
    mask = np.full(len(code), np.nan)
    for name in names:
        values = columns.pop(name)
        step = np.diff(values[order])
        known = np.append(False, same & ~np.isnan(step))
        bits = np.where(np.append(False, step > 0) & known, int(name.removeprefix(COUNTER)), 0)
        mask[order] = np.where(known, np.nan_to_num(mask[order]) + bits, mask[order])
    columns["throttle_reasons"] = mask
    columns["throttle_known"] = np.full(len(code), float(sum(int(name.removeprefix(COUNTER)) for name in names)))
    return ["Reasons for low clocks come from counters: one that grew since the sample before counts as active."]
