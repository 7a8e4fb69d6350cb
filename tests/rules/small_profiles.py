"""Profiles with every field unknown but those that a test states."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from gpudiag.measures.memory import MemoryProfile, measure_memory
from gpudiag.measures.parallelism import ParallelismProfile, measure_parallelism
from gpudiag.measures.power import PowerProfile, measure_power
from gpudiag.measures.pruning import PruningProfile, measure_pruning
from gpudiag.measures.sampling import SamplingProfile, measure_sampling
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
}  # fmt: skip
FRAMES = {
    "gaps": ["gpu", "start", "end", "gap_s", "trials_ended", "share_pct"],
    "open_trials": ["trial", "reason", "orphan"],
}
MEASURE_OF: Mapping[type, Callable[[Run], Any]] = {
    UtilizationProfile: measure_utilization, MemoryProfile: measure_memory, PowerProfile: measure_power,
    SamplingProfile: measure_sampling, TrialsProfile: measure_trials, PruningProfile: measure_pruning,
    ParallelismProfile: measure_parallelism,
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
