"""DCGM fields: their numbers, short tags (``dcgmi dmon``), long names and exporter names, old and new.

Source: dcgmlib/dcgm_fields.h and dcgmlib/src/dcgm_fields.cpp of NVIDIA DCGM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpudiag.units import MIB_PER_BYTE


@dataclass(frozen=True)
class Metric:
    """A column of table ``gpu`` and the factor from the unit of the source to the column's.

    ``rank``: where several sources fill one column, the lowest rank goes first. ``instance``: under MIG the
    value is that of one GPU instance, not of the board. ``most``: what the parts of the pods of a shared GPU add up to
    at most, where dcgm-exporter may give one for each; NaN where a pod's series is the board's.
    """

    column: str
    factor: float = 1.0
    rank: int = 0
    instance: bool = False
    most: float = math.nan


FB_FREE = "fb_free_mib"
"""Not a column of the schema; with used and reserved it makes the total where that is not exported."""
ENGINE = "engine_active_pct"
INSTANCE = "engine_of_instance_"
"""Beginning of the name under which the engine's activity of one MIG instance is kept until it is settled."""
XID = "xid"
"""Not a column of the schema: the last XID error becomes an event."""

_FIELDS: tuple[tuple[int, str, str, Metric, tuple[str, ...]], ...] = (
    (100, "SMCLK", "sm_clock", Metric("sm_clock_mhz"), ("DEV_SM_CLOCK",)),
    (101, "MMCLK", "memory_clock", Metric("mem_clock_mhz"), ("DEV_MEM_CLOCK",)),
    (
        112,
        "DVCCTR",
        "current_clocks_event_reasons",
        Metric("throttle_reasons"),
        ("DEV_CLOCKS_EVENT_REASONS", "DEV_CLOCK_THROTTLE_REASONS"),
    ),
    (140, "MMTMP", "memory_temp", Metric("mem_temp_c"), ("DEV_MEMORY_TEMP", "DEV_MEMORY_TEMP_CELSIUS")),
    (150, "TMPTR", "gpu_temp", Metric("temp_c"), ("DEV_GPU_TEMP", "DEV_GPU_TEMP_CELSIUS")),
    (155, "POWER", "power_usage", Metric("power_w"), ("DEV_POWER_USAGE", "DEV_BOARD_POWER_WATTS")),
    (156, "TOTEC", "total_energy_consumption", Metric("energy_j", 1e-3), ("DEV_TOTAL_ENERGY_CONSUMPTION",)),
    (
        157,
        "POWINST",
        "power_usage_instant",
        Metric("power_w", rank=1),
        ("DEV_POWER_USAGE_INSTANT", "DEV_BOARD_POWER_RAW_WATTS"),
    ),
    (
        160,
        "PMLMT",
        "power_management_limit",
        Metric("power_limit_w", rank=1),
        ("DEV_POWER_MGMT_LIMIT", "DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS"),
    ),
    (
        164,
        "EPLMT",
        "enforced_power_limit",
        Metric("power_limit_w"),
        ("DEV_ENFORCED_POWER_LIMIT", "DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS"),
    ),
    (190, "PSTAT", "pstate", Metric("pstate"), ("DEV_PSTATE", "DEV_GPU_PSTATE")),
    (191, "FANSP", "fan_speed", Metric("fan_pct"), ("DEV_FAN_SPEED",)),
    (200, "TXTPT", "pcie_tx_throughput", Metric("pcie_tx_mib_s", 1 / 1024, 1), ("DEV_PCIE_TX_THROUGHPUT",)),
    (201, "RXTPT", "pcie_rx_throughput", Metric("pcie_rx_mib_s", 1 / 1024, 1), ("DEV_PCIE_RX_THROUGHPUT",)),
    (
        203,
        "GPUTL",
        "gpu_utilization",
        Metric("util_pct", instance=True, most=100.0),
        ("DEV_GPU_UTIL", "DEV_GPU_UTIL_RATIO"),
    ),
    (204, "MCUTL", "mem_copy_utilization", Metric("mem_util_pct", instance=True), ("DEV_MEM_COPY_UTIL",)),
    (206, "ECUTL", "enc_utilization", Metric("enc_pct", instance=True), ("DEV_ENC_UTIL",)),
    (207, "DCUTL", "dec_utilization", Metric("dec_pct", instance=True), ("DEV_DEC_UTIL",)),
    (230, "XIDER", "xid_errors", Metric(XID), ("DEV_XID_ERRORS", "DEV_XID_ERROR")),
    (250, "FBTTL", "fb_total", Metric("mem_total_mib", instance=True), ("DEV_FB_TOTAL",)),
    (251, "FBFRE", "fb_free", Metric(FB_FREE, instance=True), ("DEV_FB_FREE",)),
    (252, "FBUSD", "fb_used", Metric("mem_used_mib", instance=True, most=math.inf), ("DEV_FB_USED",)),
    (253, "FBRSV", "fb_resv", Metric("mem_reserved_mib", instance=True), ("DEV_FB_RESERVED",)),
    (311, "EDVTL", "ecc_dbe_volatile_total", Metric("ecc_uncorrected"), ("DEV_ECC_DBE_VOL_TOTAL",)),
    (
        1001,
        "GRACT",
        "gr_engine_active",
        Metric(ENGINE, 100, instance=True),
        ("PROF_GR_ENGINE_ACTIVE", "PROF_GR_ENGINE_UTIL_RATIO"),
    ),
    (
        1002,
        "SMACT",
        "sm_active",
        Metric("sm_active_pct", 100, instance=True),
        ("PROF_SM_ACTIVE", "PROF_SM_UTIL_RATIO"),
    ),
    (
        1003,
        "SMOCC",
        "sm_occupancy",
        Metric("sm_occupancy_pct", 100, instance=True),
        ("PROF_SM_OCCUPANCY", "PROF_SM_OCCUPANCY_RATIO"),
    ),
    (
        1004,
        "TENSO",
        "tensor_active",
        Metric("tensor_active_pct", 100, instance=True),
        ("PROF_PIPE_TENSOR_ACTIVE", "PROF_TENSOR_UTIL_RATIO"),
    ),
    (
        1005,
        "DRAMA",
        "dram_active",
        Metric("dram_active_pct", 100, instance=True),
        ("PROF_DRAM_ACTIVE", "PROF_DRAM_UTIL_RATIO"),
    ),
    (1009, "PCITX", "pcie_tx_bytes", Metric("pcie_tx_mib_s", MIB_PER_BYTE), ("PROF_PCIE_TX_BYTES",)),
    (1010, "PCIRX", "pcie_rx_bytes", Metric("pcie_rx_mib_s", MIB_PER_BYTE), ("PROF_PCIE_RX_BYTES",)),
)

BY_NUMBER = {str(number): metric for number, _, _, metric, _ in _FIELDS}
BY_TAG = {tag.lower(): metric for _, tag, _, metric, _ in _FIELDS}
BY_NAME = {name: metric for _, _, name, metric, _ in _FIELDS} | {
    "current_clock_throttle_reasons": Metric("throttle_reasons")
}
BY_EXPORTER_NAME = {f"DCGM_FI_{name}": metric for *_, metric, names in _FIELDS for name in names}


def is_blank(values: Any) -> Any:
    """True for DCGM's blanks: not found, not supported, not permissioned, as 32-bit, 64-bit or floating number."""
    int32 = (values >= 2147483632) & (values <= 2147483647)
    fp64 = (values >= 140737488355328) & (values <= 140737488355343)
    return int32 | fp64 | (values >= 9.2e18)


def without_blanks(values: np.ndarray) -> np.ndarray:
    """The values with blanks made NaN."""
    return np.where(is_blank(values), np.nan, values)
