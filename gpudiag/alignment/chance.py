"""How easily chance makes telemetry fit trials that have nothing to do with it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy

from gpudiag.fourier import fast_length


@dataclass(frozen=True)
class Noise:
    """The correlation of unrelated series varies as that of ``n_free`` independent pairs, each of ``length_s``."""

    n_free: float
    length_s: float

    def chance_of(self, fit: float, offsets: int, within_s: float, tries: int) -> float:
        """How likely, at most, chance reaches ``fit`` within so far of any of so many offsets, each tried so often.

        Student's t of a correlation; its probability is multiplied by the number of independent places (Bonferroni).
        A try moves the starts of the trials by a while, as other places beside the offset do, so both add up.
        """
        if self.n_free <= 2 or not fit > 0:
            return 1.0
        t = fit * math.sqrt((self.n_free - 2) / (1 - fit**2)) if fit < 1 else math.inf
        places = offsets * (tries + 2 * within_s / self.length_s)
        return min(1.0, places * float(scipy.special.stdtr(self.n_free - 2, -t)))


def noise_of(
    pairs: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]], step_s: float, period_s: float, n_events: int
) -> Noise:
    """The noise of the mean correlation of pairs (x, y, where both are seen), all on one grid of ``step_s``, which are
    known every ``period_s``.

    Series that change slowly, or in waves, agree by chance more often than their number of values says: the variance of
    their correlation is the sum over all lags of the product of their autocorrelations, by the number of values
    (Bartlett 1946), and for a mean of correlations that of their cross-correlations too. It is that of ``n_events``
    values at least: one event is no more than one piece of evidence, however many samples show it.
    """
    spectra, lengths = [], []
    for x, y, seen in pairs:
        own, other = (np.where(seen, z - z[seen].mean(), 0.0) for z in (x, y))
        size = fast_length(2 * len(x))
        norm = math.sqrt(float((own**2).sum() * (other**2).sum() * seen.sum()))
        if not norm > 0:
            return Noise(0.0, step_s)
        spectra.append(np.fft.rfft(own, size) * np.fft.rfft(other, size).conj() / norm)
        lengths.append(max(period_s, step_s * _total(spectra[-1], size) * seen.sum()))
    variance = _total(np.mean(spectra, axis=0), size)
    return Noise(min(1 / variance, float(n_events)), float(np.mean(lengths)))


def _total(spectrum: np.ndarray, size: int) -> float:
    """Sum over lags of the product of the autocorrelations of two series, from the product of their spectra."""
    power = np.abs(spectrum) ** 2
    both = 2 * power.sum() - power[0] - (power[-1] if size % 2 == 0 else 0.0)
    return float(both) / size
