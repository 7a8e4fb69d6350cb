"""Energy of each GPU as a curve over time, from its counter or from its power."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._time.curve import rise
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures.power import AVERAGED_LIMIT, INSTANT_LIMIT, JOULES_PER_KWH
from gpudiag.measures.sampling import by_gpu, cell_borders, cells
from gpudiag.run import Run


@dataclass(frozen=True)
class EnergyCurve:
    """Joules used since the first timestamp; ``source`` is ``counter`` or ``power``."""

    time_us: np.ndarray
    joules: np.ndarray
    source: str

    def between(self, start_us: np.ndarray, end_us: np.ndarray) -> np.ndarray:
        """Energy used, in kWh, from each start to each end; none before the first and after the last timestamp."""
        return rise(start_us, end_us, self.time_us, self.joules) / JOULES_PER_KWH


def energy_curves(run: Run) -> Iterator[tuple[str, EnergyCurve]]:
    """GPUs with a counter or with power readings, and the curve of each, one after the other.

    The counter (``total_energy_consumption``) misses nothing, not even between samples; it starts anew when the
    driver is loaded. Power is integrated by trapezoids within gaps, without implausible readings (METHODS 2 and 8).
    """
    counters = by_gpu(cells(run, "energy_j")) if "energy_j" in run.gpu else []
    counted = {gpu: part for gpu, part in counters if len(part) > 1}
    for gpu, part in counted.items():
        used = np.maximum(np.diff(part["energy_j"].to_numpy(float)), 0.0)
        yield gpu, EnergyCurve(microseconds(part["time"]), np.concatenate(([0.0], np.cumsum(used))), "counter")
    if "power_w" in run.gpu:
        boards = gpu_boards(run)
        factor = np.where(boards["averaged_sensor"] == True, AVERAGED_LIMIT, INSTANT_LIMIT)  # noqa: E712 - NaN is unknown
        most = dict(zip(boards.index, boards["limit_w"] * factor, strict=True))
        for gpu, part in by_gpu(cells(run, "power_w")):
            power = part["power_w"].to_numpy(float)
            good = (power > 0) & ~(power > most[gpu])
            time_us = microseconds(part["time"])
            if gpu in counted or np.count_nonzero(good) < 2:
                continue
            if good.all():
                yield gpu, _integrated(time_us, power, part["start_us"].to_numpy(), part["end_us"].to_numpy())
            else:
                yield gpu, _integrated(time_us[good], power[good], *cell_borders(time_us[good]))


def _integrated(time_us: np.ndarray, power_w: np.ndarray, start: np.ndarray, end: np.ndarray) -> EnergyCurve:
    """Trapezoids between neighbouring readings, none across a gap between the cells from ``start`` to ``end``."""
    step_s = np.diff(time_us) / SECOND_US
    joules = np.where(start[1:] == end[:-1], step_s * (power_w[1:] + power_w[:-1]) / 2, 0.0)
    return EnergyCurve(time_us, np.concatenate(([0.0], np.cumsum(joules))), "power")
