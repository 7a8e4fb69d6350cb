"""What really happened in a simulated run, for estimates to be judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.plain_data import Json, JsonObject, plain
from gpudiag.simulation.life import Life
from gpudiag.simulation.spec import Spec
from gpudiag.simulation.step_function import Array, StepFunction
from gpudiag.simulation.world import History

CELLS = ("unobserved", "idle_no_trial", "foreign", "startup_only", "tail_only", "stalled", "busy_low", "busy")
IDLE_PCT = 10.0
BUSY_PCT = 50.0


@dataclass(frozen=True, eq=False)
class Truth:
    """Exact answers. Times in ``trials`` and the window are UTC on the trials' clock.

    ``ledger``: gpu, cell, gpu_s; every GPU has all eight cells and they sum to ``window_s``. A cell is told
    from the trials that truly ran on that GPU and from its utilization, averaged as the driver does;
    ``stalled`` is all other idle time with trials, also that in which some start while others end (a measured ledger
    has it in ``waiting``). Only ``unobserved`` depends on the samples, each of which stands for the time halfway to its
    neighbours, at most 1.5 median periods.
    ``trials``: trial, state, worker, gpu, start, startup_end, tail_start, end (true; NaT for one that never
    started or still runs), startup_s, work_gpu_s (GPU-busy seconds it needed), mem_peak_mib, fault.
    ``gpus``: gpu, mean_util_pct (time mean over the window), mem_peak_mib.
    ``levels``: level, time_s that this many trials truly ran. ``offset_s``: trials + offset = telemetry.
    ``effective``: time-integral of concurrency over the time with at least one trial.
    """

    window_start: pd.Timestamp
    window_end: pd.Timestamp
    window_s: float
    offset_s: float
    ledger: pd.DataFrame
    trials: pd.DataFrame
    gpus: pd.DataFrame
    levels: pd.DataFrame
    effective: float
    peak: int

    def to_dict(self) -> JsonObject:
        """What truth.json holds: all of it, unknown as None, times in ISO 8601."""
        return {
            "window": {"start": self.window_start.isoformat(), "end": self.window_end.isoformat()},
            "window_s": round(self.window_s, 3),
            "offset_s": self.offset_s,
            "effective_parallelism": round(self.effective, 4),
            "peak_parallelism": self.peak,
            "levels": _records(self.levels),
            "gpus": _records(self.gpus),
            "ledger": _records(self.ledger),
            "trials": _records(self.trials),
        }


def establish_truth(spec: Spec, history: History, samples: pd.DataFrame, origin: pd.Timestamp) -> Truth:
    """The truth about a history, given when its samples were taken (which decides what is unobserved)."""
    lives = [life for life in history.lives if life.state != "WAITING"]
    start_s, end_s = window(lives)
    ledger, gpus = [], []
    for index, gpu in enumerate(spec.gpus):
        busy = StepFunction.of(history.busy[index], 0.0)
        timestamps = samples.loc[samples["gpu"] == str(index), "true_s"].to_numpy()
        own = [life for life in lives if life.gpu == index]
        cells = _cells(busy, own, timestamps, start_s, end_s, spec.telemetry.window_s)
        ledger += [{"gpu": str(index), "cell": cell, "gpu_s": cells[cell]} for cell in CELLS]
        mean = busy.mean(np.array([start_s]), np.array([end_s]))[0]
        used = StepFunction.of(history.used[index], float(gpu.base_mib))
        peak = used.at(np.array([start_s, *used.times[(used.times > start_s) & (used.times < end_s)]])).max()
        gpus.append({"gpu": str(index), "mean_util_pct": 100.0 * float(mean), "mem_peak_mib": float(peak)})
    levels = _levels(lives, start_s, end_s)
    occupied = levels[levels["level"] > 0]
    return Truth(
        window_start=_timestamp(origin, start_s),
        window_end=_timestamp(origin, end_s),
        window_s=end_s - start_s,
        offset_s=spec.telemetry.offset_s,
        ledger=pd.DataFrame(ledger),
        trials=_trials(history.lives, origin),
        gpus=pd.DataFrame(gpus),
        levels=levels,
        effective=float((occupied["level"] * occupied["time_s"]).sum() / occupied["time_s"].sum()),
        peak=int(occupied["level"].max()),
    )


def window(lives: Sequence[Life]) -> tuple[float, float]:
    """First start to last recorded end; to the last true end where no end is recorded."""
    started = [life for life in lives if life.state != "WAITING"]
    ends = [life.end_s for life in started if life.finished] or [life.end_s for life in started]
    return min(life.start_s for life in started), float(np.nanmax(ends))


def _cells(
    busy: StepFunction, lives: Sequence[Life], timestamps: Array, start_s: float, end_s: float, window_s: float
) -> dict[str, float]:
    """Seconds in each cell: the window is cut wherever the label can change, and each piece is labelled."""
    starts, ends = _times(lives, "start_s"), _times(lives, "end_s")
    first, last = _times(lives, "startup_end_s"), _times(lives, "tail_start_s")
    seen_from, seen_to = _sample_cells(timestamps)
    knots = np.concatenate(
        [busy.times, busy.times + window_s, starts, ends, first, last, seen_from, seen_to, [start_s, end_s]]
    )
    knots = np.unique(knots[(knots >= start_s) & (knots <= end_s)])
    cuts = np.unique(np.concatenate([knots, _crossings(busy, knots, window_s)]))
    length, middle = np.diff(cuts), (cuts[:-1] + cuts[1:]) / 2
    util = 100.0 * busy.mean(middle - window_s, middle)
    running = _count(starts, middle) - _count(ends, middle)
    before = _count(starts, middle) - _count(first, middle)
    after = _count(last, middle) - _count(ends, middle)
    seen = _count(seen_from, middle) > _count(seen_to, middle)
    conditions = [
        ~seen,
        (running == 0) & (util < IDLE_PCT),
        running == 0,
        (util < IDLE_PCT) & (before == running),
        (util < IDLE_PCT) & (after == running),
        util < IDLE_PCT,
        util < BUSY_PCT,
    ]
    label = np.select(conditions, range(7), 7)
    seconds = np.bincount(label, weights=length, minlength=8)
    return dict(zip(CELLS, seconds.tolist(), strict=True))


def _crossings(busy: StepFunction, knots: Array, window_s: float) -> Array:
    """Where the windowed utilization, linear between knots, passes 10 or 50 percent."""
    util = 100.0 * busy.mean(knots - window_s, knots)
    found = []
    for level in (IDLE_PCT, BUSY_PCT):
        a, b = util[:-1] - level, util[1:] - level
        crossing = a * b < 0
        share = a[crossing] / (a[crossing] - b[crossing])
        found.append(knots[:-1][crossing] + share * np.diff(knots)[crossing])
    return np.concatenate(found)


def _sample_cells(timestamps: Array) -> tuple[Array, Array]:
    """Start and end of each sample's cell: halfway to its neighbours, at most 1.5 median periods (1.5 s at least)."""
    if len(timestamps) < 2:
        return np.empty(0), np.empty(0)
    steps = np.diff(timestamps)
    period = float(np.median(steps))
    half = np.minimum(steps, max(3.0 * period, 3.0)) / 2.0
    return timestamps - np.concatenate(([period / 2], half)), timestamps + np.concatenate((half, [period / 2]))


def _times(lives: Sequence[Life], name: str) -> Array:
    """That time of all lives, sorted; for one that still runs, for ever."""
    return np.sort(np.nan_to_num(np.array([getattr(life, name) for life in lives], dtype=float), nan=np.inf))


def _count(sorted_times: Array, when: Array) -> Array:
    return np.searchsorted(sorted_times, when, side="right").astype(float)


def _levels(lives: Sequence[Life], start_s: float, end_s: float) -> pd.DataFrame:
    """Seconds of the window at each number of trials that truly ran."""
    starts, ends = _times(lives, "start_s"), _times(lives, "end_s")
    cuts = np.unique(np.clip(np.concatenate([starts, ends, [start_s, end_s]]), start_s, end_s))
    middle = (cuts[:-1] + cuts[1:]) / 2
    level = (_count(starts, middle) - _count(ends, middle)).astype(int)
    seconds = np.bincount(level, weights=np.diff(cuts))
    return pd.DataFrame({"level": np.arange(len(seconds)), "time_s": seconds})


def _trials(lives: Sequence[Life], origin: pd.Timestamp) -> pd.DataFrame:
    rows = [
        {
            "trial": life.number,
            "state": life.state,
            "worker": life.worker,
            "gpu": str(life.gpu),
            "start": _timestamp(origin, life.start_s),
            "startup_end": _timestamp(origin, life.startup_end_s),
            "tail_start": _timestamp(origin, life.tail_start_s),
            "end": _timestamp(origin, life.end_s),
            "startup_s": life.startup_end_s - life.start_s,
            "work_gpu_s": np.nan if np.isnan(life.end_s) else life.work_s,
            "mem_peak_mib": life.peak_mib,
            "fault": life.detail,
        }
        for life in sorted(lives, key=lambda life: life.number)
    ]
    return pd.DataFrame(rows)


def _timestamp(origin: pd.Timestamp, seconds: float) -> pd.Timestamp:
    return pd.NaT if np.isnan(seconds) else origin + pd.Timedelta(microseconds=round(seconds * 1e6))


def _records(frame: pd.DataFrame) -> list[Json]:
    return [{str(name): _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: object) -> Json:
    made = plain(value)
    return round(made, 3) if isinstance(made, float) else made
