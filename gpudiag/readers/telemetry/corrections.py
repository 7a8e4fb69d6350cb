"""What the numbers of a whole file show to be other than its columns say; each correction is told in a note."""

from __future__ import annotations

from collections.abc import MutableMapping

import numpy as np

from gpudiag.readers.telemetry.nvidia_fields import COUNTER

_MOST_BOARD_W = 2500.0
"""No board draws this much: a log whose typical "W" is above it holds milliwatts (Jetson, NVML's own unit)."""


def correct(columns: MutableMapping[str, np.ndarray], code: np.ndarray) -> list[str]:
    """Correct the columns of one file in place; returns a sentence for each correction.

    Args:
        columns: arrays by column, rows in the order of the file.
        code: which GPU each row speaks of.
    """
    return [*_milliwatts(columns), *_sizes(columns), *_reasons_from_counters(columns, code)]


def _milliwatts(columns: MutableMapping[str, np.ndarray]) -> list[str]:
    notes = []
    for name in ("power_w", "power_limit_w"):
        values = columns.get(name)
        if values is not None and 2 * (values > _MOST_BOARD_W).sum() > (~np.isnan(values)).sum():
            columns[name] = values / 1000
            notes.append(f"{name} was labelled W but its numbers are milliwatts; it was divided by 1000.")
    return notes


def _sizes(columns: MutableMapping[str, np.ndarray]) -> list[str]:
    """Used or total memory, whichever the log lacks, from free memory."""
    free = columns.pop("mem_free_mib", None)
    if free is None or ("mem_used_mib" in columns) == ("mem_total_mib" in columns):
        return []
    reserved = np.nan_to_num(columns.get("mem_reserved_mib", 0.0))
    if "mem_used_mib" in columns:
        columns["mem_total_mib"] = columns["mem_used_mib"] + free + reserved
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
    return ["Reasons for low clocks come from counters: one that grew since the sample before counts as active."]
