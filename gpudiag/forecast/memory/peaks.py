"""How much GPU memory each trial took: from its process, from what it stored itself, or told apart from the sum."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from gpudiag._run.failure_text import failure_classes
from gpudiag.errors import in_words
from gpudiag.forecast.memory.boards import baseline_left, board, followed, memories, most_held, no_falls
from gpudiag.forecast.memory.expectation import SIGMA95
from gpudiag.forecast.memory.features import parameters
from gpudiag.forecast.memory.growth import Growth
from gpudiag.forecast.memory.held import LEAST_MIB, held_by_workers
from gpudiag.forecast.memory.joint import MOST_OPEN, N_DRAWS, READING_MIB, Joint, solve
from gpudiag.measures._gpu.own_process import own_process
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.window import TimedTrials, timed_trials
from gpudiag.measures.attribution import measure_attribution
from gpudiag.run import Run
from gpudiag.schema import ABANDONED, STOPPED, has_values

Array = np.ndarray

CONTEXT_MIB = (300.0, 450.0, 600.0)
"""A CUDA context, least, usual and most (METHODS 6): what a framework's own figures leave out."""
MOST_ERROR_PCT = 30.0
"""Peaks further off than this when predicted without their own end are no peaks: the estimate of METHODS 6 is off by
1 to 4 %, one without parameters by 11 % (a default without a published source)."""
MIN_SEPARATED_SHARE = 0.1
"""Of the trials, whose peak must be told apart for the rest to be judged by them (a default without a published
source)."""
MEAN_OF_95 = 0.407
"""Mean error over half the 95 % interval, of a normal error."""
NEIGHBOURS = 25
ATTRIBUTES = re.compile(
    r"user_attrs\.(?:.*[._:])?(?:max_memory_(?:reserved|allocated)|(?:peak|max)_(?:gpu_|cuda_)?(?:mem|memory|vram))"
    r"(?:_(?P<unit>bytes|mib|mb|gib|gb))?$",
    re.IGNORECASE,
)
_TO_MIB = {"bytes": 2.0**-20, "mib": 1.0, "mb": 1.0, "gib": 1024.0, "gb": 1024.0}
NO_MEMORY = (
    "No memory in use of a GPU was recorded beside the trials: sample memory.used with nvidia-smi, or run gpudiag "
    "record --processes."
)
NOT_THE_TRIALS = (
    "Memory in use does not follow the trials: what ends of trials freed is off by {error_pct} on average when it is "
    "left out and predicted from the rest. Something else took memory, or the clocks differ; record memory by process."
)
TOO_FEW_SEPARATE = (
    "The memory of only {n_separate} of {n} trials could be told apart, too few to speak for the others: most ended "
    "before their memory had settled, or between two readings."
)
OPEN_CLOCK = (
    "Trials and telemetry may lie apart by seconds to minutes or more, so that readings may belong to other trials. "
    "State clock_offset_s in run.toml, 0 if the clocks are equal."
)
OTHER_CLOCK = (
    "Memory in use was recorded, but on a clock that could not be brought to the trials' own, so that no reading "
    "belongs to a trial; state the time zone of both."
)


@dataclass(frozen=True, eq=False)
class Peaks:
    """``trials``, one row a trial with a start and an end: study, trial, outcome, kind (class of its failure), gpu,
    duration_s, peak_mib, low_mib, high_mib (95 %), method ('process', 'attribute', 'end', 'sum', 'parameters',
    'typical', 'bounds' without a value, '' unknown), reached (False where it ended before its memory had settled, or
    for lack of it: its peak is then what its parameters let expect), held_mib (what its end freed at least, where no
    other ended with it), weight_s (the time that it runs, for a failed trial that of trials like it).
    ``draws``: (n_draws, n_trials) peaks that the log allows as well; NaN for a trial of which nothing is known.
    ``baseline_mib`` by GPU. ``reason``: why there are no peaks, or ''.
    """

    trials: pd.DataFrame
    draws: Array
    baseline_mib: dict[str, float] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    growth: dict[str, Growth] = field(default_factory=dict)
    n_drops: int = 0
    reason: str = ""

    @property
    def drawn(self) -> Array:
        """True for trials whose memory can be drawn, a value or bounds alike."""
        return np.isfinite(self.draws).all(axis=0)

    @property
    def at_peak(self) -> Array:
        """Share of its time (0 to 1) at which each trial holds its peak, by the growth of its GPU; 1 where unknown."""
        lasted = self.trials["weight_s"].to_numpy(float)
        out = np.ones(len(lasted))
        for gpu, growth in self.growth.items():
            here = (self.trials["gpu"] == gpu).to_numpy() if len(self.growth) > 1 else np.ones(len(lasted), bool)
            out[here] = growth.settled_share(lasted[here])
        return out

    @property
    def error_pct(self) -> float:
        """Mean error of the peaks that their intervals let expect, in percent; NaN without a peak."""
        known = self.trials[self.known]
        half = (known["high_mib"] - known["low_mib"]) / 2
        return float((100 * MEAN_OF_95 * half / known["peak_mib"]).mean())

    @property
    def known(self) -> Array:
        """True for trials with a peak."""
        return self.trials["peak_mib"].notna().to_numpy()


def trial_peaks(run: Run, rng: np.random.Generator) -> Peaks:
    """Peaks of all trials with a start and an end, best source first (METHODS 6)."""
    timed = timed_trials(run)
    trials = _trials(run, timed)
    if trials.empty:
        return _unknown(trials, "No trial has a start and an end.")
    process, _ = own_process(run, timed)
    stored = _stored(run, timed)
    direct = np.where(np.isnan(process), stored[1], process)
    if np.isnan(direct).mean() < 0.5 and not _reused(run, timed):
        return _direct(trials, process, stored, rng)
    return _from_sum(run, timed, trials, rng)


def _trials(run: Run, timed: TimedTrials) -> pd.DataFrame:
    out = timed.rows[["study", "trial", "outcome"]].reset_index(drop=True)
    out["kind"] = failure_classes(run.trials).iloc[timed.rows.index].to_numpy()
    out["gpu"] = None
    if len(out) and not run.gpu.empty:
        out["gpu"] = measure_attribution(run).trials["gpu"].iloc[timed.rows.index].to_numpy()
    out["duration_s"] = (timed.end_us - timed.start_us) / SECOND_US
    for name in ("peak_mib", "low_mib", "high_mib", "held_mib"):
        out[name] = np.nan
    reached = (out["outcome"] != ABANDONED) & (out["kind"] != "oom")
    return out.assign(method="", reached=reached, weight_s=out["duration_s"])


def _unknown(trials: pd.DataFrame, reason: str, baseline: dict[str, float] | None = None) -> Peaks:
    return Peaks(trials, np.full((N_DRAWS, len(trials)), np.nan), baseline or {}, reason=reason)


def _reused(run: Run, timed: TimedTrials) -> bool:
    """Whether processes ran several trials each, as far as process ids tell."""
    pid = run.trials["pid"].iloc[timed.rows.index].dropna() if "pid" in run.trials else pd.Series(dtype=float)
    return bool(len(pid) and pid.nunique() < 0.9 * len(pid))


def _stored(run: Run, timed: TimedTrials) -> tuple[Array, Array, Array]:
    """Low, value and high of the peak that a trial stored itself, MiB, with the context that it leaves out."""
    names = [name for name in map(str, run.trials.columns) if ATTRIBUTES.fullmatch(name)]
    names = sorted(names, key=lambda name: "allocated" in name)  # reserved is what the GPU lacks
    out = np.full(len(timed.rows), np.nan)
    for name in names:
        value = pd.to_numeric(run.trials[name], errors="coerce").iloc[timed.rows.index].to_numpy(float)
        unit = ATTRIBUTES.fullmatch(name)["unit"]  # type: ignore[index]
        factor = _TO_MIB[unit.lower()] if unit else (_TO_MIB["bytes"] if np.nanmedian(value) > 1e7 else 1.0)
        out = np.where(np.isnan(out), value * factor, out)
    return out + CONTEXT_MIB[0], out + CONTEXT_MIB[1], out + CONTEXT_MIB[2]


def _direct(
    trials: pd.DataFrame, process: Array, stored: tuple[Array, Array, Array], rng: np.random.Generator
) -> Peaks:
    """Peaks that were recorded trial by trial."""
    by_process = ~np.isnan(process)
    low, value, high = (np.where(by_process, process, part) for part in stored)
    out = trials.assign(peak_mib=value, low_mib=low, high_mib=high)
    out["method"] = np.where(by_process, "process", np.where(np.isnan(value), "", "attribute"))
    out["reached"] &= ~np.isnan(value)
    known = np.isnan(value)
    draws = value + (high - low) / (2 * SIGMA95) * rng.standard_normal((N_DRAWS, 1))
    draws[:, known] = np.nan
    return Peaks(_like_others(out), draws)


def _from_sum(run: Run, timed: TimedTrials, trials: pd.DataFrame, rng: np.random.Generator) -> Peaks:
    """Peaks told apart from the memory in use on each GPU."""
    if not has_values(run.gpu, "mem_used_mib"):
        return _unknown(trials, NO_MEMORY)
    if not run.info.clock.joined:
        return _unknown(trials, OTHER_CLOCK)
    if not run.info.clock.exact:
        return _unknown(trials, OPEN_CLOCK)
    read = memories(run, timed)
    boards = {gpu: board(memory, places) for gpu, (memory, places) in read.items()}
    added, open_mib = np.zeros((2, len(trials)))
    held = {gpu: held_by_workers(memory, boards[gpu]) for gpu, (memory, _) in read.items()}
    for gpu, (memory, places) in read.items():
        if held[gpu].mib:
            read[gpu] = held[gpu].taken_off(memory), places
            boards[gpu] = board(read[gpu][0], places)
        added[places], open_mib[places] = held[gpu].added_mib, held[gpu].open_mib
    baselines = {gpu: one.baseline_mib for gpu, one in boards.items()}
    fall = np.full(len(trials), np.nan)
    for one in boards.values():
        fall[one.places] = np.fmax(fall[one.places], one.steps.fall_mib)
    if reason := no_falls([memory for memory, _ in read.values()], list(boards.values()), fall):
        return _unknown(trials, reason, baselines)
    growth = {gpu: one.growth for gpu, one in boards.items()}
    settled = _settled(trials, growth)
    shown = followed(read, list(boards.values()), len(trials))
    trials = trials.assign(held_mib=fall, reached=trials["reached"] & settled & shown)
    columns = parameters(run.trials.iloc[timed.rows.index])
    joint = solve(list(boards.values()), len(trials), trials["reached"].to_numpy(), columns, rng)
    for gpu, one in boards.items():
        left = baseline_left(one, joint.peak_mib)
        if np.isnan(one.baseline_mib):
            baselines[gpu] = left
        elif left - one.baseline_mib < LEAST_MIB * held[gpu].workers.max(initial=1.0):
            open_mib[one.places] = 0.0  # what trials hold makes up the levels: no process holds more
    most = most_held(list(boards.values()), len(trials))
    peaks = _assembled(trials, joint, most, rng, baselines, growth)
    if doubt := _doubt(peaks, joint):
        return _unknown(trials, doubt, baselines)
    return _with_process(peaks, added, open_mib, most, rng)


def _with_process(peaks: Peaks, added: Array, open_mib: Array, most: Array, rng: np.random.Generator) -> Peaks:
    """Peaks with what the worker's process held beside the trial, which its end does not free (n_trials,).

    Where that is open, levels do not tell one trial from another either: ends alone tell.
    """
    trials = peaks.trials
    told = (open_mib == 0) | (trials["method"] == "end").to_numpy()
    freed = np.maximum(np.nan_to_num(trials["held_mib"]) - READING_MIB, 0.0)
    low = np.where(told, trials["low_mib"] + added, freed)
    high = np.where(told, trials["high_mib"] + added + open_mib, np.where(trials["reached"], most, np.nan))
    value = trials["peak_mib"] + added + open_mib / 2
    wide = ~(high - low <= 2 * MOST_OPEN * value)
    trials = trials.assign(
        peak_mib=value.mask(wide), low_mib=low, high_mib=high, held_mib=trials["held_mib"] + added,
        method=trials["method"].mask(wide & trials["peak_mib"].notna(), "bounds"),
    )  # fmt: skip
    draws = peaks.draws + added + open_mib * rng.random((len(peaks.draws), 1))
    return replace(peaks, trials=trials, draws=draws)


def _doubt(peaks: Peaks, joint: Joint) -> str:
    """Why memory in use does not follow the trials, so that no peak may be read off it; '' where it does."""
    error_pct = 100 * float(np.mean(joint.held_out)) if len(joint.held_out) else 0.0
    if error_pct > MOST_ERROR_PCT:
        return in_words(NOT_THE_TRIALS, {"error_pct": error_pct})
    separated = int((joint.separate & peaks.trials["reached"].to_numpy()).sum())
    if separated < MIN_SEPARATED_SHARE * len(peaks.trials):
        return in_words(TOO_FEW_SEPARATE, {"n_separate": separated, "n": len(peaks.trials)})
    return ""


def _settled(trials: pd.DataFrame, growth: dict[str, Growth]) -> Array:
    """True for trials that lived until memory is settled as a rule; a COMPLETE trial did all its work."""
    age = max((g.settled_s for g in growth.values()), default=0.0)
    by_gpu = trials["gpu"].map({gpu: g.settled_s for gpu, g in growth.items()}).astype(float).fillna(age)
    return ((trials["duration_s"] > by_gpu) | (trials["outcome"] == "COMPLETE")).to_numpy()


def _assembled(
    trials: pd.DataFrame, joint: Joint, most: Array, rng: np.random.Generator,
    baselines: dict[str, float], growth: dict[str, Growth],
) -> Peaks:  # fmt: skip
    """The frame: what was solved for trials that reached their peak, what their parameters let expect for others.

    Where that leaves more than a quarter of the value open there is no value: bounds only, from what the trial's end
    freed to all that was in use while it ran.
    """
    reached = trials["reached"].to_numpy()
    spread = joint.spread_mib * joint.calibration
    least = joint.low_mib  # of a trial that ended early only a lower bound was seen
    likely = joint.expected_mib + np.nan_to_num(spread, posinf=0.0) * rng.standard_normal(joint.draws.shape)
    draws = np.where(reached, joint.draws, np.maximum(likely, least))
    value = np.where(reached, joint.peak_mib, np.maximum(joint.expected_mib, least))
    low = np.where(reached, joint.low_mib, np.maximum(joint.expected_mib - SIGMA95 * spread, least))
    high = np.where(reached, joint.high_mib, np.maximum(joint.expected_mib + SIGMA95 * spread, least))
    cap = np.where(reached & ~np.isnan(most), most + READING_MIB, np.inf)
    value, low, high = (np.minimum(part, cap) for part in (value, low, high))
    wide = ~(high - low <= 2 * MOST_OPEN * value)
    floor = np.where(np.isnan(joint.fall_mib), 0.0, np.maximum(joint.fall_mib - READING_MIB, 0.0))
    by_parameters = "parameters" if joint.design.names else "typical"
    method = np.where(reached & joint.clean, "end", np.where(reached & joint.told, "sum", by_parameters))
    out = trials.assign(
        peak_mib=np.where(wide, np.nan, value),
        low_mib=np.where(wide, floor, np.maximum(low, 0.0)),
        high_mib=np.where(wide, np.where(reached, most, np.nan), high),
        method=np.where(wide, "bounds", method),
    )
    return Peaks(
        _like_others(out), np.minimum(draws, cap), baselines, joint.design.names, growth, int(joint.clean.sum())
    )


def _like_others(trials: pd.DataFrame) -> pd.DataFrame:
    """``weight_s`` of trials cut short by a failure: the median duration of the 25 others nearest in memory.

    A large trial that crashes runs briefly; weighted by that time it would count for less than it will take.
    """
    failed = trials["outcome"].isin(["FAIL", STOPPED, ABANDONED]).to_numpy()
    known = trials["peak_mib"].notna().to_numpy()
    others = trials[~failed & known].sort_values("peak_mib", kind="stable")
    if others.empty or not failed.any():
        return trials
    lasted, size = others["duration_s"].to_numpy(), others["peak_mib"].to_numpy()
    reach = min(NEIGHBOURS, len(others))
    at = np.searchsorted(size, trials.loc[failed & known, "peak_mib"].to_numpy())
    low = np.clip(at - reach // 2, 0, len(others) - reach)
    usual = np.array([np.median(lasted[i : i + reach]) for i in low.tolist()])
    weight = trials["weight_s"].to_numpy(float, copy=True)
    weight[failed & known] = np.maximum(weight[failed & known], usual)
    return trials.assign(weight_s=weight)
