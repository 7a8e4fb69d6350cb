"""Profiles with every field unknown but those that a test states."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from gpudiag.measures.agreement import AgreementProfile, measure_agreement
from gpudiag.measures.balance import BalanceProfile, measure_balance
from gpudiag.measures.events import EventsProfile, measure_events
from gpudiag.measures.failures import FailuresProfile, measure_failures
from gpudiag.measures.feed import FeedProfile, measure_feed
from gpudiag.measures.idleness import IdlenessProfile, measure_idleness
from gpudiag.measures.inputs import InputsProfile, measure_inputs
from gpudiag.measures.leak import LeakProfile, measure_leak
from gpudiag.measures.loader import LoaderProfile, measure_loader
from gpudiag.measures.memory import MemoryProfile, measure_memory
from gpudiag.measures.parallelism import ParallelismProfile, measure_parallelism
from gpudiag.measures.power import PowerProfile, measure_power
from gpudiag.measures.pruning import PruningProfile, measure_pruning
from gpudiag.measures.recorder import RecorderProfile, measure_recorder
from gpudiag.measures.sampling import SamplingProfile, measure_sampling
from gpudiag.measures.search import SearchProfile, measure_search
from gpudiag.measures.shift import ShiftProfile, measure_shift
from gpudiag.measures.stalls import StallsProfile, measure_stalls
from gpudiag.measures.throttle import ThrottleProfile, measure_throttle
from gpudiag.measures.trials import TrialsProfile, measure_trials
from gpudiag.measures.utilization import UtilizationProfile, measure_utilization
from gpudiag.rules.engine import Profiles, Rule, Verdict, check_thresholds, judge_all
from gpudiag.run import Run

NAN = float("nan")
UNKNOWN: dict[str, Any] = {"float": NAN, "int": 0, "bool": False, "str": ""}
TIMES = pd.Timestamp("2025-10-24", tz="UTC")

PER_GPU: dict[type, dict[str, Any]] = {
    UtilizationProfile: {
        "mean_pct": NAN, "p5_pct": NAN, "p50_pct": NAN, "p95_pct": NAN, "max_pct": NAN, "idle_pct": NAN,
        "duty_pct": NAN, "idle_gpu_h": NAN, "observed_s": NAN, "n_samples": 0, "mem_at_baseline": NAN,
        "trial_mean_pct": NAN, "trial_p5_pct": NAN, "trial_p95_pct": NAN, "trial_idle_gpu_h": NAN, "trial_s": NAN,
        "active_mean_pct": NAN, "active_p5_pct": NAN, "active_p95_pct": NAN, "active_idle_gpu_h": NAN, "active_s": NAN,
    },
    MemoryProfile: {
        "p99_used_pct": NAN, "max_used_pct": NAN, "total_mib": NAN, "headroom_mib": NAN, "growth_factor": NAN,
        "max_at": TIMES,
    },
    PowerProfile: {
        "mean_w": NAN, "max_w": NAN, "mean_all_w": NAN, "max_all_w": NAN, "limit_w": NAN, "limit_source": "",
        "n_rejected": 0, "rejected_pct": NAN, "over_limit_pct": NAN, "longest_rejected_s": 0.0, "plausible_w": NAN,
        "rejected_capped_pct": NAN, "board": "",
    },
    SamplingProfile: {"coverage_pct": NAN},
    BalanceProfile: dict.fromkeys(
        ("mean_pct", "busy_s", "busy_clock_mhz", "busy_power_w", "clock_ratio", "power_ratio"), NAN
    ),
    StallsProfile: dict.fromkeys(
        ("work_s", "p95_pct", "stalled_s", "stalled_pct", "n_stalls", "longest_stall_s", "acf", "period_s", "n_dips",
         "regular_pct", "depth_pct", "width_s", "lost_pct"), NAN
    ),
    IdlenessProfile: dict.fromkeys(
        ("lead_s", "trail_s", "lead_mib", "trail_mib", "held_mib", "observed_s", "allocated_idle_s",
         "longest_allocated_idle_s"), NAN
    ),
    ShiftProfile: dict.fromkeys(
        ("n_segments", "block_s", "first_pct", "last_pct", "fall_pct", "fall_s", "before_s"), NAN
    ),
    FeedProfile: dict.fromkeys(
        ("work_s", "p95_pct", "mean_pct", "cv", "p95_used_pct", "power_ratio", "busy_s", "busy_power_ratio",
         "busy_sm_pct", "host_s", "starved_pct", "soft_starved_pct", "hot_pct", "io_starved_pct", "p95_cpu_pct"), NAN
    ),
    LeakProfile: dict.fromkeys(
        ("slope_pct_h", "p_rise", "rise_pct", "rise_mib", "span_s", "after_mib", "before_mib", "residual_mib",
         "after_s"), NAN
    ),
    ThrottleProfile: dict.fromkeys(
        ("busy_s", "thermal_pct", "warm_low_pct", "power_pct", "capped_low_pct", "low_pct", "busy_clock_mhz",
         "max_clock_mhz", "hot_pct", "hot_s", "max_temp_c", "frozen_cap_s"), NAN
    ),
    RecorderProfile: dict.fromkeys(
        ("n_samples", "idle_period_s", "busy_period_s", "slow_ratio", "stuck_s"), NAN
    ),
}  # fmt: skip
FRAMES = {
    "gaps": ["gpu", "start", "end", "gap_s", "trials_ended", "share_pct"],
    "open_trials": ["trial", "name", "reason", "orphan"],
    "segments": ["gpu", "start", "end", "mean_pct", "work_s"],
    "constants": ["table", "column", "gpu", "value"],
    "mixed": ["gpu", "what"],
    "by_kind": ["kind", "n", "n_events"],
    "failures": ["trial", "name", "kind", "follows"],
    "outliers": ["trial", "name", "state", "duration_s", "median_s"],
    "stated": ["what", "stated", "found"],
    "events": ["time", "kind", "xid", "detail"],
    "unread": ["path", "error"],
}
MEASURE_OF: Mapping[type, Callable[[Run], Any]] = {
    UtilizationProfile: measure_utilization, MemoryProfile: measure_memory, PowerProfile: measure_power,
    SamplingProfile: measure_sampling, TrialsProfile: measure_trials, PruningProfile: measure_pruning,
    ParallelismProfile: measure_parallelism, BalanceProfile: measure_balance, StallsProfile: measure_stalls,
    IdlenessProfile: measure_idleness, ShiftProfile: measure_shift, FeedProfile: measure_feed,
    LoaderProfile: measure_loader, LeakProfile: measure_leak, ThrottleProfile: measure_throttle,
    EventsProfile: measure_events, FailuresProfile: measure_failures, SearchProfile: measure_search,
    AgreementProfile: measure_agreement, RecorderProfile: measure_recorder,
    InputsProfile: measure_inputs,
}  # fmt: skip


def profile(kind: type, gpus: Mapping[str, Mapping[str, Any]] | None = None, **stated: Any) -> Any:
    """A profile of that kind; ``gpus`` states columns of ``per_gpu`` by GPU. Coverage is complete unless stated."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.type == "pd.DataFrame":
            values[field.name] = pd.DataFrame(columns=FRAMES.get(field.name, []))
        else:
            values[field.name] = UNKNOWN[str(field.type)]
    if "coverage_pct" in values:
        values["coverage_pct"] = 100.0
    if kind in PER_GPU:
        rows = {name: {**PER_GPU[kind], **row} for name, row in (gpus or {"0": {}}).items()}
        values["per_gpu"] = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    return kind(**{**values, **stated})


def verdict(rule: Rule, found: Any, **thresholds: float) -> Verdict:
    """What the engine makes of that rule on that profile."""
    profiles = Profiles(Run(), {MEASURE_OF[type(found)]: found})
    overrides = {rule.id: thresholds} if thresholds else {}
    (one,) = judge_all((rule,), profiles, check_thresholds((rule,), overrides))
    return one
