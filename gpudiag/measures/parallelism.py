"""How many trials ran at once, in which slots, and what lay between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures._time.concurrency import count_at, fifo_slots
from gpudiag.measures._time.span import limits_us
from gpudiag.measures._time.timestamps import SECOND_US, microseconds, utc
from gpudiag.measures._time.trial_intervals import HANDOVER_US, lifetimes
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures.base import GIVE_TRIALS, Profile, need_columns
from gpudiag.run import Run

SERIAL_BELOW = 1.2
"""Effective parallelism at or below which several workers did one worker's work (METHODS 4)."""
RECORD_STAMPS = "Record start and end of each trial, as an Optuna storage does by itself."


@dataclass(frozen=True, eq=False, repr=False)
class ParallelismProfile(Profile):
    """``concurrency``: time, n_closed (trials with a known end), n_all (with open ones until their
    inferred end), a step function that holds to the next row. ``levels``: level, time_s, share_pct (of the
    time with at least one trial), from n_all. ``slots``: study, trial, state, start, end (inferred for
    open ones), slot (0-based, FIFO colouring), open (bool). ``gaps``: slot, start, end, gap_s, before_study,
    before_trial, after_study, after_trial (none after an open trial). ``open_trials``: study, trial, state,
    start, last_evidence, horizon, reason, orphan.
    ``effective`` = time-integral over time with C >= 1, open trials counted to their inferred end, the horizon;
    ``effective_low`` counts them to their last evidence, ``effective_high`` to the horizon; ``effective_closed``
    ignores them; ``effective_window`` divides by the whole window. ``above_configured_trials``: trials beyond the
    configured number at the peak. ``handover_pct``: share of starts after the first end that lie within 2 s after
    another trial's end. ``coverage_pct``: share of the trials that began whose times are known, or inferred.
    Everything that compares with ``configured`` is NaN (``serialised`` False) where it is unknown.
    """

    concurrency: pd.DataFrame
    levels: pd.DataFrame
    slots: pd.DataFrame
    gaps: pd.DataFrame
    open_trials: pd.DataFrame
    configured: float
    effective_closed: float
    effective: float
    effective_low: float
    effective_high: float
    effective_window: float
    peak_closed: int
    peak: int
    efficiency_pct: float
    at_configured_pct: float
    above_configured_s: float
    above_configured_trials: float
    n_slots: int
    median_gap_s: float
    mean_gap_s: float
    gap_slot_h: float
    handover_pct: float
    serialised: bool
    window_s: float
    busy_s: float
    n_timed: int
    n_open: int
    coverage_pct: float


def measure_parallelism(run: Run) -> ParallelismProfile:
    """Concurrency over the run. Needs trials with start times, and at least one known end."""
    need_columns(run.trials, ("state",), "trials table", GIVE_TRIALS)
    lives = lifetimes(run.trials)
    closed = lives[lives["known"]]
    if closed.empty:
        raise NotMeasurable(
            "No trial has both a start and an end (or an end and a duration); without them nobody can tell "
            "what ran at once.",
            RECORD_STAMPS,
        )
    opens = find_open_trials(run)
    slots = _slots(closed, opens)
    gaps = _gaps(slots)
    limits = limits_us(run)
    start, end = microseconds(slots["start"]).clip(*limits), microseconds(slots["end"]).clip(*limits)
    is_closed = ~slots["open"].to_numpy()
    times = np.unique(np.concatenate([start, end]))
    n_all = count_at(times, start, end)
    n_closed = count_at(times, start[is_closed], end[is_closed])
    held_s = np.diff(times, append=times[-1]) / SECOND_US
    window_s = (times[-1] - times[0]) / SECOND_US
    configured = float(run.info.settings.parallel or "nan")
    effective = effective_parallelism(start, end)
    low_end = np.concatenate([end[is_closed], microseconds(opens["last_evidence"]).clip(*limits)])
    low_start = np.concatenate([start[is_closed], microseconds(opens["start"]).clip(*limits)])
    known = not np.isnan(configured)
    busy_s = float(held_s[n_all >= 1].sum())
    peak = int(n_all.max())
    return ParallelismProfile(
        concurrency=pd.DataFrame({"time": utc(times), "n_closed": n_closed, "n_all": n_all}),
        levels=_levels(n_all, held_s),
        slots=slots,
        gaps=gaps,
        open_trials=opens,
        configured=configured,
        effective_closed=effective_parallelism(start[is_closed], end[is_closed]),
        effective=effective,
        effective_low=effective_parallelism(low_start, low_end),
        effective_high=effective,
        effective_window=float(n_all @ held_s / window_s) if window_s else float("nan"),
        peak_closed=int(n_closed.max()),
        peak=peak,
        efficiency_pct=100 * effective / configured,
        at_configured_pct=100 * held_s[n_all == configured].sum() / busy_s if known and busy_s else float("nan"),
        above_configured_s=float(held_s[n_all > configured].sum()) if known else float("nan"),
        above_configured_trials=max(peak - configured, 0.0) if known else float("nan"),
        n_slots=int(slots["slot"].max()) + 1,
        median_gap_s=float(gaps["gap_s"].median()),
        mean_gap_s=float(gaps["gap_s"].mean()),
        gap_slot_h=float(gaps["gap_s"].sum() / 3600),
        handover_pct=_handover_pct(start, end[is_closed]),
        serialised=bool(configured >= 2 and effective <= SERIAL_BELOW),
        window_s=window_s,
        busy_s=busy_s,
        n_timed=len(closed),
        n_open=len(opens),
        coverage_pct=100 * len(slots) / int((lives["state"] != "WAITING").sum()),
    )


def effective_parallelism(start_us: np.ndarray, end_us: np.ndarray) -> float:
    """Sum of the lengths of the intervals over the length of their union; NaN without any length."""
    times = np.unique(np.concatenate([start_us, end_us]))
    held = np.diff(times, append=times[-1])
    busy = held[count_at(times, start_us, end_us) >= 1].sum()
    return float((end_us - start_us).sum() / busy) if busy else float("nan")


def _slots(closed: pd.DataFrame, opens: pd.DataFrame) -> pd.DataFrame:
    """Every timed trial in order of its start, with its slot."""
    columns = ["study", "trial", "state", "start", "end"]
    inferred = opens.rename(columns={"horizon": "end"})[columns]
    both = pd.concat([closed[columns].assign(open=False), inferred.assign(open=True)], ignore_index=True)
    both = both.sort_values(["start", "end", "study", "trial"], kind="stable", ignore_index=True)
    both.insert(5, "slot", fifo_slots(microseconds(both["start"]), microseconds(both["end"])))
    return both


def _gaps(slots: pd.DataFrame) -> pd.DataFrame:
    """What lies between one trial and the next of its slot; nothing is known after an open trial."""
    ordered = slots.sort_values(["slot", "start", "end"], kind="stable")
    before, after = ordered.iloc[:-1], ordered.iloc[1:]
    pairs = (before["slot"].to_numpy() == after["slot"].to_numpy()) & ~before["open"].to_numpy()
    before, after = before[pairs].reset_index(drop=True), after[pairs].reset_index(drop=True)
    return pd.DataFrame(
        {
            "slot": after["slot"],
            "start": before["end"],
            "end": after["start"],
            "gap_s": (after["start"] - before["end"]).dt.total_seconds().clip(lower=0),
            "before_study": before["study"],
            "before_trial": before["trial"],
            "after_study": after["study"],
            "after_trial": after["trial"],
        }
    )


def _levels(n_all: np.ndarray, held_s: np.ndarray) -> pd.DataFrame:
    time_s = np.bincount(n_all, weights=held_s)[1:]
    level = np.arange(1, len(time_s) + 1)
    total = time_s.sum()
    share = 100 * time_s / total if total else np.full(len(time_s), np.nan)
    return pd.DataFrame({"level": level, "time_s": time_s, "share_pct": share})


def _handover_pct(start_us: np.ndarray, end_us: np.ndarray) -> float:
    """Share of the starts after the first end that follow an end by at most 2 s."""
    ends = np.sort(end_us)
    later = start_us[start_us >= ends[0]]
    if not len(later):
        return float("nan")
    latest = ends[np.searchsorted(ends, later, "right") - 1]
    return float(100 * np.mean(later - latest <= HANDOVER_US))
