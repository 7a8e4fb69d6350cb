"""Which trials a run holds, so that a study that several runs hold, as copies or by one name, is found.

Trials that began at the same moments under the same numbers of a study of the same name are the same trials, however
the study was stored and whenever it was copied: a start stays as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING

from gpudiag.alignment.apply import as_stated
from gpudiag.schema import ADDED

if TYPE_CHECKING:
    import numpy as np

    from gpudiag.run import Run

BLOCK = 8
"""Trials that make one digest, by number: a copy that was taken earlier has all whole blocks of the later one."""
TELLING = 8
"""What the starts of a block must be worth together. A start in microseconds is never met again (8), one in
milliseconds twice hardly (4), one in whole seconds easily, where a scheduler starts many jobs at once (1)."""


def trials_of(run: Run) -> tuple[str, ...]:
    """A digest of each block of trials whose starts tell it from others; starts on the clock of the study itself."""
    trials = run.trials
    if not {"study", "trial", "state", "start"} <= set(trials):
        return ()
    began = trials[trials["start"].notna() & (trials["state"] != ADDED)]
    began = as_stated(began, ("start",), run.info.clock).sort_values(["study", "trial"])
    blocks = began.groupby(["study", began["trial"] // BLOCK], sort=False, observed=True)
    digests = (_digest(study, rows["trial"], rows["start"].to_numpy("datetime64[us]")) for (study, _), rows in blocks)
    return tuple(filter(None, digests))


def _digest(study: object, numbers: Iterable[int], starts: np.ndarray) -> str:
    """'' where other trials may have begun at the same moments."""
    starts_us = [int(start) for start in starts.astype("int64")]
    if sum(_worth(start_us) for start_us in set(starts_us)) < TELLING:
        return ""
    return sha256(repr((str(study), [*map(int, numbers)], starts_us)).encode()).hexdigest()[:16]


def _worth(start_us: int) -> int:
    return 8 if start_us % 1000 else 4 if start_us % 1_000_000 else 1
