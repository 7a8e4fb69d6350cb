"""How likely k trials at once are to overflow a GPU, from the peaks of single trials (METHODS 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

Array = np.ndarray
Tick = Callable[[int, int], None]
"""Told (steps done, steps in all). What it raises ends the work; nothing is left behind."""

REPLICATES = 400
BINS = 2047
N_SETS = 250
AT_ONCE = 20
"""Replicates that are convolved side by side."""
SPARED_SHARE = 0.02
"""Of the total that nobody should count on: fragmentation and the driver (METHODS 6)."""
RARELY_TOGETHER = 3.0
"""When others hold their peaks is known in the mean only; the lower end is divided by this (METHODS 6: sets that
overflow by their peaks are 1.8 to 3 times those that truly do)."""
UNSEEN_TIMES = 2.0
"""A trial that the log does not hold is taken for so many times the largest: the next value of a grid doubles a batch
or a width, and a doubled batch takes at most twice the memory (METHODS 6: M(B) = M0 + c B)."""
CENTRAL = (0.025, 0.975)


@dataclass(frozen=True)
class Room:
    """One GPU: ``total_mib``, ``reserved_mib`` (set aside by the driver and not counted as used), ``baseline_mib``."""

    total_mib: float
    baseline_mib: float
    reserved_mib: float = 0.0

    @property
    def usable_mib(self) -> float:
        """Total less what the driver reserves and 2 % that nobody should count on."""
        return (1 - SPARED_SHARE) * self.total_mib - self.reserved_mib


def overflow_table(
    draws: Array,
    weight_s: Array,
    room: Room,
    levels: Sequence[int],
    rng: np.random.Generator,
    tick: Tick = lambda done, of: None,
    at_peak: Array | None = None,
) -> pd.DataFrame:
    """One row a number k of trials at once on one GPU.

    ``draws`` (n_draws, n_trials): peaks that the log allows, MiB; ``weight_s``: a trial is met in proportion to its
    time. Columns: k; typical_mib, typical_low_mib, typical_high_mib (median of the sum with the baseline); p95_mib,
    p95_low_mib, p95_high_mib (reached by one set in twenty); worst_mib, worst_low_mib, worst_high_mib (the k largest
    trials at once); margin_mib, margin_low_mib, margin_high_mib (usable less p95); hard_fit (the k largest fit
    together, by the upper end); sets_over_pct, p_overflow_pct, p_low_pct, p_high_pct.

    ``at_peak`` (n_trials,): share of its time (0 to 1) at which each trial holds its peak; without it always.

    ``sets_over_pct`` is the share of sets of the trials seen whose peaks together exceed what is usable, by exact
    convolution of the peaks in place of drawing sets, as if all peaks came at the same time.

    ``p_overflow_pct`` estimates what happens: each trial ends once, at its peak, beside k - 1 others at any moment of
    their lives, which hold their peaks for ``at_peak`` of these. The share of ends at which that is more than there is.

    ``p_high_pct`` is at most so much: the 97.5 % quantile of sets over under all that the log leaves open, by a
    Bayesian bootstrap (Rubin 1981) over ``draws``, trials and one trial more, which takes twice the largest. Without
    the trial more the chance is 0 wherever the large ones happened to be missed: with 50 trials a kind of 6 % is missed
    in 5 of 100 logs. It is at least 1 - 0.05^(k/n), for larger trials than twice the largest may come.
    ``p_low_pct``: the 2.5 % quantile of the estimate by the same bootstrap without the trial more, divided by 3 for the
    moments at which others hold their peaks; 0 where less than one of n/k sets without a trial in common would be.
    """
    n_draws, n = draws.shape
    free = room.usable_mib - room.baseline_mib
    full = room.total_mib - room.reserved_mib - room.baseline_mib
    held = np.ones(n) if at_peak is None else at_peak
    once = np.full(n, 1 / n)
    every = overflow_chances(draws, weight_s / weight_s.sum(), free, levels)
    likely = ends_over(draws, once, weight_s, held, full, levels).mean(axis=0)
    replicates = np.empty((REPLICATES, 2, len(levels)))
    sums = np.empty((REPLICATES, 2, len(levels)))
    typical_s = np.append(weight_s, weight_s.mean())
    of_sets = rng.spawn(REPLICATES)  # what is drawn for one level does not depend on which others are asked for
    for first in range(0, REPLICATES, AT_ONCE):
        tick(first, REPLICATES)
        these = slice(first, first + AT_ONCE)
        peaks = draws[np.arange(REPLICATES)[these] % n_draws]
        met = rng.exponential(size=(len(peaks), n + 1))
        share = typical_s * met
        weight = share[:, :-1] / share[:, :-1].sum(axis=1, keepdims=True)
        wider = np.column_stack([peaks, UNSEEN_TIMES * peaks.max(axis=1)])
        ended = met[:, :-1] / met[:, :-1].sum(axis=1, keepdims=True)
        replicates[these, 0] = ends_over(peaks, ended, share[:, :-1], held, full, levels)
        replicates[these, 1] = overflow_chances(wider, share / share.sum(axis=1, keepdims=True), free, levels)
        total = np.stack([_drawn_sums(*one, levels) for one in zip(peaks, weight, of_sets[these], strict=True)])
        sums[these] = room.baseline_mib + np.quantile(total, (0.5, 0.95), axis=1).swapaxes(0, 1)
    tick(REPLICATES, REPLICATES)
    ordered = -np.sort(-draws, axis=1)
    rows = [
        _row(k, every[:, j].mean(), likely[j], replicates[:, :, j], sums[:, :, j], ordered, room, n)
        for j, k in enumerate(levels)
    ]
    return pd.DataFrame(rows)


def _drawn_sums(peaks: Array, weight: Array, rng: np.random.Generator, levels: Sequence[int]) -> Array:
    """Sums of the peaks of drawn sets of trials: a row a set, a column a level."""
    drawn = rng.random((max(levels), N_SETS)).T
    picked = np.searchsorted(np.cumsum(weight), drawn * (1 - 1e-12), "right")
    return np.cumsum(peaks[np.minimum(picked, len(peaks) - 1)], axis=1)[:, np.asarray(levels) - 1]


def _row(
    k: int, chance: float, likely: float, replicates: Array, sums: Array, ordered: Array, room: Room, n: int
) -> dict[str, object]:
    low = min(float(np.quantile(replicates[:, 0], CENTRAL[0])) / RARELY_TOGETHER, chance, likely)
    low = low if low * n / k >= 1 else 0.0
    high = max(float(np.quantile(replicates[:, 1], CENTRAL[1])), 1 - 0.05 ** (min(k, n) / n), chance, likely)
    typical, p95 = sums[:, 0], sums[:, 1]
    # Beyond n trials the largest stands for those that are missing.
    largest = room.baseline_mib + ordered[:, np.minimum(np.arange(k), n - 1)].sum(axis=1)
    worst_low, worst_high = np.quantile(largest, CENTRAL)
    p95_low, p95_high = np.quantile(p95, CENTRAL)
    return {
        "k": k,
        "typical_mib": float(np.mean(typical)),
        **dict(zip(("typical_low_mib", "typical_high_mib"), map(float, np.quantile(typical, CENTRAL)), strict=True)),
        "p95_mib": float(np.mean(p95)), "p95_low_mib": float(p95_low), "p95_high_mib": float(p95_high),
        "worst_mib": float(largest.mean()), "worst_low_mib": float(worst_low),
        "worst_high_mib": float(worst_high),
        "margin_mib": room.usable_mib - float(np.mean(p95)),
        "margin_low_mib": room.usable_mib - float(p95_high), "margin_high_mib": room.usable_mib - float(p95_low),
        "hard_fit": bool(worst_high <= room.usable_mib),
        "sets_over_pct": 100 * chance,
        "p_overflow_pct": 100 * likely,
        "p_low_pct": 100 * low,
        "p_high_pct": 100 * high,
    }  # fmt: skip


def overflow_chances(peaks: Array, weight: Array, free_mib: float, levels: Sequence[int]) -> Array:
    """P(sum of k peaks > free) for each level: the distribution of the sum is convolved up to ``free``.

    What would lie above it is dropped on the way, for peaks are positive and no sum comes back. Peaks and weights are
    those of a log, or a row a log; so is what comes back.
    """
    if not free_mib > 0:
        return np.ones((*np.shape(peaks)[:-1], len(levels)))
    one = _distribution(peaks, weight, free_mib)
    return _sums(one, one, levels)


def ends_over(
    peaks: Array, once: Array, weight_s: Array, at_peak: Array, free_mib: float, levels: Sequence[int]
) -> Array:
    """P(peak of one trial + what k - 1 others hold at any moment > free) for each level.

    The one is any trial (``once``, shares that sum to 1), the others are met in proportion to ``weight_s``, and hold
    nothing when not at their peak. Peaks, ``once`` and ``weight_s`` are those of a log, or a row a log.
    """
    if not free_mib > 0:
        return np.ones((*np.shape(peaks)[:-1], len(levels)))
    share = weight_s / weight_s.sum(axis=-1, keepdims=True)
    beside = _distribution(peaks, share * at_peak, free_mib)
    beside[..., 0] += (share * (1 - at_peak)).sum(axis=-1)
    return _sums(_distribution(peaks, once, free_mib), beside, levels)


def _distribution(peaks: Array, weight: Array, free_mib: float) -> Array:
    """The weight of peaks by bin up to ``free_mib``; what is larger is dropped."""
    place = np.rint(peaks * (BINS / free_mib))
    # A peak is rounded to its bin, but never across the limit.
    place = np.where(peaks > free_mib, BINS + 1, np.minimum(place, BINS)).astype(int)
    rows = place.reshape(-1, place.shape[-1])
    place_of_all = rows + (BINS + 2) * np.arange(len(rows))[:, None]
    held = np.bincount(place_of_all.ravel(), np.broadcast_to(weight, place.shape).ravel(), (BINS + 2) * len(rows))
    return held.reshape(*place.shape[:-1], BINS + 2)[..., : BINS + 1]


def _sums(first: Array, other: Array, levels: Sequence[int]) -> Array:
    """P(sum > free) of the first and k - 1 others, for each level k."""
    size, most = 2 * (BINS + 1), max(levels)
    fits = np.cumsum(other, axis=-1)[..., ::-1]  # chance that one of the others fits beside each sum
    spectrum = np.fft.rfft(other, size) if most > 2 else np.zeros(0)
    out, total = {1: 1.0 - first.sum(axis=-1)}, first
    for k in range(2, most + 1):
        out[k] = 1.0 - (total * fits).sum(axis=-1)
        if k < most:
            ahead = spectrum if total is other else np.fft.rfft(total, size)
            total = np.maximum(np.fft.irfft(ahead * spectrum, size)[..., : BINS + 1], 0.0)
    missing = np.stack([out[k] for k in levels], axis=-1)
    return np.where(missing > 1e-9, missing, 0.0)  # rounding of the transform


def study_risk_pct(chance_pct: float, n_trials: int) -> float:
    """P(at least one crash in so many trials) = 1 - (1 - p)^N, in percent (METHODS 6)."""
    return float(-100 * np.expm1(n_trials * np.log1p(-min(chance_pct, 100.0) / 100))) if chance_pct < 100 else 100.0
