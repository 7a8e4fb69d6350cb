"""Whether failures go with a number: of workers, or of trials that ran at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy

from gpudiag.fourier import fast_length
from gpudiag.measures._trials.chances import p_more_often


@dataclass(frozen=True)
class Split:
    """From ``least`` on more trials fail than below it. ``p``: one-sided Fisher, times the borders tried.

    ``aligned``: part of the other places at which the same course of the number, moved in time, would tell the failures
    apart as well. Failures that come in one bad hour, or get rarer over time, make ``p`` small wherever a border lies;
    only a border that fits them better than nearly all others says that the number has to do with them.
    """

    least: float = math.nan
    n_more: int = 0
    fail_more: int = 0
    n_less: int = 0
    fail_less: int = 0
    p: float = math.nan
    aligned: float = math.nan


def best_split(failed: np.ndarray, number: np.ndarray) -> Split:
    """The border that tells failures best; both arrays by trial in the order in which they ended."""
    borders = np.unique(number)[1:]
    if not len(borders) or not failed.any():
        return Split()
    made = [_at(failed, number >= least, float(least), len(borders)) for least in borders]
    best = min(made, key=lambda split: split.p)
    return replace(best, aligned=_aligned(failed, number >= best.least))


def _at(failed: np.ndarray, more: np.ndarray, least: float, n_borders: int) -> Split:
    a, n = int(failed[more].sum()), int(more.sum())
    b, m = int(failed[~more].sum()), int((~more).sum())
    return Split(least, n, a, m, b, min(1.0, p_more_often(a, n, b, m) * n_borders))


def _aligned(failed: np.ndarray, more: np.ndarray) -> float:
    """Part of the shifts in time of ``more``, its ends held, whose likelihood ratio is as great as that of none."""
    n = len(failed)
    held = np.concatenate([np.full(n, more[0]), more, np.full(n, more[-1])]).astype(float)
    sums = np.concatenate([[0.0], np.cumsum(held)])
    shifts = np.arange(1, 2 * n)  # of which n is none
    n_more = sums[shifts + n] - sums[shifts]
    fail_more = _convolved(held, failed[::-1].astype(float))[n : 3 * n - 1]
    known = (n_more > 0) & (n_more < n)
    ratios = _ratio(fail_more, n_more, failed.sum() - fail_more, n - n_more)
    return float((ratios[known] >= ratios[n - 1] - 1e-9).sum() / n)


def _convolved(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of whole numbers, in full, by Fourier transforms; ``scipy.signal`` takes half of a second to import."""
    size = len(x) + len(y) - 1
    padded = fast_length(size)
    return np.rint(np.fft.irfft(np.fft.rfft(x, padded) * np.fft.rfft(y, padded), padded)[:size])


def _ratio(a: np.ndarray, n: np.ndarray, b: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Log likelihood of two rates, a of n and b of m, over one; negative where the first is smaller."""
    return np.where(a * m >= b * n, 1.0, -1.0) * (_likelihood(a, n) + _likelihood(b, m) - _likelihood(a + b, n + m))


def _likelihood(hits: np.ndarray, n: np.ndarray) -> np.ndarray:
    xlogy, rest = scipy.special.xlogy, n - hits
    return xlogy(hits, hits / np.maximum(n, 1)) + xlogy(rest, rest / np.maximum(n, 1))
