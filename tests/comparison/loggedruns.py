"""Two trainings without trials as runs in memory: lines on steps, and GPUs that are free, hold memory and work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from gpudiag.run import Run, RunInfo
from gpudiag.schema import GPU, STEPS, conform

T0 = pd.Timestamp("2026-03-02T09:00", tz="UTC")
FREE, HELD, WORK = (0.0, 4.0), (0.0, 60_000.0), (95.0, 60_000.0)
EVERY_S = 20.0


def training(
    name: str,
    stretches: Sequence[tuple[tuple[float, float], float]],
    lines: Sequence[tuple[float, int, str]],
    *,
    gpus: int = 1,
    day: int = 0,
    dated: bool = True,
    **about: Any,
) -> Run:
    """``stretches``: state of the GPUs and seconds of it; ``lines``: seconds from the start, the step that a line names
    and what is told since the one before. Not ``dated``: lines state the time of their step and have no time.
    """
    t0 = T0 + pd.Timedelta(days=day)
    states = [state for state, seconds in stretches for _ in range(round(seconds / EVERY_S))]
    rows = [
        {"time": t0 + pd.Timedelta(seconds=EVERY_S * i), "gpu": str(gpu), "util_pct": util, "mem_used_mib": used,
         "mem_total_mib": 81_920.0}
        for gpu in range(gpus) for i, (util, used) in enumerate(states)
    ]  # fmt: skip
    steps = [
        {"time": t0 + pd.Timedelta(seconds=at) if dated else pd.NaT, "step": step, "total": lines[-1][1],
         "unit": "step", "path": f"{name}.log", "line": i, "series": "nanogpt", "since": since,
         "step_s": None if dated else 1.0}
        for i, (at, step, since) in enumerate(lines)
    ]  # fmt: skip
    table = pd.DataFrame(steps).assign(time=lambda frame: pd.to_datetime(frame["time"], utc=True))
    return Run(info=RunInfo(name=name, **about), gpu=conform(pd.DataFrame(rows), GPU), steps=conform(table, STEPS))


def every(
    seconds: float, *, begin: float, first: int = 0, last: int, each_s: float = 1.0
) -> list[tuple[float, int, str]]:
    """A line every so many seconds from ``begin`` on, for the steps behind ``first`` up to ``last``."""
    n = round(seconds / each_s)
    return [(begin + (step - first) * each_s, step, "") for step in range(first + n, last + 1, n)]
