"""``nvidia-smi dmon``: one line per GPU and tick, any ``-s`` groups, with or without ``-o D/T``, text or CSV."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from gpudiag.readers._delimited.column_text import gpu_ticks, holds, read_rows, timestamp_rows
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.coded import Coded
from gpudiag.readers._shape.finish import finish, nothing_usable
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "nvidia-smi dmon"

COLUMNS = {
    "sm": "util_pct",
    "mem": "mem_util_pct",
    "fb": "mem_used_mib",
    "pwr": "power_w",
    "gtemp": "temp_c",
    "temp": "temp_c",  # drivers of 2016
    "mtemp": "mem_temp_c",
    "pclk": "sm_clock_mhz",
    "mclk": "mem_clock_mhz",
    "enc": "enc_pct",
    "dec": "dec_pct",
    "rxpci": "pcie_rx_mib_s",
    "txpci": "pcie_tx_mib_s",
    "dbecc": "ecc_uncorrected",
}
"""``mem`` is how busy the memory controller was; how full memory is stands in ``fb``."""

_POWER_CAP, _THERMAL = 0x4, 0x20
_ANY_HEAT = 0x60
"""What tviol tells of, by software or hardware. dmon has no column for the other slowdowns by the hardware."""
_MOSTLY_PCT = 50.0


def recognises(source: Source) -> bool:
    return holds(source, "dmon")


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    rows = read_rows(source, log, "dmon", (*COLUMNS, "pviol", "tviol"))
    if rows.is_empty():
        raise nothing_usable(source, NAME, log)
    time, notes = timestamp_rows(rows, gpu_ticks(rows), options.period_s)
    columns: dict[str, Any] = {"time": time, "line": rows["line"].to_numpy()}
    labels = rows["gpu"].unique(maintain_order=True).to_list()
    columns["gpu"] = Coded(rows["gpu"].cast(pl.Enum(labels)).to_physical().to_numpy().astype(np.int16), labels)
    for name, target in COLUMNS.items():
        if name in rows.columns:
            known = columns.get(target, np.nan)
            columns[target] = np.where(np.isnan(known), _floats(rows, name), known)
    if "pviol" in rows.columns:
        pviol, tviol = _floats(rows, "pviol"), _floats(rows, "tviol")
        columns["throttle_reasons"] = _reasons(pviol, tviol)
        columns["throttle_known"] = _POWER_CAP * ~np.isnan(pviol) + _ANY_HEAT * ~np.isnan(tviol)
    return finish(source, NAME, options, log, gpu=columns, notes=notes)


def _floats(rows: pl.DataFrame, name: str) -> np.ndarray:
    if name not in rows.columns:
        return np.full(len(rows), np.nan)
    return rows[name].fill_null(float("nan")).to_numpy()


def _reasons(pviol: np.ndarray, tviol: np.ndarray) -> np.ndarray:
    """NVML reason bits: power cap where it held most of the tick (pviol is its share), thermal where tviol is 1."""
    bits = _POWER_CAP * (pviol >= _MOSTLY_PCT) + _THERMAL * (tviol > 0)
    return np.where(np.isnan(pviol) & np.isnan(tviol), np.nan, bits)


READER = Reader(NAME, recognises, read)
