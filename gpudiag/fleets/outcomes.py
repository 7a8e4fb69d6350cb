"""What becomes of the runs that an executor of any kind diagnoses, as they come."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from gpudiag.errors import ReportError
from gpudiag.fleets.row import not_diagnosed
from gpudiag.fleets.worker import Job, Outcome, close_all, diagnosed

AHEAD = 1024
"""Runs handed to the executor ahead of the results: enough for 500 workers, and few results in memory at once."""
TRIES = 3
"""A run whose worker was lost is given to another one, so often in all."""
SIGNAL_S = 0.5
"""How often the main thread looks whether a signal has come."""


@contextmanager
def executor_of(given: Executor | None, jobs: int) -> Iterator[Executor]:
    """The executor that was given, else threads of this machine, each with a process of its own."""
    if given is not None:
        yield given
        return
    pool = ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0)))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        close_all()


def outcomes(pool: Executor, waiting: deque[Job]) -> Iterator[Outcome]:
    """Outcomes as they come; jobs may be added to ``waiting`` meanwhile."""
    running: dict[Future[Outcome], tuple[Job, int]] = {}
    try:
        while True:
            while waiting and len(running) < AHEAD:
                job = waiting.popleft()
                running[_submitted(pool, job)] = job, 1
            if not running:
                return
            for done in wait(running, SIGNAL_S, FIRST_COMPLETED).done:
                job, tries = running.pop(done)
                error = done.exception()
                if error is None:
                    yield done.result()
                elif tries < TRIES:
                    running[_submitted(pool, job)] = job, tries + 1
                else:
                    reason = f"its worker was lost {TRIES} times ({type(error).__name__})."
                    yield Outcome(job.found, not_diagnosed(job.found, reason), passing=True)
    finally:
        for one in running:
            one.cancel()


def _submitted(pool: Executor, job: Job) -> Future[Outcome]:
    try:
        return pool.submit(diagnosed, job)
    except BrokenExecutor as error:
        raise ReportError(
            f"the executor is broken ({type(error).__name__}); call again with a new one: what was diagnosed is kept."
        ) from error
