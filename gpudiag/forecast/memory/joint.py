"""The peak of every trial from all that is known of it at once: ends, sums of neighbours, parameters.

Minimises w_s |A m - y|^2 + w_p |m - x'beta|^2 + w_d |m_J - drop_J|^2, m >= 0 (METHODS 6 c), with weights 1/variance
taken from the log itself in place of fixed ones, so that the posterior says how sure each peak is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from gpudiag.forecast.memory.features import Design, choose
from gpudiag.forecast.memory.signal import Segments

Array = np.ndarray

N_DRAWS = 48
FOLDS = 5
MIN_DROPS = 8
LEAST_ERROR = 0.004
"""No reading is trusted to less than this share of a typical peak."""
USUAL_DROP_ERROR, USUAL_SUM_ERROR = 0.01, 0.02
"""Taken where the log cannot tell (METHODS 6 a: 1 % error of a drop)."""
SIGMA95 = 1.959963984540054


@dataclass(frozen=True)
class Joint:
    """``peak_mib``, ``low_mib``, ``high_mib`` (n_trials,), 95 %; ``draws`` (N_DRAWS, n_trials): peaks that the log
    allows as well; ``expected_mib`` from parameters alone, with its standard deviation ``spread_mib``; ``calibration``:
    what the posterior had to be widened by to hold drops that were left out (1 or more); ``design`` that it rests on;
    ``held_out``: relative errors of the drops left out (may be empty).
    """

    peak_mib: Array
    low_mib: Array
    high_mib: Array
    draws: Array
    expected_mib: Array
    spread_mib: float
    calibration: float
    design: Design
    held_out: Array


@dataclass(frozen=True)
class _Errors:
    drop_mib: float
    sum_mib: float
    spread_mib: float


def solve(parts: Segments, drop_mib: Array, columns: dict[str, Array], rng: np.random.Generator) -> Joint:
    """Peaks of all trials of one GPU or of several whose rows stand below each other.

    ``parts.used_mib`` is above the baseline; ``drop_mib`` is NaN where an end says nothing.
    """
    design = _design(parts, drop_mib, columns)
    beta, typical = _regress(design.columns, parts, drop_mib)
    expected = np.maximum(design.columns @ beta, 0.0)
    errors = _errors(parts, drop_mib, expected, typical)
    peak, draws = _posterior(parts, drop_mib, expected, errors, N_DRAWS, rng)
    held_out, calibration = _cross_validated(parts, drop_mib, design, errors, rng)
    spread = draws.std(axis=0) * calibration
    draws = np.maximum(peak + (draws - draws.mean(axis=0)) * calibration, 0.0)
    low, high = np.maximum(peak - SIGMA95 * spread, 0.0), peak + SIGMA95 * spread
    return Joint(peak, low, high, draws, expected, errors.spread_mib, calibration, design, held_out)


def _design(parts: Segments, drop_mib: Array, columns: dict[str, Array]) -> Design:
    known = np.flatnonzero(~np.isnan(drop_mib))
    if len(known) + len(parts.used_mib) < 4 * MIN_DROPS or not columns:
        return Design(np.ones((len(drop_mib), 1)), ())
    count = np.asarray(parts.rows.sum(axis=1)).ravel()
    rows = sparse.vstack([_picker(known, len(drop_mib)), parts.rows]).tocsr()
    weigh = np.concatenate([np.ones(len(known)), 1.0 / count])
    return choose(columns, weigh, rows, np.concatenate([drop_mib[known], parts.used_mib]))


def _regress(design: Array, parts: Segments, drop_mib: Array) -> tuple[Array, float]:
    """Coefficients by weighted least squares over drops and sums, and the mean of what they explain."""
    known = np.flatnonzero(~np.isnan(drop_mib))
    count = np.asarray(parts.rows.sum(axis=1)).ravel()
    weigh = np.concatenate([np.ones(len(known)), 0.5 / count])
    rows = np.vstack([design[known], parts.rows @ design]) * weigh[:, None]
    target = np.concatenate([drop_mib[known], parts.used_mib]) * weigh
    beta = np.linalg.lstsq(rows, target, rcond=None)[0]
    each = np.concatenate([drop_mib[known], parts.used_mib / np.maximum(count, 1)])
    return beta, float(np.mean(each))


def _errors(parts: Segments, drop_mib: Array, expected: Array, typical: float) -> _Errors:
    """Standard deviations of a drop, of a sum, and of trials about their parameters."""
    known = ~np.isnan(drop_mib)
    count = np.asarray(parts.rows.sum(axis=1)).ravel()
    anchored = np.asarray(parts.rows @ known.astype(float)).ravel() == count
    drop, total = USUAL_DROP_ERROR * typical, USUAL_SUM_ERROR * typical
    if anchored.sum() >= 2 * MIN_DROPS:
        left = parts.used_mib[anchored] - parts.rows[anchored] @ np.where(known, drop_mib, 0.0)
        both = _robust_sd(left)
        total, drop = both / 2**0.5, float(np.median(both / (2 * count[anchored]) ** 0.5))
    drop, total = max(drop, LEAST_ERROR * typical), max(total, LEAST_ERROR * typical)
    if known.sum() >= MIN_DROPS:
        spread = _robust_sd(drop_mib[known] - expected[known])
    else:
        spread = _robust_sd((parts.used_mib - parts.rows @ expected) / np.sqrt(np.maximum(count, 1)))
    return _Errors(drop, total, max(float(np.sqrt(max(spread**2 - drop**2, 0.0))), LEAST_ERROR * typical))


def _posterior(
    parts: Segments, drop_mib: Array, expected: Array, errors: _Errors, n_draws: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Mode, and exact draws by perturbing the data (Papandreou and Yuille, NIPS 2010); m >= 0 by clipping."""
    known = ~np.isnan(drop_mib)
    diagonal = np.full(len(drop_mib), errors.spread_mib**-2.0) + known * errors.drop_mib**-2.0
    rows = parts.rows / errors.sum_mib
    factor = splu((rows.T @ rows + sparse.diags(diagonal)).tocsc())
    fixed = np.where(known, np.nan_to_num(drop_mib), 0.0) * errors.drop_mib**-2.0
    pull = expected * errors.spread_mib**-2.0 + fixed + rows.T @ (parts.used_mib / errors.sum_mib)
    noise = rows.T @ rng.standard_normal((len(parts.used_mib), n_draws))
    noise += np.sqrt(diagonal)[:, None] * rng.standard_normal((len(drop_mib), n_draws))
    mode = factor.solve(pull)
    return np.maximum(mode, 0.0), (mode[:, None] + factor.solve(noise)).T if n_draws else np.empty((0, len(mode)))


def _cross_validated(
    parts: Segments, drop_mib: Array, design: Design, errors: _Errors, rng: np.random.Generator
) -> tuple[Array, float]:
    """Relative errors of drops predicted without them, and the factor that makes 95 % intervals hold 95 % of them."""
    known = np.flatnonzero(~np.isnan(drop_mib))
    if len(known) < 2 * FOLDS:
        return np.empty(0), 1.0
    known = rng.permutation(known)
    relative, scaled = [], []
    for fold in range(FOLDS):
        out = known[fold::FOLDS]
        kept = drop_mib.copy()
        kept[out] = np.nan
        beta, _ = _regress(design.columns, parts, kept)
        peak, draws = _posterior(parts, kept, np.maximum(design.columns @ beta, 0.0), errors, N_DRAWS // 2, rng)
        error = np.abs(peak[out] - drop_mib[out])
        relative.append(error / drop_mib[out])
        scaled.append(error / np.sqrt(draws.var(axis=0)[out] + errors.drop_mib**2))
    calibration = float(np.quantile(np.concatenate(scaled), 0.95)) / SIGMA95
    return np.concatenate(relative), max(1.0, calibration)


def _picker(known: Array, n: int) -> sparse.csr_matrix:
    return sparse.csr_matrix((np.ones(len(known)), (np.arange(len(known)), known)), (len(known), n))


def _robust_sd(values: Array) -> float:
    """1.4826 x median absolute deviation, but not below half the standard deviation: errors have long tails."""
    middle = np.median(values)
    return float(max(1.4826 * np.median(np.abs(values - middle)), 0.5 * np.std(values)))
