"""Energy of each GPU as a curve over time, from its counter and, where that says nothing, from its power."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures._gpu.boards import gpu_boards, most_plausible_w
from gpudiag.measures._gpu.gpu_rows import by_gpu
from gpudiag.measures._time.cells import cell_borders, cells, seen_us
from gpudiag.measures._time.curve import rise
from gpudiag.measures._time.microseconds import SECOND_US, distinct, microseconds
from gpudiag.run import Run
from gpudiag.spans import Window

JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True)
class EnergyCurve:
    """Joules used since the first timestamp; ``source`` is ``counter``, ``power`` or ``both``. They are known from each
    of ``start_us`` to the ``end_us`` beside it, one after the other; the curve is level between.
    """

    time_us: np.ndarray
    joules: np.ndarray
    start_us: np.ndarray
    end_us: np.ndarray
    source: str

    def between(self, start_us: np.ndarray, end_us: np.ndarray) -> np.ndarray:
        """Energy used, in kWh, from each start to each end; none before the first and after the last timestamp."""
        return rise(start_us, end_us, self.time_us, self.joules) / JOULES_PER_KWH

    @property
    def total_kwh(self) -> float:
        """Energy of all the time that is known."""
        return float(self.joules[-1]) / JOULES_PER_KWH

    def known_us(self, windows: list[Window]) -> int:
        """How much of the windows is known."""
        return sum(seen_us(self.start_us, self.end_us, window) for window in windows)


def energy_curves(run: Run) -> Iterator[tuple[str, EnergyCurve]]:
    """GPUs with a counter or with power readings, and the curve of each, one after the other.

    The counter (``total_energy_consumption``) misses nothing between two of its readings, however far apart. Before
    the first, after the last, and where it fell (it starts anew when the driver is loaded), power is taken instead: by
    trapezoids within gaps, without implausible readings (METHODS 2 and 8).
    """
    counted = _counters(run)
    for gpu, curve in _power_curves(run):
        yield gpu, _joined(counted.pop(gpu), curve) if gpu in counted else curve
    for gpu, part in counted.items():
        yield gpu, _joined(part, None)


def counted_curves(run: Run) -> dict[str, EnergyCurve]:
    """The same of those GPUs alone that have a counter."""
    counted = _counters(run)
    return {gpu: curve for gpu, curve in energy_curves(run) if gpu in counted} if counted else {}


def _counters(run: Run) -> dict[str, pd.DataFrame]:
    """Readings of each counter that ever rose: a GPU that is on draws power."""
    counters = by_gpu(cells(run, "energy_j")) if "energy_j" in run.gpu else []
    return {gpu: part for gpu, part in counters if (part["energy_j"].diff() > 0).any()}


def _power_curves(run: Run) -> Iterator[tuple[str, EnergyCurve]]:
    if "power_w" not in run.gpu:
        return
    most = most_plausible_w(gpu_boards(run)).to_dict()
    for gpu, part in by_gpu(cells(run, "power_w")):
        power = part["power_w"].to_numpy(float)
        good = (power > 0) & ~(power > most[gpu])
        time_us = microseconds(part["time"])
        if np.count_nonzero(good) < 2:
            continue
        if good.all():
            yield gpu, _integrated(time_us, power, part["start_us"].to_numpy(), part["end_us"].to_numpy())
        else:
            yield gpu, _integrated(time_us[good], power[good], *cell_borders(time_us[good]))


def _integrated(time_us: np.ndarray, power_w: np.ndarray, start: np.ndarray, end: np.ndarray) -> EnergyCurve:
    """Trapezoids between neighbouring readings, none across a gap between the cells from ``start`` to ``end``."""
    step_s = np.diff(time_us) / SECOND_US
    joules = np.where(start[1:] == end[:-1], step_s * (power_w[1:] + power_w[:-1]) / 2, 0.0)
    return EnergyCurve(time_us, np.concatenate(([0.0], np.cumsum(joules))), start, end, "power")


def _joined(counter: pd.DataFrame, power: EnergyCurve | None) -> EnergyCurve:
    """The counter between its readings, where it did not fall, and power elsewhere."""
    time_us, risen = microseconds(counter["time"]), np.diff(counter["energy_j"].to_numpy(float))
    # By step: before the first reading, from each reading to the next, after the last.
    counts = np.concatenate(([False], risen >= 0, [False]))
    used = np.concatenate(([0.0], risen, [0.0]))
    border = time_us
    if power is not None:
        border = _with(time_us, power.time_us[~counts[np.searchsorted(time_us, power.time_us, "right")]])
    step = np.searchsorted(time_us, border[:-1], "right")
    joules, rest = used[step], np.flatnonzero(~counts[step])
    joules[rest] = 0.0 if power is None else rise(border[rest], border[rest + 1], power.time_us, power.joules)
    source = "both" if (joules[rest] > 0).any() else "counter"
    known = _known(counter, time_us, counts, power)
    return EnergyCurve(border, np.concatenate(([0.0], np.cumsum(joules))), *known, source)


def _with(border: np.ndarray, more: np.ndarray) -> np.ndarray:
    return distinct(border, more) if len(more) else border


def _known(
    counter: pd.DataFrame, time_us: np.ndarray, counts: np.ndarray, power: EnergyCurve | None
) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of what either tells: a step of the counter that counts, half a step at its ends, or a cell of
    power.
    """
    edges = np.concatenate((counter["start_us"].to_numpy()[:1], time_us, counter["end_us"].to_numpy()[-1:]))
    tells = np.concatenate(([False], counts[1:2], counts[1:-1], counts[-2:-1], [False]))
    border = edges
    if power is not None:
        cell = np.concatenate((power.start_us, power.end_us))
        border = _with(edges, cell[~tells[np.searchsorted(edges, cell, "right")] & (cell != edges[-1])])
    start, end = border[:-1], border[1:]
    known = tells[np.searchsorted(edges, start, "right")]
    if power is not None and not known.all():
        at = np.searchsorted(power.start_us, start, "right") - 1
        known |= (at >= 0) & (start < power.end_us[np.maximum(at, 0)])
    known &= end > start
    return start[known], end[known]
