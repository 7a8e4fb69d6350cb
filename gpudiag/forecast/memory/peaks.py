"""How much GPU memory each trial took: from its process, from what it stored itself, or told apart from the sum."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy import sparse

from gpudiag.errors import in_words
from gpudiag.forecast.memory.features import parameters
from gpudiag.forecast.memory.joint import N_DRAWS, SIGMA95, Joint, solve
from gpudiag.forecast.memory.signal import Growth, Memory, Segments, drops, idle_level, measured_growth, segments
from gpudiag.measures._gpu.footprint import MIN_STEP_MIB
from gpudiag.measures._gpu.own_process import own_process
from gpudiag.measures._time.gpu_samples import samples_by_gpu
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.window import ABANDONED, TimedTrials, places_by_gpu, timed_trials
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures._trials.failure_text import failure_classes
from gpudiag.measures.attribution import measure_attribution
from gpudiag.run import Run

Array = np.ndarray

CONTEXT_MIB = (300.0, 450.0, 600.0)
"""A CUDA context, least, usual and most (METHODS 6): what a framework's own figures leave out."""
MIN_ENDS = 3
MOST_ERROR_PCT = 30.0
"""Peaks further off than this when predicted without their own end are no peaks: the estimate of METHODS 6 is off by
1 to 4 %, one without parameters by 11 % (a default without a published source)."""
MANY_FALLS = 0.25
"""Falls of memory in use per trial from which it is no running maximum of a shared process (a default without a
published source)."""
MIN_SEPARATED_SHARE = 0.1
"""Of the trials, whose peak must be told apart for the rest to be judged by them (a default without a published
source)."""
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
OTHER_CLOCK = (
    "Memory in use was recorded, but on a clock that could not be brought to the trials' own, so that no reading "
    "belongs to a trial; state the time zone of both."
)
ELSEWHERE = (
    "Memory in use falls, but not when trials end, so that no part of it can be given to a trial: the clocks differ, "
    "or something else took the memory; record memory by process."
)
FLAT = (
    "Memory in use hardly rises while trials run, so that no part of it can be given to a trial: they hold no memory "
    "of this GPU, the memory was taken before the first of them, or the log is another job's."
)
SHARED = (
    "Trials share a process, so what a trial frees stays with the process, memory in use is a running maximum, and "
    "nobody can tell one trial's part of it; run each trial in its own process, or store "
    "torch.cuda.max_memory_reserved() with each trial after torch.cuda.reset_peak_memory_stats()."
)


@dataclass(frozen=True, eq=False)
class Peaks:
    """``trials``, one row a trial with a start and an end: study, trial, outcome, kind (class of its failure), gpu,
    duration_s, peak_mib, low_mib, high_mib (95 %), method ('process', 'attribute', 'end', 'sum', 'parameters',
    'typical', '' unknown), reached (False where it ended before its memory had settled, or for lack of it: its peak
    is then what its parameters let expect), held_mib (what it was seen to hold, where its end shows that), weight_s
    (the time that it runs, for a failed trial that of trials like it).
    ``draws``: (n_draws, n_trials) peaks that the log allows as well; NaN for a trial without a peak.
    ``baseline_mib`` by GPU. ``reason``: why there are no peaks, or ''.
    """

    trials: pd.DataFrame
    draws: Array
    baseline_mib: dict[str, float] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    growth: dict[str, Growth] = field(default_factory=dict)
    error_pct: float = float("nan")
    n_drops: int = 0
    reason: str = ""

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
    return out.assign(method="", reached=~out["outcome"].isin(["FAIL", ABANDONED]), weight_s=out["duration_s"])


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
    if "mem_used_mib" not in run.gpu or not run.gpu["mem_used_mib"].notna().any():
        return _unknown(trials, NO_MEMORY)
    if not run.info.clock.joined:
        return _unknown(trials, OTHER_CLOCK)
    memories = _memories(run, timed)
    growth = {gpu: measured_growth(memory) for gpu, (memory, _) in memories.items()}
    drop = np.full(len(trials), np.nan)
    parts, baselines = [], {}
    for gpu, (memory, places) in memories.items():
        freed = drops(memory, growth[gpu])
        drop[places] = np.fmax(drop[places], freed)
        own = segments(memory, growth[gpu])
        baselines[gpu] = _baseline(memory, own, freed)
        if not np.isnan(baselines[gpu]):
            picker = sparse.csr_matrix(
                (np.ones(len(places)), (np.arange(len(places)), places)), (len(places), len(trials))
            )
            parts.append(Segments(own.used_mib - baselines[gpu], (own.rows @ picker).tocsr()))
    seen = drop[~np.isnan(drop)]
    if len(seen) >= MIN_ENDS and (seen < MIN_STEP_MIB).mean() > 0.5:
        falls = sum(int((np.diff(memory.used_mib) <= -MIN_STEP_MIB).sum()) for memory, _ in memories.values())
        return _unknown(trials, ELSEWHERE if falls >= MANY_FALLS * len(trials) else SHARED, baselines)
    if not parts:
        reason = "No reading was taken while no trial ran, and no trial ended apart from the others."
        return _unknown(trials, reason, baselines)
    settled = _settled(timed, trials, growth)
    trials = trials.assign(held_mib=drop, reached=trials["reached"] & settled)
    # What a trial freed that ran out of memory, or ended early, is no peak.
    whole = settled & (trials["kind"] != "oom").to_numpy() & (drop >= MIN_STEP_MIB)
    joined = Segments(
        np.concatenate([part.used_mib for part in parts]), sparse.vstack([part.rows for part in parts]).tocsr()
    )
    if whole.sum() + len(joined.used_mib) < MIN_ENDS:
        return _unknown(trials, "Too few readings were taken while the memory of the trials had settled.", baselines)
    rows = run.trials.iloc[timed.rows.index]
    count = np.asarray(joined.rows.sum(axis=1)).ravel()
    each = np.concatenate([drop[whole], joined.used_mib / count])
    if not np.median(each) >= MIN_STEP_MIB:
        return _unknown(trials, FLAT, baselines)
    joint = solve(joined, np.where(whole, drop, np.nan), parameters(rows), rng)
    peaks = _assembled(trials, joint, joined, whole, rng, baselines, growth)
    if doubt := _doubt(peaks):
        return _unknown(trials, doubt, baselines)
    return peaks


def _doubt(peaks: Peaks) -> str:
    """Why memory in use does not follow the trials, so that no peak may be read off it; '' where it does."""
    if peaks.error_pct > MOST_ERROR_PCT:
        return in_words(NOT_THE_TRIALS, {"error_pct": peaks.error_pct})
    separated = int(peaks.trials["method"].isin(["end", "sum"]).sum())
    if separated < MIN_SEPARATED_SHARE * len(peaks.trials):
        return in_words(TOO_FEW_SEPARATE, {"n_separate": separated, "n": len(peaks.trials)})
    return ""


def _memories(run: Run, timed: TimedTrials) -> dict[str, tuple[Memory, Array]]:
    """Readings of each GPU with the trials on it, and their positions."""
    where = measure_attribution(run)
    samples = samples_by_gpu(run, "mem_used_mib")
    opens = find_open_trials(run)
    sure_us = timed.end_us.copy()
    sure_us[timed.rows["open"].to_numpy()] = microseconds(opens["last_evidence"])
    unknown = where.trials["gpu"].iloc[timed.rows.index].isna().to_numpy()
    doubtful = (sure_us < timed.end_us) | (unknown & (len(where.open_to) > 1))
    out = {}
    for gpu, places in places_by_gpu(timed, where, list(samples)).items():
        part = samples.get(gpu)
        if part is None or len(part.time_us) < 2 or not len(places):
            continue
        origin = int(timed.start_us.min())
        seconds = [
            (timestamps - origin) / SECOND_US
            for timestamps in (part.time_us, timed.start_us[places], timed.end_us[places])
        ]
        doubt = doubtful[places]
        if np.average(doubt, weights=np.maximum(seconds[2] - seconds[1], 1e-9)) > 0.5:
            doubt = np.zeros(len(places), bool)  # nothing would be left
        out[gpu] = (Memory(seconds[0], part.value, seconds[1], seconds[2], doubt), places)
    return out


def _baseline(memory: Memory, own: Segments, freed: Array) -> float:
    """Memory in use without a trial; else what sums leave when all that their trials freed is taken off."""
    level = idle_level(memory)
    if not np.isnan(level):
        return level
    known = ~np.isnan(freed)
    whole = np.asarray(own.rows @ (~known).astype(float)).ravel() == 0
    if whole.sum() < MIN_ENDS:
        return float("nan")
    return max(0.0, float(np.median(own.used_mib[whole] - own.rows[whole] @ np.where(known, freed, 0.0))))


def _settled(timed: TimedTrials, trials: pd.DataFrame, growth: dict[str, Growth]) -> Array:
    """True for trials that lived until their memory was settled."""
    age = max((g.settled_s for g in growth.values()), default=0.0)
    by_gpu = trials["gpu"].map({gpu: g.settled_s for gpu, g in growth.items()}).astype(float).fillna(age)
    return (trials["duration_s"] > by_gpu).to_numpy()


def _assembled(
    trials: pd.DataFrame, joint: Joint, joined: Segments, whole: Array, rng: np.random.Generator,
    baselines: dict[str, float], growth: dict[str, Growth],
) -> Peaks:  # fmt: skip
    """The frame: what was solved for trials that reached their peak, what their parameters let expect for others."""
    reached = trials["reached"].to_numpy()
    summed = np.asarray(joined.rows.sum(axis=0)).ravel() > 0
    spread = joint.spread_mib * joint.calibration
    held = trials["held_mib"].fillna(0.0).to_numpy()
    shown = np.where(summed, np.maximum(joint.peak_mib, held), held)
    least = np.where(reached, 0.0, shown)  # of a trial that ended early only a lower bound was seen
    separated = reached & (whole | summed)
    likely = joint.expected_mib + spread * rng.standard_normal(joint.draws.shape)
    draws = np.where(separated, joint.draws, np.maximum(likely, least))
    low = np.where(separated, joint.low_mib, np.maximum(joint.expected_mib - SIGMA95 * spread, least))
    high = np.where(separated, joint.high_mib, np.maximum(joint.expected_mib + SIGMA95 * spread, least))
    by_parameters = "parameters" if joint.design.names else "typical"
    out = trials.assign(
        peak_mib=np.where(separated, joint.peak_mib, np.maximum(joint.expected_mib, least)),
        low_mib=np.maximum(low, 0.0),
        high_mib=high,
        method=np.where(separated & whole, "end", np.where(separated, "sum", by_parameters)),
    )
    error = 100 * float(np.mean(joint.held_out)) if len(joint.held_out) else float("nan")
    return Peaks(_like_others(out), draws, baselines, joint.design.names, growth, error, int(whole.sum()))


def _like_others(trials: pd.DataFrame) -> pd.DataFrame:
    """``weight_s`` of trials cut short by a failure: the median duration of the 25 others nearest in memory.

    A large trial that crashes runs briefly; weighted by that time it would count for less than it will take.
    """
    failed = trials["outcome"].isin(["FAIL", ABANDONED]).to_numpy()
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
