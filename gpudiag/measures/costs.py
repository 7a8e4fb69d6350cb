"""What trials cost: workers, GPU time, energy and money, by trial and by outcome, and what start-up costs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.energy import energy_curves
from gpudiag.measures._gpu.footprint import freed_mib
from gpudiag.measures._gpu.own_process import own_process
from gpudiag.measures._gpu.shares import (
    ALONE_SHARE,
    COLUMNS,
    peak_while,
    share_error_pct,
    spent_until_s,
    trial_shares,
)
from gpudiag.measures._time.gpu_samples import samples_by_gpu
from gpudiag.measures._time.gpu_time import GpuTime, gpu_time
from gpudiag.measures._time.microseconds import SECOND_US, microseconds, utc
from gpudiag.measures._time.own_time import of_other_studies
from gpudiag.measures._time.pauses import holds_pause, pauses
from gpudiag.measures._time.timeline import CELLS, STARTUP, WAITING, Intervals, Samples
from gpudiag.measures._time.trial_intervals import without_own_times
from gpudiag.measures._time.weighted import weighted_sum
from gpudiag.measures._time.window import TimedTrials
from gpudiag.measures._trials.constraints import infeasible
from gpudiag.measures._trials.placed import placed_trials
from gpudiag.measures._trials.startup import Startups, startups
from gpudiag.measures.base import Profile, TrialRow, clocks_may_differ, need_trials
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import OUTCOMES

RAN = tuple(outcome for outcome in OUTCOMES if outcome != "WAITING")
NO_TRIAL = "no trial"
GAP = "gap"
UNTOLD = 0.05
"""Share of the worker time that one cannot place and still say what GPU time went into, within that share."""


class TrialCost(TrialRow):
    """A trial and what it cost."""

    outcome: Column[str] = column("one of OUTCOMES")
    gpu: Column[str] = column("names of its GPUs joined by commas")
    method: Column[str] = column("how its GPU is known")
    confidence: Column[str] = column("strong, weak or unknown")
    duration_s: Column[float] = column("duration")
    gpu_s: Column[float] = column("its GPU time, split evenly with the trials beside it")
    busy_gpu_s: Column[float] = column("the same of utilization x time, where observed")
    share_error_pct: Column[float] = column("median error of its busy_gpu_s")
    alone_pct: Column[float] = column("share of its GPU time that it had alone")
    mean_util_pct: Column[float] = column(
        "mean utilization, only where it was alone for 90 % of its time: a shared device tells nothing of one trial"
    )
    peak_mem_mib: Column[float] = column("greatest memory of the device, under the same condition")
    freed_mib: Column[float] = column(
        "what the memory of its one GPU fell by at its end, where no other trial of the GPU ended nearby; NaN unknown"
    )
    process_mem_mib: Column[float] = column("greatest memory of its own process, where processes were recorded")
    process_busy_gpu_s: Column[float] = column("SM time of its own process")
    energy_kwh: Column[float] = column("its energy, where observed")
    startup_s: Column[float] = column("its start-up")
    startup_method: Column[str] = column("'solo', 'activity', 'memory' or ''")


class TrialParameters(TrialRow, families=("params.",)):
    """The parameters (``params.<name>``) of the same trials in the same order."""


class WorkerTime(Row):
    """An outcome: end - start of its trials; ``gap`` is the time between the trials of a worker."""

    outcome: Column[str] = column("outcome")
    n_trials: Column[int] = column("trials")
    worker_s: Column[float] = column("worker time")
    share_pct: Column[float] = column("share of the worker time")


class PhaseCost(Row):
    """A phase; start-ups that were not seen count as the median of those that were, or as the trial's whole life if
    that is shorter.
    """

    phase: Column[str] = column("startup or after_startup")
    worker_s: Column[float] = column("worker time")
    share_pct: Column[float] = column("share of the trials' worker time")


class OutcomeCost(Row):
    """An outcome with its GPU time; ``no trial`` is the rest of it. All NaN where too little is known of the GPUs on
    which trials ran. Energy and busy time are of the observed time alone (``energy_coverage_pct``, and
    ``ledger.coverage_pct``).
    """

    outcome: Column[str] = column("outcome")
    n_trials: Column[int] = column("trials")
    gpu_s: Column[float] = column("GPU time")
    share_pct: Column[float] = column("share of all GPU time")
    busy_gpu_s: Column[float] = column("utilization x time, where observed")
    energy_kwh: Column[float] = column("energy, where observed")
    cost: Column[float] = column("money, in the currency")


class SearchProgress(TrialRow):
    """An improvement of the best value; trials that broke a constraint bring none."""

    at: Column[pd.Timestamp] = column("end of the trial")
    gpu_h: Column[float] = column("GPU-hours of all trials up to then, those that were running included")
    best: Column[float] = column("best value so far")


class CostsProfile(Profile, topic="costs"):
    """What the trials cost. Worker time, GPU time and start-up are three views of one run; none is added to another.
    With k trials on a GPU at once, starts that fall independently leave it with nothing but start-ups for F^k of the
    time (METHODS 0), where F is the share of worker time spent in start-up.
    """

    trials: Rows = table_of(TrialCost)
    parameters: Rows = table_of(TrialParameters)
    worker_time: Rows = table_of(WorkerTime)
    phases: Rows = table_of(PhaseCost)
    outcomes: Rows = table_of(OutcomeCost)
    progress: Rows = table_of(SearchProgress)
    total_worker_h: Fact[float] = fact("worker time with gaps")
    trial_gpu_h: Fact[float] = fact("GPU time with a trial; NaN where nobody knows on which GPUs trials ran")
    to_best_gpu_h: Fact[float] = fact(
        "GPU time of all trials up to the end of the best one, those that were running included; NaN with several "
        "studies, and where all values of COMPLETE trials are equal",
        label="GPU time to the best value",
    )
    after_best_gpu_h: Fact[float] = fact(
        "GPU time of trials from then on, which found nothing better; NaN where that of any trial is unknown",
        label="GPU time after the best value",
    )
    total_gpu_h: Fact[float] = fact("all GPU time")
    energy_kwh: Fact[float] = fact("energy of all GPUs, where observed", label="energy of the observed time")
    energy_coverage_pct: Fact[float] = fact(
        "share of all GPU time whose energy is known, by its counter or by power; NaN where none is",
        label="GPU time whose energy is known",
    )
    cost: Fact[float] = fact("money, in the currency, at the stated price")
    currency: Fact[str] = fact("of the stated price")
    parallel: Fact[float] = fact("trials on a GPU at once while there is any", label="trials at once")
    n_startups: Fact[int] = fact("start-ups seen", label="start-ups seen")
    clock_open: Fact[bool] = fact("trials and telemetry may lie apart, so that no start-up is seen")
    startup_median_s: Fact[float] = fact(
        "the median of all trials; NaN where fewer than five were seen", label="median start-up"
    )
    startup_share_pct: Fact[float] = fact("F: share of worker time spent in start-up", label="start-up, of worker time")
    startup_law_pct: Fact[float] = fact("F^k", label="the same if starts were independent (F^k)")
    startup_only_pct: Fact[float] = fact(
        "what the ledger shows: share of observed GPU time with a trial that held nothing but start-ups",
        label="GPU with start-ups alone",
    )
    startup_only_high_pct: Fact[float] = fact(
        "the same with all idle time that may have been start-up", label="GPU with start-ups alone, at most"
    )
    startup_only_gpu_h: Fact[float] = fact("the length of that")
    attributed_pct: Fact[float] = fact("share of the trials whose GPU is known")
    n_shared: Fact[int] = fact("trials that shared a GPU")
    n_workers: Fact[int] = fact("workers that the trials fill; 0 where nothing says when each trial ran")

    def to_frame(self) -> pd.DataFrame:
        """``outcomes``."""
        return self.outcomes


def began_once(costs: CostsProfile) -> bool:
    """True where no worker ran a second trial: no start-up came again that could be kept."""
    return 0 < len(costs.trials) <= costs.n_workers


@memoized
def measure_costs(run: Run) -> CostsProfile:
    """Worker time, GPU time, energy and money by trial and outcome. Needs trials with times; the rest if recorded."""
    need_trials(run)
    time = gpu_time(run)
    if time.trials.rows.empty:
        raise NotMeasurable("No trial has a start and an end.", "Record start and end of each trial.")
    kwh, known_s = _kwh(run, time)
    shares = {gpu: trial_shares(time.timelines[gpu], time.intervals(gpu), kwh[gpu]) for gpu in time.places}
    beside = {gpu: _beside_others(run, gpu, time.intervals(gpu)) for gpu in time.places}
    for gpu, own in shares.items():
        own[beside[gpu]] = np.nan
    begun = startups(run)
    trials = _trials(run, time, shares, begun)
    expected = None if any(map(np.any, beside.values())) else _expected(time, shares, kwh)
    total_s = sum(float(line.length_s.sum()) for line in time.timelines.values())
    total_s = total_s if time.joined and time.timelines else float("nan")
    energy = [float(np.nansum(part)) for part in kwh.values() if part is not None] if time.joined else []
    outcomes = _outcomes(run, time, kwh, expected)
    worker_time = _worker_time(time.trials, placed_trials(run), whole="workers" not in run.info.incomplete)
    own_times = not without_own_times(run).any()
    if not own_times:
        worker_time[["worker_s", "share_pct"]] = np.nan
    shared = trials["alone_pct"] < 100 * ALONE_SHARE
    spent = np.minimum(begun.expected_s, trials["duration_s"])
    worker_s = float(trials["duration_s"].sum())
    share = float(spent.sum(skipna=False) / worker_s) if worker_s else float("nan")
    parallel = _parallel(time) if own_times else float("nan")
    price = run.info.settings.price_per_gpu_h
    by_cell = sum((timeline.seconds() for timeline in time.timelines.values()), np.zeros(len(CELLS)))
    waited_s, with_trial_s = float(by_cell[STARTUP]), float(by_cell[STARTUP:].sum()) if time.joined else 0.0
    most_waited_s = waited_s + float(by_cell[WAITING])
    counted = trials.assign(gpu_s=np.nan if expected is None else expected["gpu_s"])
    progress = _progress(run, counted, time)
    one = progress["study"].nunique() == 1 and run.trials.loc[run.trials["state"] == "COMPLETE", "value"].nunique() > 1
    to_best_h = float(progress["gpu_h"].iloc[-1]) if one else float("nan")
    return CostsProfile(
        trials=trials,
        parameters=_parameters(run, time.trials),
        worker_time=worker_time,
        phases=_phases(share, worker_s),
        outcomes=outcomes,
        progress=progress,
        total_worker_h=float(worker_time["worker_s"].sum(min_count=1)) / 3600,
        trial_gpu_h=float(counted["gpu_s"].sum(min_count=1)) / 3600,
        to_best_gpu_h=to_best_h,
        after_best_gpu_h=_after_best_h(counted, progress, time.trials) if one else float("nan"),
        total_gpu_h=total_s / 3600,
        energy_kwh=float(sum(energy)) if energy else float("nan"),
        energy_coverage_pct=100 * known_s / total_s if energy and total_s else float("nan"),
        cost=total_s / 3600 * price if price is not None else float("nan"),
        currency=run.info.settings.currency if run.info.settings.price_per_gpu_h is not None else "",
        parallel=parallel,
        n_startups=int(trials["startup_s"].notna().sum()),
        clock_open=clocks_may_differ(run),
        startup_median_s=begun.median_s,
        startup_share_pct=100 * share,
        startup_law_pct=100 * share**parallel,
        startup_only_pct=100 * waited_s / with_trial_s if with_trial_s else float("nan"),
        startup_only_high_pct=100 * most_waited_s / with_trial_s if with_trial_s else float("nan"),
        startup_only_gpu_h=waited_s / 3600 if with_trial_s else float("nan"),
        attributed_pct=time.where.attributed_pct if time.where else float("nan"),
        n_shared=int(shared.sum()),
        n_workers=placed_trials(run)["worker"].nunique() if own_times else 0,
    )


def _kwh(run: Run, time: GpuTime) -> tuple[dict[str, np.ndarray | None], float]:
    """Energy of each piece of the timeline of each GPU, None where none was recorded; and of how many seconds it is."""
    out: dict[str, np.ndarray | None] = dict.fromkeys(time.timelines)
    total_us = 0
    for gpu, curve in energy_curves(run):
        known_us = curve.known_us(time.windows_of[gpu]) if gpu in out else 0
        if known_us:
            out[gpu] = curve.between(time.timelines[gpu].start_us, time.timelines[gpu].end_us)
            total_us += known_us
    return out, total_us / SECOND_US


def _beside_others(run: Run, gpu: str, own: Intervals) -> np.ndarray:
    """By trial of a GPU whether one of a study that was not chosen may have shared it."""
    start, end = np.array(of_other_studies(run, gpu), np.int64).reshape(-1, 2).T
    met: np.ndarray = np.searchsorted(start, own.end_us) > np.searchsorted(end, own.start_us, "right")
    return met


def _trials(run: Run, time: GpuTime, by_gpu: dict[str, pd.DataFrame], begun: Startups) -> pd.DataFrame:
    """One row a timed trial, in the order of ``run.trials``."""
    out = time.trials.rows[["study", "trial", "outcome"]].reset_index(drop=True)
    peak, freed = np.full(len(out), np.nan), np.full(len(out), np.nan)
    memory = samples_by_gpu(run, "mem_used_mib") if time.exact else {}
    for gpu, places in time.places.items():
        intervals, of_gpu = time.intervals(gpu), memory.get(gpu, Samples.none())
        peak[places] = np.fmax(peak[places], peak_while(of_gpu, intervals))
        freed[places] = np.fmax(freed[places], freed_mib(of_gpu, intervals))
    parts = [part.set_axis(time.places[gpu]) for gpu, part in by_gpu.items()] or [pd.DataFrame(columns=list(COLUMNS))]
    shares = pd.concat(parts).groupby(level=0).sum(min_count=1).reindex(out.index).astype(float)
    if time.where is not None:
        known = time.where.trials.iloc[time.trials.rows.index].reset_index(drop=True)
        out[["gpu", "method", "confidence"]] = known[["gpu", "method", "confidence"]]
    lasted_s = (time.trials.end_us - time.trials.start_us) / SECOND_US
    out["duration_s"] = np.where(without_own_times(run)[time.trials.rows.index], np.nan, lasted_s)
    # Where its GPU is unknown, a trial was counted on several: that tells nothing of this one.
    shares[out["gpu"].isna().to_numpy()] = np.nan
    out["gpu_s"], out["busy_gpu_s"] = shares["gpu_s"], shares["busy_gpu_s"]
    out["share_error_pct"] = share_error_pct((shares["crowd_s"] / shares["device_s"]).to_numpy())
    out["alone_pct"] = 100 * shares["alone_s"] / shares["device_s"]
    alone = out["alone_pct"] >= 100 * ALONE_SHARE
    out["mean_util_pct"] = (
        100 * shares["alone_util_s"] / shares["alone_seen_s"].where(shares["alone_seen_s"] > 0)
    ).where(alone)
    out["peak_mem_mib"] = pd.Series(peak).where(alone)
    one_gpu = ~out["gpu"].fillna(",").str.contains(",") if "gpu" in out else False
    out["freed_mib"] = pd.Series(freed).where(one_gpu)
    out["process_mem_mib"], out["process_busy_gpu_s"] = own_process(run, time.trials)
    out["energy_kwh"] = shares["energy_kwh"]
    out["startup_s"], out["startup_method"] = begun.seconds, begun.method
    return out


def _parameters(run: Run, timed: TimedTrials) -> pd.DataFrame:
    names = [name for name in run.trials.columns if str(name).startswith("params.")]
    return run.trials.iloc[timed.rows.index][["study", "trial", *names]].reset_index(drop=True)


def _expected(time: GpuTime, by_gpu: dict[str, pd.DataFrame], kwh: dict[str, np.ndarray | None]) -> pd.DataFrame | None:
    """gpu_s, busy_gpu_s and energy_kwh of each timed trial, of unknown GPU what is expected by the chances; None where
    trials of which nothing tells that hold more than UNTOLD of the worker time: they may share a GPU or hold several.
    """
    if _untold(time) > UNTOLD:
        return None
    parts = [part.set_axis(time.places[gpu]) for gpu, part in by_gpu.items()]
    for gpu, (places, chance) in time.maybe.items():
        parts.append(trial_shares(time.timelines[gpu], time.maybe_on(gpu), kwh[gpu], chance).set_axis(places))
    names = ["gpu_s", "busy_gpu_s", "energy_kwh"]
    together = pd.concat(parts) if parts else pd.DataFrame(columns=names)
    return together[names].groupby(level=0).sum(min_count=1).reindex(range(len(time.trials.start_us))).astype(float)


def _untold(time: GpuTime) -> float:
    """Share of the worker time of which nothing tells on which GPU it was."""
    if time.where is None:
        return 0.0
    lived = time.trials.rows[["study", "trial"]].assign(us=time.trials.end_us - time.trials.start_us)
    unsure = time.where.maybe[time.where.maybe["chance"].isna()][["study", "trial"]].drop_duplicates()
    return float(unsure.merge(lived, on=["study", "trial"])["us"].sum() / max(lived["us"].sum(), 1))


def _outcomes(
    run: Run, time: GpuTime, kwh: dict[str, np.ndarray | None], expected: pd.DataFrame | None
) -> pd.DataFrame:
    """All GPU time by outcome: each piece split evenly among the trials that run in it, the rest to no trial."""
    rows = {name: np.zeros(3) for name in (*RAN, NO_TRIAL)}
    outcomes = time.trials.rows["outcome"].to_numpy()
    for gpu, timeline in time.timelines.items() if time.joined else ():
        energy = kwh[gpu]
        used = energy if energy is not None else np.full(len(timeline.cell), np.nan)
        free = np.maximum(1 - timeline.held, 0)
        length = timeline.length_s
        busy = np.where(np.isnan(timeline.util_pct), 0.0, length * timeline.util_pct / 100)
        rows[NO_TRIAL] += [float((free * length).sum()), float((free * busy).sum()), np.nansum(free * used)]
    if expected is not None:
        for name, own in expected.groupby(outcomes).sum().iterrows():
            rows[str(name)] += own.to_numpy()
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=["gpu_s", "busy_gpu_s", "energy_kwh"])
    if not time.joined or not time.timelines or expected is None:
        frame[:] = np.nan
    if not any(part is not None for part in kwh.values()):
        frame["energy_kwh"] = np.nan
    if not any(len(part.time_us) for part in time.samples.values()):
        frame["busy_gpu_s"] = np.nan
    counts = pd.Series(outcomes).value_counts().reindex(frame.index, fill_value=0)
    frame.insert(0, "n_trials", counts)
    frame.insert(2, "share_pct", 100 * frame["gpu_s"] / frame["gpu_s"].sum(min_count=1))
    price = run.info.settings.price_per_gpu_h
    frame["cost"] = frame["gpu_s"] / 3600 * price if price is not None else np.nan
    return frame.rename_axis("outcome").reset_index()


def _worker_time(trials: TimedTrials, placed: pd.DataFrame, *, whole: bool) -> pd.DataFrame:
    """Worker seconds by outcome, and between the trials of a worker and study, pauses of the whole run aside.
    ``placed``: the same trials, each on its worker; ``whole``: they are all that ran.
    """
    start, end, worker = microseconds(placed["start"]), microseconds(placed["end"]), placed["worker"].to_numpy()
    seconds = pd.Series((trials.end_us - trials.start_us) / SECOND_US).groupby(trials.rows["outcome"].to_numpy())
    frame = pd.DataFrame({"n_trials": seconds.size(), "worker_s": seconds.sum()}).reindex(list(RAN), fill_value=0)
    by_worker = np.lexsort((end, start, worker))
    same = worker[by_worker][1:] == worker[by_worker][:-1]
    study = placed["study"].to_numpy()[by_worker]
    same &= study[1:] == study[:-1]
    left, right = end[by_worker][:-1], start[by_worker][1:]
    same &= ~holds_pause(left, right, pauses(start, end))
    between = np.maximum(right - left, 0)[same]
    frame.loc[GAP] = [int((between > 0).sum()), between.sum() / SECOND_US] if whole else [0, np.nan]
    total = frame["worker_s"].sum()
    frame["share_pct"] = 100 * frame["worker_s"] / total if total else np.nan
    return frame.rename_axis("outcome").reset_index().astype({"n_trials": int})


def _phases(startup_share: float, worker_s: float) -> pd.DataFrame:
    share = np.array([startup_share, 1 - startup_share])
    return pd.DataFrame({"phase": ["startup", "after_startup"], "worker_s": worker_s * share, "share_pct": 100 * share})


def _parallel(time: GpuTime) -> float:
    """Mean number of trials on a GPU while there is any."""
    beside, held = 0.0, 0.0
    for timeline in time.timelines.values():
        number, length = timeline.held, timeline.length_s
        beside += weighted_sum(number, length)
        held += weighted_sum(np.minimum(number, 1), length)
    return beside / held if held else float("nan")


def _progress(run: Run, trials: pd.DataFrame, time: GpuTime) -> pd.DataFrame:
    """Each COMPLETE trial that was the best feasible one of its study so far, with the GPU-hours of all trials of the
    study up to its end; NaN where nothing tells those of the trial itself.
    """
    timed = time.trials
    frame = trials[["study", "trial", "outcome", "gpu_s"]].assign(at=timed.end_us)
    value = run.trials["value"] if "value" in run.trials else pd.Series(np.nan, run.trials.index)
    frame["value"] = value.iloc[timed.rows.index].to_numpy(float)
    frame["counts"] = (frame["outcome"] == "COMPLETE") & ~infeasible(run.trials)[timed.rows.index]
    directions = run.studies.drop_duplicates("study").set_index("study")["directions"].reindex(frame["study"])
    sign = np.where(directions == "MINIMIZE", 1.0, np.where(directions == "MAXIMIZE", -1.0, np.nan))
    frame = frame.assign(score=sign * frame["value"]).sort_values(["at", "study", "trial"], kind="stable")
    done = frame[frame["counts"] & np.isfinite(frame["score"])]
    best = done.groupby("study")["score"].cummin()
    better = done[best < best.groupby(done["study"]).shift(fill_value=np.inf)].copy()
    spent_s = pd.Series(np.nan, better.index)
    for study, rows in better.groupby("study"):
        own = (frame["study"] == study).sort_index().to_numpy()
        spent_s[rows.index] = _spent_s(time, own, rows["at"].to_numpy(np.int64))
    out = better[["study", "trial"]].assign(gpu_h=spent_s.where(better["gpu_s"].notna()) / 3600, best=better["value"])
    out["at"] = utc(better["at"].to_numpy()).set_axis(out.index)
    return out[["study", "trial", "at", "gpu_h", "best"]].reset_index(drop=True)


def _spent_s(time: GpuTime, own: np.ndarray, until_us: np.ndarray) -> np.ndarray:
    """GPU seconds of some of the timed trials up to each time, of unknown GPU what is expected by the chances."""
    spent = np.zeros(len(until_us))
    for gpu, line in time.timelines.items():
        places = time.places.get(gpu, np.zeros(0, np.int64))
        places = places[own[places]]
        placed = Intervals(time.trials.start_us[places], time.trials.end_us[places])
        spent += spent_until_s(line, placed, until_us)
        maybe, chance = time.maybe.get(gpu, (places[:0], np.zeros(0)))
        kept = own[maybe]
        unsure = Intervals(time.trials.start_us[maybe[kept]], time.trials.end_us[maybe[kept]])
        spent += spent_until_s(line, unsure, until_us, chance[kept])
    return spent


def _after_best_h(trials: pd.DataFrame, progress: pd.DataFrame, timed: TimedTrials) -> float:
    """GPU-hours of trials from the end of the best one on; exactly 0 where none ran on."""
    own = trials[["study", "gpu_s"]].assign(at=timed.end_us)
    own = own[own["study"] == progress["study"].iloc[-1]]
    if own["gpu_s"].isna().any():
        return float("nan")
    late = own["at"] > int(microseconds(progress["at"])[-1])
    return float(own["gpu_s"].sum() / 3600 - progress["gpu_h"].iloc[-1]) if late.any() else 0.0
