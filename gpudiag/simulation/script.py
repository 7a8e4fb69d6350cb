"""Histories whose trial table is given: the GPU's response follows from the same physics as in the event loop."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudiag.simulation.life import Life
from gpudiag.simulation.sharing import busy_share, speed
from gpudiag.simulation.spec import Spec, Trial
from gpudiag.simulation.trial_plan import memory_ramp
from gpudiag.simulation.world import History


def live(
    life: Life,
    trial: Trial,
    *,
    until_s: float,
    startup_s: float,
    epochs: int,
    dip_s: float,
    tail_s: float,
    values: Sequence[float],
    peak_mib: float,
) -> None:
    """Fill a life from its start to ``until_s``: start-up, ``epochs`` equal epochs that each end in a dip, tail.

    One value is reported at the end of each epoch. A life too short for its start-up stays on the CPU.
    """
    training_s = until_s - life.start_s - startup_s - tail_s
    first = life.start_s + startup_s
    if epochs and training_s > 0:
        epoch_s = training_s / epochs
        for epoch in range(epochs):
            begin = first + epoch * epoch_s
            life.spans.append((begin, begin + epoch_s - min(dip_s, 0.5 * epoch_s)))
            if epoch < len(values):
                life.reports.append((epoch + 1, values[epoch], begin + epoch_s))
    life.memory = _memory_course(life, trial, until_s, startup_s, peak_mib)
    life.peak_mib = max((level for _, level in life.memory), default=0.0)
    if life.reports:
        life.value = life.reports[-1][1]


def _memory_course(
    life: Life, trial: Trial, until_s: float, startup_s: float, peak_mib: float
) -> list[tuple[float, float]]:
    """Context in the start-up, a ramp to the plateau, the peak when the first epoch ends, nothing after the end."""
    course = [(life.start_s + startup_s * trial.context_at, trial.context_mib)]
    if life.spans:
        end = life.spans[0][1]
        begin = life.start_s + startup_s * trial.memory_at
        course += [(begin + after, level) for after, level in memory_ramp(trial, peak_mib)]
        course.append((max(end, begin + trial.ramp_s), peak_mib))
    course = [(at, level) for at, level in course if at < until_s]
    return [*course, (until_s, 0.0)] if course else []


def replay(spec: Spec, lives: Sequence[Life]) -> History:
    """The history that these lives make on the spec's GPUs, with its foreign loads; fills ``work_s``."""
    busy, used = [], []
    for index, gpu in enumerate(spec.gpus):
        own = [life for life in lives if life.gpu == index]
        busy.append(_share_gpu(spec, index, own))
        changes = [(at, level - before) for life in own for before, (at, level) in _with_previous(life.memory)]
        for load in (load for load in spec.foreign if load.gpu == index):
            changes += [(load.start_s, load.mem_mib), (load.end_s, -load.mem_mib)]
        level = float(gpu.base_mib)
        course = []
        for at, change in sorted(changes):
            level += change
            course.append((at, level))
        used.append(course)
    return History(list(lives), busy, used)


def _with_previous(course: Sequence[tuple[float, float]]) -> list[tuple[float, tuple[float, float]]]:
    return list(zip([0.0, *(level for _, level in course)], course, strict=False))


def _share_gpu(spec: Spec, index: int, lives: Sequence[Life]) -> list[tuple[float, float]]:
    """Busy share of one GPU at each change; adds to each life the GPU-busy seconds it got."""
    gpu = spec.gpus[index]
    loads = [load for load in spec.foreign if load.gpu == index]
    changes = [(load.start_s, -1 - i, True) for i, load in enumerate(loads)]
    changes += [(load.end_s, -1 - i, False) for i, load in enumerate(loads)]
    for i, life in enumerate(lives):
        changes += [(at, i, True) for at, _ in life.spans] + [(at, i, False) for _, at in life.spans]
    active: dict[int, float] = {}
    trace: list[tuple[float, float]] = []
    now = -math.inf
    for at, key, starts in sorted(changes):
        pace = speed(gpu, active.values())
        for running in (key for key in active if key >= 0):
            lives[running].work_s += (at - now) * pace * active[running]
        now = at
        if starts:
            active[key] = lives[key].share if key >= 0 else loads[-1 - key].share_pct / 100.0
        else:
            active.pop(key)
        trace.append((at, busy_share(gpu, active.values())))
    return trace
