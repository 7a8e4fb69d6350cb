"""Planted faults of a training's own log: pauses between steps, steps that grow, steps done twice, a loss of NaN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.run import Run
from gpudiag.schema import STEPS, conform
from planted.base import Edge, events, fault, log, run, ticks, timestamps

EVERY = 10
LINES = 100
"""A line each ten steps; a step takes a second."""


def _steps(at: np.ndarray, step: np.ndarray) -> pd.DataFrame:
    """Lines of one log at these moments."""
    frame = pd.DataFrame({"time": timestamps(at), "step": step, "line": np.arange(len(step)) + 1})
    return conform(frame.assign(unit="step", series="steps", meant="", path="train.log"), STEPS)


def _run(at: np.ndarray, step: np.ndarray, **columns: np.ndarray) -> Run:
    return run(log(ticks(float(at[-1]) + 10)), steps=conform(_steps(at, step).assign(**columns), STEPS))


@fault(
    "steps-paused",
    edges={
        "max_pauses_pct": Edge({"pause_s": 109.9}, {"pause_s": 110.1}, past_gives=Severity.NOTE),
        "severe_pauses_pct": Edge({"pause_s": 329.9}, {"pause_s": 330.1}, Severity.NOTE, Severity.WARNING),
    },
    bigger=({"pause_s": 200.0}, {"pause_s": 400.0}, {"pause_s": 2000.0}),
)
def paused(*, pause_s: float = 150.0) -> Run:
    """One pause of ``pause_s`` interrupts 990 s of steps."""
    at = np.arange(1, LINES + 1) * float(EVERY)
    at[LINES // 2 :] += pause_s
    return _run(at, np.arange(1, LINES + 1) * EVERY)


@fault(
    "steps-slower",
    edges={
        "max_late_ratio": Edge({"levels": (1.0, 1.05, 1.1, 1.15, 1.19)}, {"levels": (1.0, 1.05, 1.1, 1.15, 1.21)}),
        "min_steady_pct": Edge({"levels": (1.0, 1.5, 1.4, 1.3, 1.5)}, {"levels": (1.0, 1.5, 1.4, 1.45, 1.5)}),
        "max_p_pct": Edge({"slow": (7, 7, 13, 13, 13)}, {"slow": (7, 7, 13, 13, 14)}),
    },
    bigger=({"levels": (1.0, 1.2, 1.4, 1.6, 1.8)}, {"levels": (1.0, 1.5, 2.0, 2.5, 3.0)}),
)
def slower(*, levels: Sequence[float] = (1.0, 1.1, 1.2, 1.3, 1.4), slow: Sequence[int] = ()) -> Run:
    """A step takes ``levels`` s in the five fifths of the log; or 1 s, and 1.9 s in ``slow`` of their 20 lines."""
    # the first line has no time of its own
    took = np.repeat(np.asarray(levels), LINES // len(levels)) * EVERY
    if slow:
        took = np.where(np.concatenate([_spread(n) for n in slow]), 1.9, 1.0) * EVERY
    return _run(np.append(1.0, 1.0 + np.cumsum(took)), np.arange(1, LINES + 2) * EVERY)


def _spread(n: int, of: int = LINES // 5) -> np.ndarray:
    """True for ``n`` of so many lines, evenly."""
    return np.diff(np.arange(of + 1) * n // of) > 0


@fault(
    "steps-lost",
    edges={"max_lost_pct": Edge({"down_s": 32.0}, {"down_s": 32.2})},
    bigger=({"down_s": 100.0}, {"down_s": 1000.0}, {"down_s": 1000.0, "twice": 300}),
)
def lost(*, down_s: float = 80.0, twice: int = 20) -> Run:
    """A training stands still for ``down_s`` after 600 of 1,000 steps, and does the last ``twice`` of them again."""
    step = np.append(np.arange(1, 61), np.arange(61 - twice // EVERY, LINES + 1)) * EVERY
    at = np.arange(1, len(step) + 1) * float(EVERY)
    at[60:] += down_s
    return _run(at, step)


@fault(
    "training-failed",
    edges={"max_trainings": Edge({"n": 0}, {"n": 1}, Status.NOT_ASSESSED)},
    bigger=({"n": 2}, {"n": 8}),
)
def failed(*, n: int = 1) -> Run:
    """The logs of ``n`` trainings end with CUDA out of memory after 1,000 of 5,000 steps."""
    at, step = np.arange(1, LINES + 1) * float(EVERY), np.arange(1, LINES + 1) * EVERY
    paths = [f"train_{'abcdefgh'[place]}.log" for place in range(max(n, 1))]
    logs = [_steps(at + place, step).assign(path=path, total=5000) for place, path in enumerate(paths)]
    said = events([("oom", "torch.OutOfMemoryError: CUDA out of memory.")] * n, float(at[-1]))
    said = said.assign(line=LINES + 10, path=paths[:n])
    return run(log(ticks(float(at[-1]) + 10)), steps=conform(pd.concat(logs), STEPS), events=said)


@fault(
    "loss-not-finite",
    edges={"min_lines": Edge({"n": 2}, {"n": 3})},
    bigger=({"n": 20}, {"n": 50}, {"n": LINES - 1}),
)
def diverged(*, n: int = 40) -> Run:
    """The last ``n`` of 100 lines on steps state a loss of NaN, and some before them for one step at a time."""
    at, step = np.arange(1, LINES + 1) * float(EVERY), np.arange(1, LINES + 1) * EVERY
    place = np.arange(LINES)
    return _run(at, step, not_finite=(place >= LINES - n) | (place % 7 == 3))
