"""The idle power of a GPU: what the record shows of it, or the bounds that it leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures._gpu.boards import gpu_boards, most_plausible_w
from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.work import stretches
from gpudiag.measures.power import power_cells
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT

SETTLE_S = 2.0
"""How long a GPU must have been idle before a reading is of that alone: utilization and power are each a mean of up to
1 s (METHODS 1)."""
MOST_OF_LIMIT = 1 / 3
"""Of the board's power limit: no idle power is above it. An A100 of 400 W idles at 60 to 66 W, and a live CUDA context
adds up to 66 W (METHODS 1)."""
RECORD_IDLE = "Record power from a minute before the work begins: that shows the idle power."
MIN_READINGS = 5
PERCENTILE = 5.0


@dataclass(frozen=True)
class IdlePower:
    """Bounds of the idle power of a GPU, the same where the record shows it; NaN without a reading of its power."""

    least_w: float
    most_w: float

    @property
    def seen_w(self) -> float:
        """The idle power where the record shows it, else NaN."""
        return self.least_w if self.least_w == self.most_w else math.nan

    def shares(self, power_w: np.ndarray, full_w: float) -> tuple[np.ndarray, np.ndarray]:
        """Least and most of (power - idle) / (full power - idle); NaN where these bounds reach the full power."""
        least, most = ((power_w - floor) / (full_w - floor) for floor in (self.most_w, self.least_w))
        unknown = np.full(len(power_w), math.nan)
        return (least, most) if full_w > self.most_w else (unknown, unknown)


@memoized
def idle_powers(run: Run) -> dict[str, IdlePower]:
    """By GPU with readings of power beside utilization, the 5th percentile of power in settled idle time.

    Waits of less than a second leave samples of no utilization beside the power of the work, and so do sensors that
    lag: such readings are left out. Without five others, or where they are above a third of the board's limit, idle
    power lies between 0 W and the lesser of that third and the 5th percentile of all readings, which are idle power or
    more.
    """
    if not {"util_pct", "power_w"} <= set(run.gpu):
        return {}
    boards = gpu_boards(run)
    plausible_w = most_plausible_w(boards).to_dict()
    limits = np.fmax(boards["limit_w"].astype(float), boards["default_w"].astype(float)).to_dict()
    samples = power_cells(run, "util_pct")
    power, idle = samples["power_w"].to_numpy(), _settled(samples)
    out = {}
    for gpu, own in slices(samples):
        known = ~(power[own] > plausible_w[gpu])
        out[gpu] = _idle_power(power[own][known], idle[own][known], MOST_OF_LIMIT * limits[gpu])
    return out


def _settled(samples: pd.DataFrame) -> np.ndarray:
    """True where a GPU has been idle in all samples of the last 2 s or more, without a gap in the record."""
    time_us, idle = microseconds(samples["time"]), (samples["util_pct"] < IDLE_PCT).to_numpy()
    begun = np.zeros(len(idle), bool)
    begun[stretches(idle, samples["start_us"].to_numpy(), samples["end_us"].to_numpy())[0]] = True
    since = np.maximum.accumulate(np.where(begun, np.arange(len(idle)), 0))
    return np.asarray(idle & (time_us - time_us[since] >= SETTLE_S * SECOND_US))


def _idle_power(power: np.ndarray, settled: np.ndarray, third_w: float) -> IdlePower:
    """Of the plausible readings of one GPU."""
    if not len(power):
        return IdlePower(math.nan, math.nan)
    if settled.sum() >= MIN_READINGS:
        seen = float(np.percentile(power[settled], PERCENTILE))
        if not seen > third_w:
            return IdlePower(seen, seen)
    return IdlePower(0.0, float(np.fmin(np.percentile(power, PERCENTILE), third_w)))
