"""How many trainings the logs tell of at once."""

from __future__ import annotations

import pandas as pd

from gpudiag.measures._steps.courses import courses
from gpudiag.measures._steps.ranks import by_log, in_lock_step
from gpudiag.run import Run


def trainings_at_once(run: Run) -> int:
    """Logs that tell of steps at one moment, half way through one of them, and do not say that they are of ranks that
    do their steps together: they may be of as many trainings. 0 without a log.
    """
    told = courses(run)
    if not told or in_lock_step(told):
        return int(bool(told))
    times = [pd.concat([part["end"] for part in parts]) for parts in by_log(told).values()]
    spans = [(own.min(), own.max()) for own in times if own.notna().any()]
    middles = [begin + (end - begin) / 2 for begin, end in spans]
    return max([1, *(sum(begin <= middle <= end for begin, end in spans) for middle in middles)])
