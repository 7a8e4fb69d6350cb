"""The registry of planted faults, and the small tables that they are made of.

Times are seconds after START. Telemetry is sampled in the middle of even cells, so that n samples stand for
exactly n periods and a stretch of k samples is k periods long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.manifest import Settings
from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.run import Run, RunInfo
from gpudiag.schema import EVENTS, GPU, GPUS, HOST, REPORTS, STUDIES, TRIALS, conform

START = pd.Timestamp("2026-02-03 08:00:00", tz="UTC")
BOARD = "NVIDIA GeForce RTX 4090"
TOTAL_MIB, LIMIT_W, CLOCK_MHZ = 24564.0, 450.0, 2700.0
IDLE_W = 30.0

Gives = Status | Severity
"""A status, or FOUND with that severity."""


@dataclass(frozen=True)
class Edge:
    """One threshold: knobs of the fault just ``short`` of it and just ``past`` it, and what each gives.

    ``says``: words that the summary holds past the threshold and not short of it. ``limit`` is used as the threshold
    where the measure itself sees nothing below the default.
    """

    short: Mapping[str, Any]
    past: Mapping[str, Any]
    short_gives: Gives = Status.OK
    past_gives: Gives = Status.FOUND
    says: str = ""
    limit: float | None = None


@dataclass(frozen=True)
class Fault:
    """The planted fault of one rule: ``make()`` is a run in which it is found.

    ``edges`` by threshold (``""`` for a rule without thresholds); ``bigger``: knobs of ever larger faults.
    """

    rule: str
    make: Callable[..., Run]
    edges: Mapping[str, Edge]
    bigger: tuple[Mapping[str, Any], ...] = field(default=())


FAULTS: dict[str, Fault] = {}
"""By rule."""


def fault(
    rule: str, *, bigger: Iterable[Mapping[str, Any]], edges: Mapping[str, Edge]
) -> Callable[[Callable[..., Run]], Callable[..., Run]]:
    """Register a function as the planted fault of a rule."""

    def register(make: Callable[..., Run]) -> Callable[..., Run]:
        assert rule not in FAULTS, f"{rule} is planted twice"
        FAULTS[rule] = Fault(rule, make, edges, tuple(bigger))
        return make

    return register


def timestamps(seconds: Any) -> pd.DatetimeIndex:
    """Instants so many seconds after START; NaN becomes NaT."""
    return START + pd.to_timedelta(np.round(np.asarray(seconds, float) * 1e6), unit="us")


def ticks(seconds: float, period_s: float = 5.0) -> np.ndarray:
    """Middles of the cells that fill ``seconds``."""
    return (np.arange(round(seconds / period_s)) + 0.5) * period_s


def log(at: np.ndarray, gpu: str = "0", **columns: Any) -> pd.DataFrame:
    """Telemetry of one busy RTX 4090; ``columns`` replace its figures, None drops one."""
    usual: dict[str, Any] = {
        "util_pct": 95.0, "mem_used_mib": 15000.0, "mem_total_mib": TOTAL_MIB, "power_w": 380.0,
        "power_limit_w": LIMIT_W, "temp_c": 65.0, "sm_clock_mhz": CLOCK_MHZ, "throttle_reasons": 0,
    }  # fmt: skip
    kept = {name: value for name, value in {**usual, **columns}.items() if value is not None}
    return conform(pd.DataFrame({"time": timestamps(at), "gpu": gpu, **kept}), GPU)


def idle_before(made: pd.DataFrame, seconds: float = 60.0) -> pd.DataFrame:
    """The telemetry of one GPU with so much idle time before START, which shows its idle power."""
    idle = log(ticks(seconds) - seconds, util_pct=0.0, power_w=IDLE_W)
    return conform(pd.concat([idle.reindex(columns=made.columns), made], ignore_index=True), GPU)


def trials(rows: Sequence[tuple[str, float, float]], **columns: Any) -> pd.DataFrame:
    """Trials 0, 1, 2 ... of one study from (state, start, end)."""
    states, starts, ends = zip(*rows, strict=True)
    frame = {
        "study": "s",
        "trial": range(len(rows)),
        "state": states,
        "start": timestamps(starts),
        "end": timestamps(ends),
    }
    return conform(pd.DataFrame({**frame, **columns}), TRIALS)


def in_workers(
    lengths: Sequence[float], workers: int = 1, gap_s: float = 1.0, state: str = "COMPLETE"
) -> list[tuple[str, float, float]]:
    """Trials of these lengths in so many workers, each after the one before it in its worker and a gap."""
    free = [0.0] * workers
    rows = []
    for length in lengths:
        worker = int(np.argmin(free))
        rows.append((state, free[worker], free[worker] + length))
        free[worker] += length + gap_s
    return rows


def run(
    *logs: pd.DataFrame, info: RunInfo | None = None, settings: Mapping[str, Any] | None = None, **tables: Any
) -> Run:
    """A run of these logs, each of one GPU, and tables."""
    info = info or RunInfo(settings=Settings(**(settings or {})))
    if logs:
        names = list(dict.fromkeys(gpu for part in logs for gpu in part["gpu"]))
        listed = conform(pd.DataFrame({"gpu": names, "name": BOARD, "mem_total_mib": TOTAL_MIB}), GPUS)
        tables = {"gpu": conform(pd.concat(logs, ignore_index=True), GPU), "gpus": listed, **tables}
    return Run(info=info, **tables)


def host(at: np.ndarray, **columns: Any) -> pd.DataFrame:
    """Host metrics."""
    return conform(pd.DataFrame({"time": timestamps(at), **columns}), HOST)


def reports(rows: Sequence[tuple[int, int, float]]) -> pd.DataFrame:
    """Intermediate values from (trial, step, value)."""
    return conform(pd.DataFrame(rows, columns=["trial", "step", "value"]).assign(study="s"), REPORTS)


def events(rows: Sequence[tuple[str, str]], at: float = 60.0) -> pd.DataFrame:
    """Events from (kind, detail), a second apart."""
    frame = pd.DataFrame(rows, columns=["kind", "detail"])
    return conform(frame.assign(time=timestamps(at + np.arange(len(rows)))), EVENTS)


def study(directions: str = "MINIMIZE") -> pd.DataFrame:
    """The list of studies."""
    return conform(pd.DataFrame({"study": ["s"], "directions": [directions]}), STUDIES)


def scattered(n: int, share: float, low: float, high: float) -> np.ndarray:
    """``n`` values of which round(share x n) at random places, never the ends, are ``low`` and the others ``high``."""
    out = np.full(n, high)
    out[1 + np.random.default_rng(n).permutation(n - 2)[: round(share * n)]] = low
    return out


def blocks(n: int, share: float, low: Any, high: Any) -> np.ndarray:
    """``n`` values of which the last round(share x n) are ``low`` and the others ``high``."""
    out = np.full(n, high)
    out[n - round(share * n) :] = low
    return out
