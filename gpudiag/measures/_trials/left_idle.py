"""GPU time that trials left idle: behind one that is dead or hangs, beside the last of a search, and within one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from gpudiag.errors import NotMeasurable
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.held import held_from_mib, mean_known
from gpudiag.measures._time.gpu_samples import samples_by_gpu
from gpudiag.measures._time.gpu_time import GpuTime, gpu_time
from gpudiag.measures._time.microseconds import NEVER, SECOND_US
from gpudiag.measures._time.timeline import NO_TRIAL, STALLED, STARTUP, Samples
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures._trials.horizon import Sign
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import ABANDONED, IDLE_PCT
from gpudiag.spans import Window, held_within, union


@dataclass(frozen=True)
class LeftIdle:
    """Idle seconds by GPU, and the mean memory held meanwhile (MiB; NaN where none was, or it is unknown)."""

    seconds: dict[str, float]
    held_mib: dict[str, float]

    @property
    def gpu_h(self) -> float:
        """Of all GPUs, in hours."""
        return sum(self.seconds.values()) / 3600

    @property
    def gpus(self) -> str:
        """Those with a twentieth of it or more, as a finding names its places."""
        least = 0.05 * sum(self.seconds.values())
        return ", ".join(gpu for gpu, seconds in self.seconds.items() if seconds > 0 and seconds >= least)

    @property
    def all_held_mib(self) -> float:
        """The least memory held on one of these; NaN where one held none."""
        named = [self.held_mib[gpu] for gpu in self.gpus.split(", ") if gpu]
        return min(named) if named and not any(map(math.isnan, named)) else math.nan


Places = dict[str, np.ndarray]
"""By GPU the positions of the trials on it."""
NOTHING = LeftIdle({}, {})
MAY_LIVE = (Sign.STALE, Sign.IDLE)
"""Signs that a trial does not go on, and not that its process is gone."""


@memoized
def behind_dead_trials(run: Run) -> LeftIdle:
    """Time without a trial from where a dead one most likely ended to the next start on its GPU. Behind the last trial
    of the run it counts where memory is held, as by what hangs.
    """
    time = _known_time(run)
    if time is None:
        return NOTHING
    dead = (time.trials.rows["outcome"] == ABANDONED).to_numpy()
    if "marked" in run.trials:
        dead = dead | run.trials["marked"].notna().to_numpy()[time.trials.rows.index]
    if not dead.any():
        return NOTHING
    opens = find_open_trials(run)
    may_live = opens.loc[opens["reason"].isin(MAY_LIVE), ["study", "trial"]].assign(may_live=True)
    lives = time.trials.rows.merge(may_live, "left", on=["study", "trial"])["may_live"].notna().to_numpy()

    def left(where: Places) -> LeftIdle:
        return _idle(run, time, _behind(time, where, dead, lives), first=NO_TRIAL, last=NO_TRIAL, behind=True)

    return _least(time, left)


def _behind(time: GpuTime, where: Places, dead: np.ndarray, lives: np.ndarray) -> dict[str, list[Window]]:
    """By GPU from the end of each dead trial to the next start, and behind the last where a dead one may live."""
    spans = {}
    for gpu, places in where.items():
        starts = np.append(np.sort(time.trials.start_us[places]), NEVER)
        ends = time.trials.end_us[places[dead[places]]]
        found = list(zip(ends.tolist(), starts[np.searchsorted(starts, ends)].tolist(), strict=True))
        if lives[places].any():  # beside others on one GPU nobody sees it hang before they are done
            found.append((max(int(time.trials.end_us[places].max()), time.windows[-1][1]), int(NEVER)))
        spans[gpu] = union(found)
    return spans


def _least(time: GpuTime, left: Callable[[Places], LeftIdle]) -> LeftIdle:
    """Where several GPUs are as likely to have had a trial, what is left whichever had it."""
    return min((left(time.likeliest(gpu)) for gpu in time.maybe or [""]), key=lambda one: one.gpu_h)


def beside_the_last(run: Run, low_us: int, high_us: int) -> LeftIdle:
    """Time without a trial in a stretch, of the GPUs that trials ran on."""
    time = _known_time(run)
    if time is None or low_us >= high_us:
        return NOTHING
    used = [gpu for gpu, line in time.timelines.items() if (line.cell >= STARTUP).any()]
    return _idle(run, time, {gpu: [(low_us, high_us)] for gpu in used}, first=NO_TRIAL, last=NO_TRIAL)


def within_trials(run: Run, rows: Iterable[int]) -> LeftIdle:
    """Idle time of GPUs that one of these trials, rows of ``run.trials``, had to itself."""
    time = _known_time(run)
    if time is None:
        return NOTHING
    mine = time.trials.rows.index.isin(list(rows))
    lived = list(zip(time.trials.start_us.tolist(), time.trials.end_us.tolist(), strict=True))

    def left(where: Places) -> LeftIdle:
        spans = {gpu: union(lived[place] for place in places[mine[places]]) for gpu, places in where.items()}
        return _idle(run, time, spans, first=STARTUP, last=STALLED)

    return _least(time, left)


def _known_time(run: Run) -> GpuTime | None:
    """The time of the GPUs, where trials and telemetry share a clock."""
    if "util_pct" not in run.gpu or run.gpu.empty:
        return None
    try:
        time = gpu_time(run)
    except NotMeasurable:
        return None
    return time if time.joined and time.timelines else None


def _idle(
    run: Run, time: GpuTime, spans: dict[str, list[Window]], *, first: int, last: int, behind: bool = False
) -> LeftIdle:
    """Seconds in the cells ``first`` to ``last`` with at most one trial; ``behind``: and idle, with memory held, behind
    the last trial.
    """
    seconds, held = {}, {}
    memory, totals = samples_by_gpu(run, "mem_used_mib"), gpu_boards(run)["total_mib"]
    for gpu, own in spans.items():
        if gpu not in time.timelines or not own:
            continue
        line, used = time.timelines[gpu], memory.get(gpu, Samples.none())
        low, high = (np.array([span[i] for span in own], np.int64) for i in (0, 1))
        counts = (line.cell >= first) & (line.cell <= last) & (line.running <= 1)
        worth = np.where(counts, line.length_s, 0.0)
        seconds[gpu] = float(held_within(low, high, line.start_us, line.end_us, worth).sum())
        at = np.searchsorted(low, used.time_us, "right") - 1
        mean_mib = mean_known(used.value[(at >= 0) & (used.time_us < high[at])])
        held[gpu] = mean_mib if mean_mib >= held_from_mib(float(totals.get(gpu, math.nan))) else math.nan
        if behind and high[-1] == NEVER and held[gpu] > 0:
            util = time.samples[gpu]
            from_us = np.maximum(util.start_us, max(int(low[-1]), time.windows[-1][1]))
            more_s = np.maximum(util.end_us - from_us, 0) / SECOND_US
            seconds[gpu] += float(more_s[util.value < IDLE_PCT].sum())
    return LeftIdle(seconds, held)
