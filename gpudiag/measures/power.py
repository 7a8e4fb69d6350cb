"""Power and temperature, with readings that the board cannot produce set aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.run import Run


@dataclass(frozen=True, eq=False)
class PowerProfile:
    """``per_gpu`` (index gpu): mean_w and max_w of plausible readings, mean_all_w and max_all_w of
    all readings, limit_w and limit_source ('log', 'run.toml', 'data sheet' or ''), n_rejected,
    rejected_pct, energy_kwh (trapezoids within gaps), mean_temp_c, max_temp_c, board (matched data-sheet name), laptop (bool),
    averaged_sensor (True for Ampere except GA100 and newer; unknown is NaN).
    ``rejected``: gpu, time, power_w, limit_w of each implausible reading.
    """

    per_gpu: pd.DataFrame
    rejected: pd.DataFrame
    energy_kwh: float
    n_rejected: int


def measure_power(run: Run) -> PowerProfile:
    """Power, energy and temperature per GPU. Needs gpu.power_w."""
    raise NotImplementedError
