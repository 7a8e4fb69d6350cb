"""Planted faults of trainings that stand still while their GPUs look busy."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.rules._engine.verdict import Severity
from gpudiag.run import Run
from gpudiag.schema import STEPS, conform
from planted.base import IDLE_W, Edge, fault, idle_before, log, run, ticks, timestamps

WORK_S, WORK_W = 900.0, 350.0
EVERY_S = 10.0


@fault(
    "busy-without-progress",
    edges={
        "min_low_s": Edge({"low_s": 595.0}, {"low_s": 600.0}, past_gives=Severity.WARNING),
        "max_low_ratio": Edge({"power_ratio": 0.255}, {"power_ratio": 0.245}, past_gives=Severity.WARNING),
        "max_logged_ratio": Edge(
            {"power_ratio": 0.61, "total": 1000}, {"power_ratio": 0.59, "total": 1000}, past_gives=Severity.WARNING
        ),
    },
    bigger=({"low_s": 1200.0}, {"low_s": 1200.0, "total": 1000}, {"low_s": 7200.0, "total": 1000}),
)
def hung(*, low_s: float = 1000.0, power_ratio: float = 0.2, total: int | None = None) -> Run:
    """After 15 min of work the GPU stays at 100 % for ``low_s`` and draws ``power_ratio`` of its power, above idle."""
    at = ticks(WORK_S + low_s)
    low = at > WORK_S
    gpu = log(at, util_pct=np.where(low, 100.0, 95.0), power_w=IDLE_W + np.where(low, power_ratio * WORK_W, WORK_W))
    # With a total there is a log, which stops with the work.
    return run(idle_before(gpu)) if total is None else run(idle_before(gpu), steps=_steps(total))


@fault(
    "log-silent",
    edges={
        "min_silent_s": Edge({"silent_s": 595.0}, {"silent_s": 600.0}, past_gives=Severity.WARNING),
        "min_due_ratio": Edge({"silent_s": 795.0, "gap_s": 400.0}, {"silent_s": 800.0, "gap_s": 400.0}),
    },
    bigger=({"silent_s": 1200.0}, {"silent_s": 3600.0}, {"silent_s": 7200.0}),
)
def silent(*, silent_s: float = 900.0, gap_s: float = EVERY_S) -> Run:
    """A log stops at step 90 of 1,000 after 15 min of work and a pause of ``gap_s`` between two lines; then the GPU is
    idle for ``silent_s``, with its memory held.
    """
    at = EVERY_S * np.arange(1, round(WORK_S / EVERY_S) + 1)
    at[10:] += gap_s - EVERY_S
    when = ticks(float(at[-1]) + silent_s)
    idle = when > at[-1]
    lines = _steps(1000).assign(time=timestamps(at))
    return run(log(when, util_pct=np.where(idle, 0.0, 95.0), power_w=np.where(idle, IDLE_W, WORK_W)), steps=lines)


def _steps(total: int) -> pd.DataFrame:
    """Lines of a log while the GPU works."""
    step = np.arange(1, round(WORK_S / EVERY_S) + 1)
    frame = pd.DataFrame({"time": timestamps(EVERY_S * step - 1), "step": step, "line": step, "total": total})
    return conform(frame.assign(unit="step", series="steps", meant="", path="train.log"), STEPS)
