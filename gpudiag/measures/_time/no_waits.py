"""Which idle stretches are no waits within one job: too long for one, or a job ended in it and another began."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpudiag.measures._time.activity import LONGEST_WAIT_S
from gpudiag.measures._time.attempts import stretches_seen
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.processes import jobs_ran, occupied_by_gpu
from gpudiag.measures._time.span import ALWAYS
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.spans import Window, overlap

LONGEST_WAIT_US = LONGEST_WAIT_S * SECOND_US
SHORTEST_US = 60 * SECOND_US
"""From here on somebody, and no script, may have begun the next job."""
TESTED = 0.5
"""Of the time of the training: tests before it take no more. One trial of a search is hardly ever that much longer than
all before it (defaults without a published source)."""


def are_no_waits(start_us: np.ndarray, end_us: np.ndarray, between: Sequence[Window]) -> np.ndarray:
    """True for each idle stretch of more than ten minutes, and for each that holds a window of :func:`between_jobs`, or
    begins or ends with one.
    """
    low, high = np.array(between, np.int64).reshape(-1, 2).T
    beside = np.searchsorted(low, end_us, "right") > np.searchsorted(high, start_us)
    return np.asarray(beside | (end_us - start_us > LONGEST_WAIT_US))


@memoized
def between_jobs(run: Run) -> list[Window]:
    """One to ten minutes between two jobs, or between short tests and the training behind them: no process had a GPU,
    no log tells of steps on both sides, and no recorded command ran on. In microseconds, in order.

    Jobs of up to ten minutes each come before: one, however long what follows is, or several of half of the training at
    most. Between the trials of a search, and where a training that ran for longer begins again, such time is the job's
    own.
    """
    gpus = {} if run.info.clock.joined and len(run.trials) else occupied_by_gpu(run)
    free = [ALWAYS] if gpus else []
    for one in gpus.values():
        begins, ends = stretches_seen(one.start_us[one.free], one.end_us[one.free])
        free = overlap(free, list(zip(begins.tolist(), ends.tolist(), strict=True)))
    if not free:
        return []
    ran = jobs_ran(run)
    free = [(low, high) for low, high in free if not any(since < low and high < until for since, until in ran)]
    # A stable sort merges parts that are sorted.
    begun = np.sort(np.concatenate([one.start_us[one.at_work] for one in gpus.values()]), kind="stable")
    done = np.sort(np.concatenate([one.end_us[one.at_work] for one in gpus.values()]), kind="stable")
    at = np.searchsorted(done, [low for low, _ in free], "right")  # the first work behind each
    edges = np.unique([0, *at.tolist(), len(done)])
    length_us = done[edges[1:] - 1] - begun[edges[:-1]]
    found = [
        (window, behind)
        for window, behind in zip(free, at.tolist(), strict=True)
        if 0 < behind < len(done)
        and window[1] - window[0] >= SHORTEST_US
        and begun[behind] - done[behind - 1] <= LONGEST_WAIT_US
    ]
    alone = len({behind for _, behind in found}) == 1
    before = np.array([done[found[0][1] - 1] - begun[0]]) if alone else length_us[: length_us.argmax()]
    if before.max(initial=0) > LONGEST_WAIT_US or (not alone and before.sum() > TESTED * length_us.max()):
        return []
    return [window for window, behind in found if alone or behind <= edges[len(before)]]
