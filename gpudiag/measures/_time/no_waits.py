"""Which idle stretches are no waits within one job: too long for one, or a job ended in it and another began."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._gpu.held import BASELINE_MIB, HELD_MIB
from gpudiag.measures._time.activity import LONGEST_WAIT_S, activity
from gpudiag.measures._time.attempts import stretches_seen
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.expected import logged_spans
from gpudiag.measures._time.free_ends import MOSTLY, command_spans
from gpudiag.measures._time.microseconds import SECOND_US
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
    """One to ten minutes between short tests and the training behind them: no process had a GPU, no log of one training
    tells of steps on both sides, and no recorded command ran on. In microseconds, in order.

    A process takes memory on its GPU: known where the work held some. Tests of up to ten minutes each, half of the
    training at most, come before it. Between the trials of a search, and where a training that ran for longer begins
    again, such time is the job's own.
    """
    if "util_pct" not in run.gpu or "mem_used_mib" not in run.gpu or (run.info.clock.joined and len(run.trials)):
        return []
    samples = cells(run, "util_pct", "mem_used_mib")
    util, used, start, end = (samples[name].to_numpy() for name in ("util_pct", "mem_used_mib", "start_us", "end_us"))
    at_work, free = np.zeros(len(samples), bool), [ALWAYS]
    for _, own in slices(samples):
        at_work[own] = activity(util[own])
        least_mib = float(np.nanmin(used[own], initial=HELD_MIB))
        without = ~at_work[own] & (used[own] < min(least_mib + BASELINE_MIB, HELD_MIB))
        begins, ends = stretches_seen(start[own][without], end[own][without])
        free = overlap(free, list(zip(begins.tolist(), ends.tolist(), strict=True)))
    if not at_work.any() or not (used[at_work] >= HELD_MIB).mean() >= MOSTLY:
        return []
    ran = [*logged_spans(run), *command_spans(run)]
    free = [(low, high) for low, high in free if not any(since < low and high < until for since, until in ran)]
    begun, done = np.sort(start[at_work]), np.sort(end[at_work])
    at = np.searchsorted(done, [low for low, _ in free], "right")  # the first work behind each
    edges = np.unique([0, *at.tolist(), len(done)])
    length_us = done[edges[1:] - 1] - begun[edges[:-1]]
    training = int(length_us.argmax())
    tests_us = length_us[:training]
    if tests_us.max(initial=0) > LONGEST_WAIT_US or tests_us.sum() > TESTED * length_us[training]:
        return []
    return [
        (low, high)
        for (low, high), behind in zip(free, at.tolist(), strict=True)
        if 0 < behind <= edges[training]
        and high - low >= SHORTEST_US
        and begun[behind] - done[behind - 1] <= LONGEST_WAIT_US
    ]
