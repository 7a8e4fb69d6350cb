"""Long ends of a record in which no process had a GPU: a recorder that began early, or ran on."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.measures._ends.logged import LogEnd, log_ends
from gpudiag.measures._ends.recorded import ENDS
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._gpu.held import HELD_MIB, held_from_mib
from gpudiag.measures._time.activity import LONGEST_WAIT_S, activity
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.expected import logged_window
from gpudiag.measures._time.microseconds import LONG_AGO, NEVER, SECOND_US, microseconds
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.spans import Window

MOSTLY = 0.9
"""Of the work: where so much of it held memory, that tells when the training was there (a default without a published
source)."""
COMMAND_START = "command_start"


class FreeEnds(NamedTuple):
    """The time before the first work of any GPU, and behind the last; None where a process may have had one then, or
    a recorded command ran, and of ten minutes or less, which a job takes to start and to end. ``all_done``: logs on the
    telemetry's clock tell of all steps.
    """

    lead: Window | None = None
    trail: Window | None = None
    all_done: bool = False

    @property
    def windows(self) -> list[Window]:
        return [window for window in (self.lead, self.trail) if window is not None]


@memoized
def free_ends(run: Run) -> FreeEnds:
    """Known where the memory of every GPU was read, and the work held some. Trials, and jobs of a scheduler, tell
    themselves when GPUs were held. Behind a training whose log stops short or at an error nothing is free: its job may
    have kept the GPUs.

    A process takes memory on its GPU: where no GPU has a GiB in use, none had one. Beside a log that tells of all steps
    a tenth of the total may be in use as well.
    """
    if len(run.trials) or "util_pct" not in run.gpu or "mem_used_mib" not in run.gpu:
        return FreeEnds()
    logged = logged_window(run)
    ends = log_ends(run) if len(run.steps) or len(run.events) else []
    all_done = logged is not None and bool(ends) and all(end.all_done for end in ends)
    samples = cells(run, "util_pct", "mem_used_mib")
    at_work = np.concatenate([activity(samples["util_pct"].to_numpy()[own]) for _, own in slices(samples)])
    start, end = samples["start_us"].to_numpy(), samples["end_us"].to_numpy()
    holding = _with_memory(run, samples, sure=not all_done)
    if not at_work.any() or not holding[at_work].mean() >= MOSTLY:
        return FreeEnds()  # memory does not tell when this training was there
    held = np.flatnonzero(at_work | holding)
    commands = _commands(run)
    begun, done = logged or (NEVER, LONG_AGO)
    lead = int(start.min()), min(int(start[held].min()), begun, commands[0])
    trail = max(int(end[held].max()), done, commands[1]), int(end.max())
    return FreeEnds(
        lead if _is_long(lead) else None,
        trail if _is_long(trail) and not any(_may_hold(end) for end in ends) else None,
        all_done,
    )


def _may_hold(end: LogEnd) -> bool:
    return not end.all_done and (end.is_short or len(end.errors) > 0)


def _commands(run: Run) -> Window:
    """The first start of a recorded command and the last end of one, in microseconds: all between is the job's own.
    Without any the first is never and the last long ago.
    """
    spans = command_spans(run)
    return min((low for low, _ in spans), default=NEVER), max((high for _, high in spans), default=LONG_AGO)


def command_spans(run: Run) -> list[Window]:
    """From when to when each recorded command ran, in microseconds; one that has no end may have run on."""
    events = run.events.reindex(columns=["time", "kind", "path"]).dropna(subset=["time"])
    spans = []
    for _, told in events.groupby("path", dropna=False):
        begun = np.sort(microseconds(told["time"][told["kind"] == COMMAND_START])).tolist()
        done = np.sort(microseconds(told["time"][told["kind"].isin(ENDS)]))
        for low, until in pairwise([*begun, NEVER]):
            own = done[(done >= low) & (done < until)]
            spans.append((low, int(own.max(initial=LONG_AGO)) if len(own) else NEVER))
    return spans


def _with_memory(run: Run, samples: pd.DataFrame, *, sure: bool) -> np.ndarray:
    """True for samples that may be of a GPU of which a process holds memory, those without a reading among them.
    ``sure``: from a GiB on, however large the total.
    """
    totals, used = gpu_boards(run)["total_mib"], samples["mem_used_mib"].to_numpy(float)
    least_mib = {gpu: HELD_MIB if sure else held_from_mib(float(totals.get(gpu, np.nan))) for gpu, _ in slices(samples)}
    parts = [used[own] < least_mib[gpu] for gpu, own in slices(samples)]
    return ~np.concatenate(parts)


def _is_long(window: Window) -> bool:
    return window[1] - window[0] > LONGEST_WAIT_S * SECOND_US
