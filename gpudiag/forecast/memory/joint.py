"""The peak of every trial from all that is known of it at once: rises, falls, parameters.

What a trial takes at a change is unknown; what all take together was read. A Gaussian model with the ages at which
trials of this log grow shares the changes out, and says how sure each peak is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from gpudiag.forecast.memory.expectation import LEAST_ERROR, SIGMA95, Board, Expectation
from gpudiag.forecast.memory.features import Design
from gpudiag.forecast.memory.signal import Steps

Array = np.ndarray

N_DRAWS = 48
FOLDS = 5
READING_MIB = 8.0
"""Nothing is read more finely: rises are followed in steps of twice as much."""
MOST_OPEN = 0.25
"""A peak that may be off by more than this share has bounds and no value (a default without a published source)."""
CLEAN_CHANCE = 0.03
"""The fall at an end is the trial's peak where another grew in the same moment with no more than this chance."""
CLEAN_SHARE = 0.005
BLOCK_SIZE = 2**23
"""Values drawn at a time."""
LEAST_CALIBRATION = 0.7


@dataclass(frozen=True)
class Joint:
    """``peak_mib``, ``low_mib``, ``high_mib`` (n_trials,), 95 %, of what each trial held at its end; ``draws``
    (N_DRAWS, n_trials): peaks that the log allows as well; ``clean``: its end shows it; ``told``: readings say more of
    it than its parameters; ``separate``: readings alone tell it to a quarter; ``fall_mib``: what its end freed at least
    (NaN unknown).
    ``expected_mib`` from parameters alone, with its standard deviation ``spread_mib``; ``calibration``: what the
    posterior had to be widened by to hold falls that were left out (1 or more); ``design`` that it rests on;
    ``held_out``: relative errors of the falls left out (may be empty).
    """

    peak_mib: Array
    low_mib: Array
    high_mib: Array
    draws: Array
    clean: Array
    told: Array
    separate: Array
    fall_mib: Array
    expected_mib: Array
    spread_mib: float
    calibration: float
    design: Design
    held_out: Array


@dataclass(frozen=True)
class _Model:
    """``rows`` @ x = ``target`` with ``noise`` (variances), x of ``mean`` and ``var``; ``peaks`` @ x are the peaks."""

    rows: scipy.sparse.csr_matrix
    target: Array
    noise: Array
    mean: Array
    var: Array
    peaks: scipy.sparse.csr_matrix
    clean: Array
    end_row: Array
    """(n_trials,): the row of a clean end, else -1."""


def solve(
    boards: Sequence[Board], n_trials: int, usual: Array, columns: dict[str, Array], rng: np.random.Generator
) -> Joint:
    """What all trials held at last. ``usual`` (n_trials,) bool: it lived until its memory was settled."""
    fall = np.full(n_trials, np.nan)
    for board in boards:
        fall[board.places] = board.steps.fall_mib
    model = _model(boards, n_trials)
    anchors = model.clean & usual
    expectation = Expectation(boards, n_trials)
    design = expectation.design(anchors, fall, columns)
    expected, spread = expectation.of(design, anchors, fall)
    alone = _solved(model, expected, np.full(n_trials, np.inf), rng)[1].std(axis=0)
    peak, draws = _solved(model, expected, _trusted(usual, spread), rng)
    held_out, calibration = _cross_validated(model, expectation, design, anchors, fall, usual, rng)
    sd = draws.std(axis=0)
    least = max(READING_MIB, LEAST_ERROR * float(np.mean(expected)))
    wide = np.where(model.clean, np.maximum(sd, least), np.maximum(sd * calibration, least))
    draws = peak + (draws - draws.mean(axis=0)) * np.where(sd > 0, wide / np.maximum(sd, 1e-9), 0.0)
    floor = np.maximum(np.nan_to_num(fall) - least, 0.0)
    return Joint(
        peak_mib=np.maximum(peak, floor),
        low_mib=np.maximum(peak - SIGMA95 * wide, floor),
        high_mib=np.maximum(peak + SIGMA95 * wide, floor),
        draws=np.maximum(draws, floor),
        clean=model.clean,
        told=alone < spread,
        separate=model.clean | (SIGMA95 * alone <= MOST_OPEN * peak),
        fall_mib=fall,
        expected_mib=expected,
        spread_mib=spread,
        calibration=calibration,
        design=design,
        held_out=held_out,
    )


def _model(boards: Sequence[Board], n_trials: int) -> _Model:
    rows, targets, noises, means, variances, owners = [], [], [], [], [], []
    clean, end_row, n_rows, n_entries = np.zeros(n_trials, bool), np.full(n_trials, -1), 0, 0
    for board in boards:
        steps = board.steps
        n = len(steps.change_mib)
        mean, var, sure = _before_readings(board)
        entry = np.arange(len(mean))
        rows.append(_balance(steps, n_rows, n_entries))
        noise = READING_MIB**2 + steps.sd_mib**2
        noise[steps.blind] = np.inf
        alone = np.isfinite(steps.fall_mib) & (steps.end_step >= 0)
        alone &= sure[np.maximum(steps.end_step, 0)] & (np.nan_to_num(steps.fall_mib) > READING_MIB)
        clean[board.places] = alone
        end_row[board.places] = np.where(alone, n_rows + steps.end_step, -1)
        targets.append(steps.change_mib)
        noises.append(noise)
        means.append(mean)
        variances.append(var)
        owners.append(board.places[steps.trial])
        n_rows, n_entries = n_rows + n, n_entries + len(entry)
    row, column, value = (np.concatenate([part[i] for part in rows]) for i in range(3))
    matrix = scipy.sparse.csr_matrix((value, (row, column)), (n_rows, n_entries))
    owner = np.concatenate(owners)
    peaks = scipy.sparse.csr_matrix((np.ones(n_entries), (owner, np.arange(n_entries))), (n_trials, n_entries))
    seen = np.isfinite(np.concatenate(noises))
    kept_row = np.cumsum(seen) - 1
    end_row = np.where((end_row >= 0) & seen[np.maximum(end_row, 0)], kept_row[np.maximum(end_row, 0)], -1)
    return _Model(
        matrix[seen], np.concatenate(targets)[seen], np.concatenate(noises)[seen], np.concatenate(means),
        np.concatenate(variances), peaks, end_row >= 0, end_row,
    )  # fmt: skip


def _before_readings(board: Board) -> tuple[Array, Array, Array]:
    """Mean and variance of what each entry takes before its change is looked at; steps in which nobody else grows.

    A rise is one trial's, whose is told by their ages only; what hides behind a fall, or before the first reading, is
    what trials of that age grow by.
    """
    steps = board.steps
    n = len(steps.change_mib)
    mean, var, jumps = board.growth.between(steps.young_s, steps.old_s)
    total, chance = (np.bincount(steps.step, part * ~steps.ends, n) for part in (mean, jumps))
    share = mean / np.maximum(np.bincount(steps.step, mean, n), 1e-9)[steps.step]
    rise = np.maximum(steps.change_mib, 0.0)[steps.step]
    sure = steps.falls & ~steps.blind & (chance <= CLEAN_CHANCE) & (total <= CLEAN_SHARE * board.growth.whole_mib)
    shown = ~(steps.falls | steps.blind)[steps.step] & (steps.step < n - 1)
    quiet = sure[steps.step]
    mean = np.where(shown, rise * share, np.where(quiet, 0.0, mean))
    var = np.where(shown, rise**2 * share, np.where(quiet, 0.0, var))
    return mean, var + 1.0, sure


def _balance(steps: Steps, first_row: int, first_entry: int) -> tuple[Array, Array, Array]:
    """Change = what those that run take, less all that those that end ever took: row, column, value."""
    entry = np.arange(len(steps.step))
    taken = (steps.step, entry, np.ones(len(entry)))
    end = steps.end_step[steps.trial]
    gone = end >= 0
    freed = (end[gone], entry[gone], -np.ones(int(gone.sum())))
    row, column, value = (np.concatenate(both) for both in zip(taken, freed, strict=True))
    return row + first_row, column + first_entry, value


def _trusted(usual: Array, spread: float) -> Array:
    """The standard deviation of what parameters let expect; infinite for trials that may have ended before."""
    return np.where(usual & np.isfinite(spread), spread, np.inf)


def _solved(
    model: _Model, expected: Array, spread: Array, rng: np.random.Generator, without: Array | None = None
) -> tuple[Array, Array]:
    """Mean and draws of the peaks, given what parameters let expect (no spread: nothing), some rows left out."""
    kept = np.ones(len(model.target), bool)
    if without is not None:
        kept[without] = False
    held = np.isfinite(spread)
    rows = scipy.sparse.vstack([model.rows[kept], model.peaks[held]]).tocsr()
    target = np.concatenate([model.target[kept], expected[held]])
    noise = np.concatenate([model.noise[kept], spread[held] ** 2])
    scaled = rows.multiply(model.var[None, :]).tocsr()
    factor = scipy.sparse.linalg.splu((scaled @ rows.T + scipy.sparse.diags(noise)).tocsc())
    out = np.empty((1 + N_DRAWS, len(expected)))
    block = max(1, BLOCK_SIZE // max(len(model.mean), 1))
    for first in range(0, 1 + N_DRAWS, block):
        # Exact draws by perturbing what is known beforehand and what was read (Papandreou and Yuille, NIPS 2010).
        size = min(block, 1 + N_DRAWS - first)
        start, blur = rng.standard_normal((len(model.mean), size)), rng.standard_normal((len(target), size))
        if first == 0:
            start[:, 0], blur[:, 0] = 0.0, 0.0  # the mean
        start = model.mean[:, None] + np.sqrt(model.var)[:, None] * start
        missing = target[:, None] + np.sqrt(noise)[:, None] * blur - rows @ start
        out[first : first + size] = (model.peaks @ (start + scaled.T @ factor.solve(missing))).T
    return out[0], out[1:]


def _cross_validated(
    model: _Model, expectation: Expectation, design: Design, anchors: Array, fall: Array, usual: Array,
    rng: np.random.Generator,
) -> tuple[Array, float]:  # fmt: skip
    """Relative errors of falls predicted without them, and the factor that makes 95 % intervals hold 95 % of them."""
    known = np.flatnonzero(anchors)
    if len(known) < 2 * FOLDS:
        return np.empty(0), 1.0
    known = rng.permutation(known)
    relative, scaled = [], []
    for fold in range(FOLDS):
        out = known[fold::FOLDS]
        kept = anchors.copy()
        kept[out] = False
        expected, spread = expectation.of(design, kept, fall)
        peak, draws = _solved(model, expected, _trusted(usual, spread), rng, model.end_row[out])
        error = np.abs(peak[out] - fall[out])
        relative.append(error / fall[out])
        scaled.append(error / np.sqrt(draws.var(axis=0)[out] + READING_MIB**2))
    level = min(0.95 * (1 + 1 / len(known)), 1.0)  # that holds 95 % of those to come
    calibration = float(np.quantile(np.concatenate(scaled), level)) / SIGMA95
    return np.concatenate(relative), max(LEAST_CALIBRATION, calibration)
