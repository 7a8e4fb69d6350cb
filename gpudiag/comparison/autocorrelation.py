"""How many independent values a series is worth: neighbours in time that are alike say the same thing twice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy

from gpudiag.comparison.power import POWER

MIN_UNITS = 6
"""Independent units per side below which a number is described and gets no interval (METHODS 7, check 7)."""
MIN_GEYER = 20
"""Values from which autocorrelations beyond the first neighbour are summed; fewer leave mostly noise."""
MOST_ALIKE = 0.99
BEARABLE = 0.5
"""Correlation of neighbours up to which a few values are still worth testing by it; beyond, six must be independent."""
WORST = 0.95
"""Correlation that is allowed for where a series is too short to rule out a great one."""
MOST_ITEMS = 10_000


@dataclass(frozen=True)
class Dependence:
    """``size``: independent values whose spread is as well known. ``inflation``: factor on the variance of the mean
    that independent values with this spread would have; the spread is too small as well where neighbours are alike.
    """

    size: float
    inflation: float


@dataclass(frozen=True)
class Neighbors:
    """How alike neighbours are in series of these ``sizes``: their correlation and its standard error.

    Eight values of 0.9 often look independent: they lie close together, and apart from those of the next run. So the
    correlation is believed where it is small even with its error added; else :data:`WORST` is allowed for. Both
    numbers were chosen on normal AR(1) series: of the same against the same at most 8 % are then called different, from
    six values a side on and up to a correlation of 0.9, where tests of independent values call up to 60 %. A slow drift
    beneath other differences hides from neighbors; :func:`~.drift.drift` looks for it.
    """

    correlation: float
    error: float
    sizes: tuple[int, ...]

    @property
    def bounded(self) -> bool:
        """Whether the series rule out that neighbours are much more alike than they look."""
        return self.correlation <= self._limit

    @property
    def share_bounded(self) -> float:
        """Share of such series, with the correlation found here, that rule it out."""
        return float(scipy.special.ndtr((self._limit - max(self.correlation, 0.0)) / self.error))

    @property
    def enough(self) -> int | None:
        """Values a series, to within a tenth, with which 4 of 5 as alike would rule it out; None above 10,000."""
        n = max(self.sizes)
        while n <= MOST_ITEMS:
            sizes = (n,) * len(self.sizes)
            if Neighbors(self.correlation, _standard_error(sizes), sizes).share_bounded >= POWER:
                return n
            n = math.ceil(1.1 * n)
        return None

    def likely(self, values: np.ndarray) -> Dependence:
        """What is left of a series if the correlation found is right."""
        return dependence(values, min(self.correlation, max(self._limit, 0.0)))

    def worst(self, values: np.ndarray) -> Dependence:
        """What is left if neighbors are as alike as the series cannot rule out; its size stays that of the series,
        since the inflation, which is not estimated, holds all that is lost.
        """
        n, most = len(values), max(self.correlation, WORST)
        return Dependence(float(n), _inflation(n, mean_inflation(n, most)))

    @property
    def _limit(self) -> float:
        """The greatest correlation that is believed."""
        return _most_believed(min(self.sizes)) - self.error


@cache
def _most_believed(n: int) -> float:
    """The correlation that leaves ``n`` values just worth :data:`MIN_UNITS`; :data:`BEARABLE` where it is less."""

    def units_left(correlation: float) -> float:
        return n / mean_inflation(n, correlation) - MIN_UNITS

    if units_left(BEARABLE) <= 0:
        return BEARABLE
    if units_left(MOST_ALIKE) >= 0:
        return MOST_ALIKE
    return float(scipy.optimize.brentq(units_left, BEARABLE, MOST_ALIKE, xtol=1e-4))


def neighbors(*series: np.ndarray) -> Neighbors:
    """How alike neighbours are in series that are thought to be alike in this."""
    sizes = tuple(len(values) for values in series)
    return Neighbors(neighbor_correlation(*series), _standard_error(sizes), sizes)


def dependence(values: np.ndarray, correlation: float) -> Dependence:
    """What neighbours with this correlation leave of a series; from 20 values on also what Geyer's sum leaves."""
    n = len(values)
    time = mean_inflation(n, max(correlation, 0.0))
    if n >= MIN_GEYER:
        time = max(time, n / effective_size(values))
    return Dependence(n / time, _inflation(n, time))


def neighbor_correlation(*series: np.ndarray) -> float:
    """Correlation of neighbours, at most 0.99, pooled over series that are thought to be alike in this: that of the
    values or of their ranks, whichever is greater, since a few great values hide how alike the others are.

    Each is corrected for the series' own mean, about which a short series looks less correlated than it is:
    (n r + 1) / (n - 3), M. G. Kendall, Biometrika 41 (1954) 403. Uncorrected, 19 values of 0.6 show 0.4.
    """
    known = [values for values in series if len(values) > 3 and np.ptp(values) > 0]
    if not known:
        return 0.0
    n = sum(len(values) for values in known)
    of_values = sum(len(values) * _corrected(values) for values in known) / n
    of_ranks = sum(len(values) * _corrected(scipy.stats.rankdata(values)) for values in known) / n
    return min(max(float(of_values), float(of_ranks)), MOST_ALIKE)


def _standard_error(sizes: tuple[int, ...]) -> float:
    """Of the correlation of neighbours, where there is none."""
    known = [n for n in sizes if n > 3]
    return math.sqrt(sum(n**3 / (n - 3) ** 2 for n in known)) / sum(known) if known else math.inf


def _inflation(n: int, time: float) -> float:
    return time * (n - 1) / (n - time) if time < n else math.inf


def mean_inflation(n: int, correlation: float) -> float:
    """Variance of the mean of ``n`` values, each correlated with its neighbour (AR(1)), over that of independent."""
    lag = np.arange(1, n)
    return 1 + 2 * float(((1 - lag / n) * correlation**lag).sum())


def effective_size(values: np.ndarray) -> float:
    """N / (1 + 2 x sum of autocorrelations), summed over Geyer's initial positive pairs; n for constant values.

    C. J. Geyer, Statistical Science 7 (1992) 473. The pairs are also made to fall (his monotone sequence).
    """
    n = len(values)
    centred = values - values.mean() if n else values
    if n < 4 or not centred @ centred > 0:
        return float(n)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    rho = np.fft.irfft(spectrum * spectrum.conj(), size)[:n]
    rho = rho / rho[0]
    even = rho[: 2 * (n // 2)]
    pairs = even[0::2] + even[1::2]
    negative = np.flatnonzero(pairs <= 0)
    kept = np.minimum.accumulate(pairs[: negative[0] if len(negative) else len(pairs)])
    time = max(2 * float(kept.sum()) - 1, 1.0)
    return n / time


def _corrected(values: np.ndarray) -> float:
    centred, n = values - values.mean(), len(values)
    return (n * float(centred[1:] @ centred[:-1]) / float(centred @ centred) + 1) / (n - 3)
