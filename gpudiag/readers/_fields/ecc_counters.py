"""Counters of uncorrectable ECC errors: one total, or parts by where the errors were, which drivers name differently.

Volatile ones count since the driver was loaded (nvidia-smi --help-query-gpu). Of Ampere and later they are of DRAM and
SRAM, of older boards of device memory and of each kind of memory on the chip.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import reduce

import numpy as np

TOTAL = "ecc_uncorrected"
PART = "ecc_part_"
"""Beginning of the target of a part; its place follows."""
PARTS = (
    *("dram", "device_memory", "sram", "sram_parity", "sram_secded"),
    *("register_file", "l1_cache", "l2_cache", "texture_memory", "cbu"),
)
_WHOLE = (
    (("dram",), ("device_memory",)),
    (("sram",), ("sram_parity", "sram_secded"), PARTS[5:]),
)
"""For memory off and on the chip: names that together are all of it, the best ones first."""


def add_up(columns: MutableMapping[str, np.ndarray]) -> None:
    """Put the total in the place of the parts, in place. A part that is unknown adds nothing: it is a least total."""
    parts = {name: columns.pop(PART + name) for name in PARTS if PART + name in columns}
    if not parts:
        return
    unknown = np.full(len(next(iter(parts.values()))), np.nan)
    groups = [
        reduce(_or, ([reduce(_plus, (parts.get(name, unknown) for name in names)) for names in ways]))
        for ways in _WHOLE
    ]
    columns[TOTAL] = _or(columns.get(TOTAL, unknown), reduce(_plus, groups))


def _or(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(first), second, first)


def _plus(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(first), second, np.where(np.isnan(second), first, first + second))
