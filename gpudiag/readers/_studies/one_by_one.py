"""Whether trials of which only the ends are known ran one after another, told from how these lie.

Several at once end in the order of their numbers now and then, the more so the more alike they are. So that is no proof
by itself: it is one where the same trials, by several workers in another order, would hardly have ended so.
"""

from __future__ import annotations

import numpy as np

MOST_AT_ONCE = 8
BY_CHANCE = 0.1
"""Of searches by several workers that start together, so many at most are taken for one worker's; those by one worker
are known from the eighth to the tenth trial on."""
BLUR = 0.02
"""Share of a usual trial that is no order: workers start so far apart, and trials of the same work differ so much."""
_SHUFFLES, _MOST_TRIALS = 400, 200


def ran_one_by_one(ends_s: np.ndarray) -> bool:
    """Whether trials ran one after another. ``ends_s``: when each ended, by number, since the first began (s)."""
    ends_s = np.asarray(ends_s, float)[:_MOST_TRIALS]
    if not np.isfinite(ends_s).all() or not (np.diff(ends_s, prepend=0.0) >= 0).all():
        return False
    most = min(MOST_AT_ONCE, len(ends_s) // 2)
    rng = np.random.default_rng(0)
    return most >= 2 and all(_by_chance(ends_s, n, rng) < BY_CHANCE for n in range(2, most + 1))


def _by_chance(ends_s: np.ndarray, n_workers: int, rng: np.random.Generator) -> float:
    """How often the trials that these would be by ``n_workers`` end as clearly in order, if shuffled."""
    before = np.concatenate([np.zeros(n_workers), ends_s[:-n_workers]])  # in order, the one ahead by so many made room
    took_s = ends_s - before
    whole = len(ends_s) // n_workers * n_workers
    shuffled = rng.permuted(np.tile(took_s, (_SHUFFLES, 1)), axis=1)[:, :whole]
    ends = shuffled.reshape(_SHUFFLES, -1, n_workers).cumsum(axis=1).reshape(_SHUFFLES, -1)
    least_s = np.diff(ends_s).min() - BLUR * np.median(took_s)
    return float((np.diff(ends, axis=1).min(axis=1) >= least_s).mean())
