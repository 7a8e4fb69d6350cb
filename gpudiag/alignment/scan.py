"""How well trials fit the telemetry at every offset within 14 hours."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpudiag.alignment.chance import Noise, noise_of
from gpudiag.alignment.signals import Grid, Signal, edges
from gpudiag.fourier import fast_length

REACH_S = 14.25 * 3600.0
"""Offsets examined: zones lie between UTC-12 and UTC+14."""
RESPONSES_S = (0.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""How long after its start a trial may begin to show. METHODS 2 has 0 only; with the best of these, trials
that follow each other without a gap, where the number of trials never changes, can be aligned too."""
THIN = 0.25
"""Where fewer trial edges fall into the telemetry than a quarter of the most at any offset, the
correlation is damped: a single edge that happens to fit is no evidence."""


@dataclass(frozen=True)
class Scan:
    """``fit[i]``: mean correlation over ``signals`` at ``offset_s[i]`` (trials + offset = telemetry), increasing.

    ``seen``: in which bins of ``step_s`` from ``begin_s`` on a signal is known; ``edge_s``: starts and ends of trials.
    """

    offset_s: np.ndarray
    fit: np.ndarray
    signals: tuple[str, ...]
    step_s: float
    seen: np.ndarray
    begin_s: float
    edge_s: np.ndarray

    def n_edges(self, offset_s: float) -> int:
        """How many starts and ends of trials fall where telemetry is, at this offset; no more than it has values.

        A bin between two that are seen counts as seen where these are no further apart than three times as usual.
        """
        seen = np.flatnonzero(self.seen)
        if len(seen) < 2:
            return 0
        at = np.floor((self.edge_s + offset_s - self.begin_s) / self.step_s).astype(np.int64)
        after = np.searchsorted(seen, at).clip(1, len(seen) - 1)
        near = seen[after] - seen[after - 1] <= 3 * np.median(np.diff(seen))
        inside = (at >= seen[0]) & (at <= seen[-1]) & near
        return min(int(inside.sum()), len(seen))

    def meets(self, offset_s: np.ndarray) -> np.ndarray:
        """At which offsets trials and telemetry share any time."""
        seen_s = self.begin_s + self.step_s * np.flatnonzero(self.seen)[[0, -1]]
        return (self.edge_s.max() + offset_s >= seen_s[0]) & (self.edge_s.min() + offset_s <= seen_s[1])

    def near(self, offset_s: float, within_s: float) -> tuple[float, float]:
        """The best fit within ``within_s`` of an offset, and where it lies."""
        low, high = np.searchsorted(self.offset_s, [offset_s - within_s - 1e-6, offset_s + within_s + 1e-6])
        if low == high:
            return -1.0, offset_s
        best = low + int(np.argmax(self.fit[low:high]))
        return float(self.fit[best]), float(self.offset_s[best])


def responses_within(trial_s: float) -> tuple[float, ...]:
    """The responses that are tried for trials that take so long: none shows only after it has ended."""
    return tuple(response for response in RESPONSES_S if response <= trial_s)


def scan_offsets(
    signals: list[Signal],
    grid: Grid,
    start_s: np.ndarray,
    end_s: np.ndarray,
    responses_s: tuple[float, ...] = RESPONSES_S,
    reach_s: float = REACH_S,
) -> Scan:
    """Correlate the edges of each signal with those of the number of trials past their first ``response``, at every
    offset within ``reach_s``.

    For each signal and offset the response that fits best counts; the fit is the mean over signals.
    """
    lags = int(reach_s // grid.step_s)
    borders = grid.start_s + grid.step_s * (np.arange(grid.n + 2 * lags + 1) - lags)
    size = fast_length(2 * grid.n + 2 * lags)
    best = np.full((len(signals), 2 * lags + 1), -1.0)
    alike = [next(k for k, one in enumerate(signals) if (one.seen == signal.seen).all()) for signal in signals]
    masks = {k: np.fft.rfft(signals[k].seen, size).conj() for k in set(alike)}  # mostly all are seen in the same bins
    changes = [np.fft.rfft(signal.edge, size).conj() for signal in signals]

    def sums(spectrum: np.ndarray) -> np.ndarray:
        return np.fft.irfft(spectrum, size)[: 2 * lags + 1]

    for response in responses_s:
        edge = edges(running(start_s + response, end_s, borders), grid)
        spectrum, square = np.fft.rfft(edge, size), np.fft.rfft(edge * edge, size)
        of_bins = {k: (sums(spectrum * mask), sums(square * mask)) for k, mask in masks.items()}
        for row, signal in enumerate(signals):
            fit = _correlation(signal, *of_bins[alike[row]], sums(spectrum * changes[row]))
            best[row] = np.maximum(best[row], fit)
    offsets = grid.step_s * (lags - np.arange(2 * lags + 1))
    seen = np.any([signal.seen for signal in signals], axis=0)
    names = tuple(signal.name for signal in signals)
    edge_s = np.concatenate([start_s, end_s])
    return Scan(offsets[::-1], best.mean(axis=0)[::-1], names, grid.step_s, seen, grid.start_s, edge_s)


def noise_at(
    offset_s: float,
    n_events: int,
    signals: list[Signal],
    grid: Grid,
    start_s: np.ndarray,
    end_s: np.ndarray,
    responses_s: tuple[float, ...],
) -> Noise:
    """The noise of the fit at one offset, with the response that fits each signal best there."""
    borders = grid.start_s - offset_s + grid.step_s * np.arange(-2 * grid.lag, grid.n + 2 * grid.lag + 1)
    inside = slice(2 * grid.lag, 2 * grid.lag + grid.n)
    shown = [edges(running(start_s + response, end_s, borders), grid)[inside] for response in responses_s]
    pairs = []
    for signal in signals:
        seen = signal.seen
        fits = [_pearson(x[seen], signal.edge[seen]) for x in shown]
        pairs.append((shown[int(np.argmax(fits))], signal.edge, seen))
    return noise_of(pairs, grid.step_s, grid.step_s * (grid.lag if grid.reach == 1 else 1), n_events)


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's r; -1 where the first never changes."""
    x, y = x - x.mean(), y - y.mean()
    square = float((x * x).sum())
    return float((x * y).sum()) / math.sqrt(square * float((y * y).sum())) if square > 1e-9 else -1.0


def running(start_s: np.ndarray, end_s: np.ndarray, borders: np.ndarray) -> np.ndarray:
    """Mean number of intervals open in each bin between consecutive borders."""
    real = end_s > start_s
    area = _area(start_s[real], borders) - _area(end_s[real], borders)
    return np.diff(area) / np.diff(borders)


def _area(since: np.ndarray, when: np.ndarray) -> np.ndarray:
    """Sum over ``since`` of the time that has passed at each ``when``."""
    ordered = np.sort(since)
    total = np.concatenate(([0.0], np.cumsum(ordered)))
    count = np.searchsorted(ordered, when)
    return count * when - total[count]


def _correlation(signal: Signal, x: np.ndarray, xx: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Pearson's r of a signal with trials at every lag, from sums over the bins that are seen."""
    n = float(signal.seen.sum())
    y, yy = float(signal.edge.sum()), float((signal.edge**2).sum())
    spread_x, spread_y = xx - x * x / n, yy - y * y / n
    floor = max(THIN * float(spread_x.max()), 1e-9)
    return (xy - x * y / n) / np.sqrt(np.maximum(spread_x, floor) * spread_y)
