"""What is known of each number of trials at once on a GPU: its memory, its crashes, and its throughput."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.memory.crashes import MIN_SEEN, Crashes
from gpudiag.forecast.memory.net import (
    NetGains,
    Restart,
    crash_part,
    n_gpus_to_use,
    net_estimate,
    net_gains,
    rates_without_crashes,
    seen_net,
)
from gpudiag.forecast.memory.overflow import Room, overflow_table, study_risk_pct
from gpudiag.forecast.memory.peaks import Peaks, trial_peaks
from gpudiag.forecast.progress import Progress
from gpudiag.measures._trials.proportions import clopper_pearson_pct
from gpudiag.memo import memoized, once
from gpudiag.run import Run

MOST_AT_ONCE = 32
ENDS = ("", "_low", "_high")
MEMORY_COLUMNS = (
    "typical_mib", "typical_low_mib", "typical_high_mib", "p95_mib", "p95_low_mib", "p95_high_mib", "worst_mib",
    "worst_low_mib", "worst_high_mib", "margin_mib", "margin_low_mib", "margin_high_mib", "hard_fit",
    "sets_over_pct", "p_overflow_pct", "p_low_pct", "p_high_pct",
)  # fmt: skip


def most_seen(seen: pd.DataFrame, crashes: Crashes) -> int:
    """The most trials that ran at once on a GPU."""
    return max([1, *map(int, seen.index), *map(int, crashes.by_level["k"])])


def levels_beyond(seen: int) -> list[int]:
    """1 to one more than were seen at once."""
    return list(range(1, min(seen + 1, MOST_AT_ONCE) + 1))


def usual_levels(seen: int) -> int:
    """Trials at once on a GPU up to which is asked as a rule where at most so many were seen: half as many again."""
    return min(max(seen + 1, round(1.5 * seen)), MOST_AT_ONCE)


@memoized
def drawn_peaks(run: Run, seed: int) -> tuple[Peaks, np.random.Generator]:
    """The peaks of single trials, and the source of chance as they left it."""
    rng = np.random.default_rng(seed)
    return trial_peaks(run, rng), rng


def _overflows(run: Run, seed: int, room: Room, most: int, progress: Progress) -> pd.DataFrame:
    """The table of overflows for 1 to ``most`` trials at once; what a level says does not depend on the others."""
    peaks, rng = drawn_peaks(run, seed)
    drawn = peaks.drawn
    weight = peaks.trials["weight_s"].to_numpy(float)[drawn]
    weight = weight if weight.sum() > 0 else np.ones(len(weight))
    levels, tick = range(1, most + 1), lambda done, of: progress("")
    return overflow_table(peaks.draws[:, drawn], weight, room, levels, copy.deepcopy(rng), tick, peaks.at_peak[drawn])


def memory_of(
    run: Run, seed: int, room: Room, levels: Sequence[int], most: int, progress: Progress
) -> tuple[pd.DataFrame, float]:
    """The memory of each level, and the greatest k up to the last of them whose largest trials fit together: 0 where
    not even one is sure to fit. Up to ``most`` are computed, once for all that ask.
    """
    sets = once(run, ("overflows", seed, most), lambda: _overflows(run, seed, room, most, progress))
    fit = sets.loc[sets["hard_fit"] & (sets["k"] <= max(levels)), "k"]
    return sets[sets["k"].isin(levels)].reset_index(drop=True), float(fit.max()) if len(fit) else 0.0


def unknown_memory(levels: Sequence[int]) -> pd.DataFrame:
    """The table of memory where nothing is known of it."""
    return pd.DataFrame({"k": levels}).reindex(columns=["k", *MEMORY_COLUMNS])


def with_risks(memory: pd.DataFrame, crashes: Crashes, seen: pd.DataFrame, n_trials: int) -> pd.DataFrame:
    """The table with what was seen, the chance of a crash per trial and the risk of the study."""
    out = memory.merge(seen.reset_index(), how="left", on="k")
    out = out.merge(crashes.by_level.rename(columns={"n": "seen_n"}), how="left", on="k")
    others = crashes.by_class[crashes.by_class["kind"] != "oom"]
    n_other = int(others["n_events"].sum())
    other = _rate(n_other, crashes.n)
    rows = [_chance(row, other) for row in out.to_dict("records")]
    out[["crash_pct", "crash_low_pct", "crash_high_pct", "crash_how"]] = pd.DataFrame(rows)
    failed = [_failed(row, crashes, others) for row in out.to_dict("records")]
    out[["failed_pct", "failed_low_pct", "failed_high_pct"]] = pd.DataFrame(failed, index=out.index)
    counted = out["oom_low_pct"].astype(float).fillna(0.0)
    for name, chance in zip(
        ("study_risk_pct", "study_low_pct", "study_high_pct"),
        ("p_overflow_pct", "p_low_pct", "p_high_pct"),
        strict=True,
    ):
        least = np.maximum(out[chance].astype(float), counted)  # NaN where the forecast knows nothing
        out[name] = [study_risk_pct(p, n_trials) if p == p else NAN for p in least]
    return out


def _rate(events: int, n: int) -> tuple[float, float, float]:
    return (100 * events / n, *clopper_pearson_pct(min(events, n), n)) if n else (NAN, NAN, NAN)


def _chance(row: Mapping[Any, Any], other: tuple[float, float, float]) -> tuple[float, float, float, str]:
    """Crashes of a trial at a level: overflows as seen there, else as forecast; all other classes at the run's rate."""
    if row["seen_n"] >= MIN_SEEN:
        oom, how = (row["oom_pct"], row["oom_low_pct"], row["oom_high_pct"]), "seen"
    elif row["p_overflow_pct"] >= 0:
        oom, how = (row["p_overflow_pct"], row["p_low_pct"], row["p_high_pct"]), "forecast"
    else:
        return NAN, NAN, NAN, "unknown"
    value, low, high = (min(a + b, 100.0) for a, b in zip(oom, other, strict=True))
    return value, low, high, how


def _failed(row: Mapping[Any, Any], crashes: Crashes, others: pd.DataFrame) -> tuple[float, float, float]:
    """Trials that fail at a level, as they are counted: those that follow another failure in its process included."""
    if row["k"] in crashes.failed.index and (seen := crashes.failed.loc[row["k"]])["n_ended"] >= MIN_SEEN:
        return _rate(int(seen["n_failed"]), int(seen["n_ended"]))
    oom = (row["p_overflow_pct"], row["p_low_pct"], row["p_high_pct"])
    other = _rate(int(others["n_trials"].sum()), crashes.n_finished)
    value, low, high = (min(a + b, 100.0) for a, b in zip(oom, other, strict=True))
    return value, low, high


def throughput(
    run: Run, table: pd.DataFrame, crashes: Crashes, restart: Restart, *, counts: bool, progress: Progress
) -> tuple[dict[int, Estimate], dict[int, Estimate], NetGains]:
    """Trials per hour by level without crashes, and with them: as forecast, or as counted where ``counts``; and those
    with crashes over the present ones.
    """
    rates = rates_without_crashes(run, [int(k) for k in table["k"]], lambda: progress(""))
    part, n_gpus = crash_part(crashes.crashed_s, crashes.well_s), n_gpus_to_use(run)
    nets, chances = {}, {}
    for row in table.to_dict("records"):
        k, crash = int(row["k"]), Estimate(row["crash_pct"], row["crash_low_pct"], row["crash_high_pct"], "%")
        chances[k] = crash
        counted = seen_net(run, k, n_gpus) if counts else None
        nets[k] = counted if counted is not None else net_estimate(rates[k], crash, restart, k, part)
    return *_ordered(rates, nets), net_gains(run, chances, restart, part, lambda: progress(""))


def _ordered(
    rates: Mapping[int, Estimate], nets: Mapping[int, Estimate]
) -> tuple[dict[int, Estimate], dict[int, Estimate]]:
    """Both with crashes never above without: as many as were counted to end well would end so without any crash, and
    no more than would without any can with them.
    """
    ordered, clipped = dict(rates), dict(nets)
    for k, net in nets.items():
        if not (rates[k].high >= 0 and net.value >= 0):
            continue
        most = rates[k].high if net.value <= rates[k].high else net.high  # beyond the forecast the count is believed
        least = rates[k].low if rates[k].bounds_only else float(np.fmax(rates[k].low, net.low))
        ordered[k] = replace(rates[k], value=float(np.maximum(rates[k].value, net.value)), low=least, high=most)
        clipped[k] = replace(net, high=min(net.high, most))
    return ordered, clipped


def with_rates(table: pd.DataFrame, rates: dict[int, Estimate], nets: dict[int, Estimate]) -> pd.DataFrame:
    """The table with trials a day, without crashes and with them."""
    columns = {
        f"{name}_day{end}": [24 * getattr(held[int(k)], part) for k in table["k"]]
        for name, held in (("rate", rates), ("net", nets))
        for end, part in zip(ENDS, ("value", "low", "high"), strict=True)
    }
    return table.assign(**columns)
