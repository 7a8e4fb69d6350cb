"""The period of a signal from its autocorrelation (METHODS 8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.fourier import fast_length
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.weighted import weighted_sum

MIN_SAMPLES = 40
MIN_HEIGHT = 0.2
SHORT_S, MIN_SHORT_HEIGHT = 20.0, 0.5
"""Below 20 s half of the variance must repeat (a default without a published source): uneven waits of seconds come
back somewhere near their mean distance."""
MIN_ERRORS = 4.0
"""Standard errors 1/sqrt(n) of the autocorrelation of noise that a peak must stand out by: many lags are looked at."""
MIN_LAG = 4
"""Sampling periods to a period, at least: fewer show no shape of it."""
FINE = 0.005
"""Share of the period up to which it is looked for between sampling periods, at multiples of it."""
MAX_SHARE = 1 / 3
MIN_PAIRS, MIN_PAIRED = 20, 0.1
"""Samples that have another so much later: as many, and of all a tenth (defaults without a published source). Fewer are
the two sides of one hole, and repeat nothing.
"""


@dataclass(frozen=True)
class Period:
    """``height``: of the peak of the autocorrelation, at most 1."""

    period_s: float
    height: float


def find_period(time_us: np.ndarray, value: np.ndarray, step_us: float) -> Period | None:
    """The first peak of the autocorrelation above 0.2 (0.5 below 20 s), and above noise, that rises as far from the
    trough before it.

    The period is at least 4 sampling periods and at most a third of the span. It need not be one of the signal: what
    repeats faster than it is sampled may show at a longer period (``gpudiag.measures._waits.beats``). ``step_us``:
    median step of the times. Unknown values are left out of the sums, so gaps bridge nothing.
    """
    known = ~np.isnan(value)
    if known.sum() < MIN_SAMPLES:
        return None
    step = max(int(step_us), 1)
    place = np.rint((time_us[known] - time_us[known][0]) / step).astype(np.int64)
    n = int(place[-1]) + 1
    if n > 100 * known.sum():
        return None
    longest = int(n * MAX_SHARE)
    if longest - 1 <= MIN_LAG:
        return None
    corr = _autocorrelation(place, _detrended(place, value[known]), n, longest)
    least = max(MIN_HEIGHT, MIN_ERRORS / float(known.sum()) ** 0.5)
    short = np.arange(longest) * step < SHORT_S * SECOND_US
    peak = _first_peak(corr, MIN_LAG, longest, np.where(short, max(least, MIN_SHORT_HEIGHT), least))
    return None if peak is None else Period(_refined(corr, peak, least) * step / SECOND_US, float(corr[peak]))


def _detrended(place: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Less its straight line."""
    x = place - place.mean()
    slope = weighted_sum(x, value) / weighted_sum(x, x) if x.any() else 0.0
    return np.asarray(value - value.mean() - slope * x)


def _autocorrelation(place: np.ndarray, value: np.ndarray, n: int, longest: int) -> np.ndarray:
    """By lag in steps below ``longest``; NaN where fewer than 20 pairs are known, or than a
    tenth of the samples.
    """
    size = fast_length(n + longest)  # what laps around comes at longer lags
    signal, mask = np.zeros(n), np.zeros(n)
    signal[place], mask[place] = value, 1.0
    sums = _lagged(signal, size)[:longest]
    pairs = _lagged(mask, size)[:longest] if len(place) < n else n - np.arange(longest, dtype=float)
    variance = sums[0] / pairs[0]
    if not variance > 1e-9:
        return np.full(longest, np.nan)
    least = max(MIN_PAIRS, MIN_PAIRED * len(place))
    return np.where(np.rint(pairs) >= least, sums / np.maximum(pairs, 1) / variance, np.nan)


def _lagged(values: np.ndarray, size: int) -> np.ndarray:
    """Sum of the products with itself, by lag."""
    return np.asarray(np.fft.irfft(np.abs(np.fft.rfft(values, size)) ** 2, size))


def _first_peak(corr: np.ndarray, low: int, high: int, height: np.ndarray) -> int | None:
    """The lag of the first high and prominent local maximum within [low, high]; ``height`` is by lag.

    Prominent above all that came before it; ``scipy.signal.find_peaks`` measures against the lower of both sides, could
    only give the local maxima, and its import adds a tenth of a second to every diagnosis.
    """
    trough = np.minimum.accumulate(np.nan_to_num(corr[:high], nan=1.0))
    middle = corr[1 : high - 1]
    peaks = 1 + np.flatnonzero((middle >= corr[: high - 2]) & (middle > corr[2:high]))
    good = peaks[(peaks >= low) & (corr[peaks] > height[peaks]) & (corr[peaks] - trough[peaks] > height[peaks])]
    if not len(good):
        return None
    # Noise splits a peak in several; the highest close to the first one is its top.
    near = good[good <= 1.25 * good[0]]
    return int(near[np.argmax(corr[near])])


def _refined(corr: np.ndarray, peak: int, height: float) -> float:
    """The lag between sampling periods, from the peaks at 2, 4, 8 times it as long as they are as high as the first
    must be: at k times the lag the grid is k times as fine.
    """
    lag, times = float(peak), 1
    while 0.5 / times > FINE * lag:
        times *= 2
        low = round(lag * times) - 1
        if low + 3 > len(corr):
            break
        top = low + int(np.argmax(np.nan_to_num(corr[low : low + 3], nan=-1.0)))
        if not corr[top] > height:
            break
        lag = top / times
    return lag
