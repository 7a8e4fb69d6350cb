"""Every threshold of the rules on use, feed, hardware and course: a profile just past it, and one just short of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from small_profiles import NAN, TIMES, profile, verdict

from gpudiag.measures.agreement import AgreementProfile
from gpudiag.measures.balance import BalanceProfile
from gpudiag.measures.collectives import CollectivesProfile
from gpudiag.measures.divergence import DivergenceProfile
from gpudiag.measures.endings import EndingsProfile
from gpudiag.measures.events import EventsProfile
from gpudiag.measures.failures import FailuresProfile
from gpudiag.measures.feed import FeedProfile
from gpudiag.measures.idleness import IdlenessProfile
from gpudiag.measures.inputs import InputsProfile
from gpudiag.measures.leak import LeakProfile
from gpudiag.measures.loader import LoaderProfile
from gpudiag.measures.recorder import RecorderProfile
from gpudiag.measures.search import SearchProfile
from gpudiag.measures.shift import ShiftProfile
from gpudiag.measures.silence import SilenceProfile
from gpudiag.measures.stalls import StallsProfile
from gpudiag.measures.throttle import ThrottleProfile
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import RECORD_COMMAND
from gpudiag.rules._engine.verdict import Severity, Status

RULE = {rule.id: rule for rule in RULES}
FOUND, OK, NOT_ASSESSED, NOT_APPLICABLE = Status.FOUND, Status.OK, Status.NOT_ASSESSED, Status.NOT_APPLICABLE
CRITICAL, WARNING, NOTE = Severity.CRITICAL, Severity.WARNING, Severity.NOTE

SEGMENTS = pd.DataFrame({"gpu": ["0"], "start": [TIMES], "end": [TIMES], "mean_pct": [40.0], "work_s": [900.0]})
NANS = pd.DataFrame({"kind": ["nan"], "n": [2], "n_events": [0]})
ASSERTS = pd.DataFrame({"kind": ["oom", "device_assert", "host_killed"], "n": [0, 0, 0], "n_events": [0, 0, 0]})
FAILED = pd.DataFrame({"name": ["3"], "kind": ["oom"], "follows": [False]})
LOST = pd.DataFrame(
    {
        "time": [TIMES],
        "gpu": "1",
        "kind": "gpu_lost",
        "xid": 79.0,
        "sxid": NAN,
        "origin": "hardware",
        "detail": "Xid 79",
    }
)
DIED = pd.DataFrame({"training": ["a.log"], "kind": ["oom"], "text": ["OutOfMemoryError"], "time": [TIMES],
                     "last_step": [10.0], "total_steps": [NAN], "by": ["log"], "outcome": ["failed"],
                     "rerun": [""]})  # fmt: skip
SILENT = pd.DataFrame({"state": ["idle"], "silent_s": [600.0], "silent_pct": [0.0], "silent_mib": [20000.0],
                       "is_freed": [False]}, index=pd.Index(["0"], name="gpu"))  # fmt: skip
DIVERGED = pd.DataFrame({"training": ["a.log"], "n_not_finite": [3.0], "since": [TIMES], "since_step": [10.0],
                         "since_epoch": [NAN], "rerun": [""],
                         "total_steps": [100.0], "wasted_pct": [20.0], "wasted_s": [60.0]})  # fmt: skip
SHARED = pd.DataFrame(
    [("s", 79, 4, "0.0", "1, 2, 3", 0.1, 90.0)],
    columns=["study", "n_valued", "n_worst", "worst_value", "worst_trials", "worst_worker_h", "other_values_pct"],
)
FAR = pd.DataFrame({"trial": [9], "name": ["9"], "state": ["PRUNED"], "duration_s": [2000.0], "median_s": [100.0]})
UNREAD = pd.DataFrame({"path": ["o.db"], "error": ["o.db: is locked."]})
HUNG = {"collective": "all_reduce number 7", "group": "0", "wait_s": 60.1, "wait_low_s": 60.1, "n_waiting": 2.0,
        "n_ranks": 3.0, "n_dumps": 3, "waiting_ranks": "0, 2",
        "waiting_since": "2026-02-03T08:00:00+00:00"}  # fmt: skip
STATED = pd.DataFrame({"what": ["COMPLETE"], "stated": [10.0], "found": [8.0]})

NOT_STARVED = {"starved_pct": 49.9, "soft_starved_pct": 49.9, "full_starved_pct": 49.9}
FAULTS: dict[str, tuple[type, dict[str, Any], Severity]] = {
    "gpu-imbalance": (BalanceProfile, {"mean_pct": 10.0, "n_gpus": 2, "jain": 0.7, "n_tasks": NAN}, WARNING),
    "gpu-straggler": (BalanceProfile, {"n_gpus": 2, "clock_ratio": 0.8, "busy_s": 300.0}, WARNING),
    "stalls-periodic": (
        StallsProfile,
        {"work_s": 3600.0, "acf": 0.5, "regular_pct": 60.0, "n_dips": 5.0, "lost_pct": 10.0},
        WARNING,
    ),
    "stalls-aperiodic": (
        StallsProfile,
        {"work_s": 3600.0, "stalled_pct": 10.0, "stalled_s": 360.0, "p95_pct": 50.0, "n_stalls": 5.0},
        WARNING,
    ),
    "idle-before-work": (IdlenessProfile, {"lead_s": 1201.0, "held_mib": 2000.0}, NOTE),
    "idle-after-work": (IdlenessProfile, {"trail_s": 601.0, "held_mib": 2000.0}, NOTE),
    "idle-between-work": (
        IdlenessProfile,
        {"between_s": 601.0, "longest_between_s": 601.0, "between_pct": 9.9, "n_between": 1.0, "held_mib": 2000.0},
        NOTE,
    ),
    "gpu-allocated-idle": (IdlenessProfile, {"allocated_idle_s": 700.0, "longest_allocated_idle_s": 601.0}, WARNING),
    "gpu-level-shift": (
        ShiftProfile,
        {"n_segments": 2.0, "fall_pct": 20.0, "fall_s": 100.0, "before_s": 900.0, "segments": SEGMENTS},
        WARNING,
    ),
    "cpu-bound-input": (
        FeedProfile,
        {"work_s": 900.0, "host_s": 60.0, "starved_pct": 50.0, "soft_starved_pct": 50.0},
        WARNING,
    ),
    "io-wait": (FeedProfile, {"work_s": 900.0, "host_s": 60.0, "io_starved_pct": 50.0}, WARNING),
    "batch-or-kernels-small": (
        FeedProfile,
        {"work_s": 60.0, "p95_pct": 69.0, "p95_used_pct": 69.0, "power_ratio": 0.3, "cv": 0.4, "p95_cpu_pct": 69.0}
        | {"least_p95_cpu_pct": 2.0},
        WARNING,
    ),
    "launch-bound": (
        FeedProfile,
        {"work_s": 900.0, "host_s": 60.0, "mean_pct": 30.0, "hot_pct": 80.0, "power_ratio": 0.3, "cv": 0.2},
        WARNING,
    ),
    "gpu-busy-but-light": (FeedProfile, {"busy_s": 300.0, "busy_power_ratio": 0.34}, NOTE),
    "sm-activity-low": (FeedProfile, {"busy_s": 300.0, "busy_sm_pct": 49.9}, WARNING),
    "tensor-cores-unused": (FeedProfile, {"busy_s": 300.0, "busy_tensor_pct": 0.9, "busy_sm_pct": 50.0}, NOTE),
    "loader-slow": (LoaderProfile, {"n_lines": 3, "avg_ms": 30.1}, WARNING),
    "loader-workers-cores": (LoaderProfile, {"of_cores_pct": 69.9}, NOTE),
    "memory-leak": (LeakProfile, {"slope_pct_h": 1.1, "p_rise": 0.009, "rise_pct": 5.0}, WARNING),
    "memory-residual": (LeakProfile, {"ended": True, "residual_mib": 300.0, "after_s": 60.0}, WARNING),
    "thermal-throttling": (ThrottleProfile, {"busy_s": 60.0, "thermal_pct": 5.1}, WARNING),
    "power-throttling": (ThrottleProfile, {"busy_s": 60.0, "capped_low_pct": 5.1, "power_pct": 50.0}, WARNING),
    "clocks-low": (
        ThrottleProfile,
        {"busy_s": 60.0, "busy_clock_mhz": 599.0, "reference_mhz": 1000.0, "uncapped_low_pct": 50.0},
        WARNING,
    ),
    "temperature-high": (ThrottleProfile, {"hot_s": 61.0, "max_temp_c": 90.0}, WARNING),
    "power-fault-throttling": (
        ThrottleProfile,
        {"frozen_cap_s": 61.0, "power_pct": 9.0, "max_clock_mhz": 9.0},
        WARNING,
    ),
    "gpu-lost": (EventsProfile, {"n_lost": 1, "events": LOST}, CRITICAL),
    "log-silent": (SilenceProfile, {"silent_s": 600.0, "due_s": 300.0, "per_gpu": SILENT}, WARNING),
    "loss-not-finite": (DivergenceProfile, {"n_logs": 1, "n_not_finite": 3.0, "trainings": DIVERGED}, CRITICAL),
    "training-failed": (EndingsProfile, {"n_logs": 1, "n_failed": 1, "failed": DIED}, CRITICAL),
    "gpu-hardware-errors": (EventsProfile, {"n_hardware": 1, "events": LOST}, CRITICAL),
    "failures-out-of-memory": (
        FailuresProfile,
        {"n_fail": 2, "n_told": 1, "by_kind": ASSERTS.assign(n=[1, 0, 0]), "failures": FAILED},
        WARNING,
    ),
    "failures-device-assert": (
        FailuresProfile,
        {"n_fail": 2, "n_told": 1, "by_kind": ASSERTS.assign(n_events=[0, 1, 0]), "failures": FAILED},
        WARNING,
    ),
    "failures-not-finite": (
        FailuresProfile,
        {"n_fail": 2, "n_told": 1, "n_finished": 50, "by_kind": NANS, "failures": FAILED},
        WARNING,
    ),
    "failures-host-killed": (
        FailuresProfile,
        {"n_fail": 2, "n_told": 1, "by_kind": ASSERTS.assign(n_events=[0, 0, 2]), "failures": FAILED},
        WARNING,
    ),
    "failures-poisoned": (FailuresProfile, {"n_fail": 5, "n_events": 2}, WARNING),
    "failures-after-full-memory": (FailuresProfile, {"n_fail": 9, "p_memory": 0.009, "fail_before_pct": 85.0}, NOTE),
    "failures-bimodal": (FailuresProfile, {"n_fail": 6, "p_one_group": 0.009, "short_s": 2.0, "long_s": 10.0}, NOTE),
    "duplicate-trials": (SearchProfile, {"n_with_params": 100, "n_duplicates": 6, "trial_worker_h": 1.0}, NOTE),
    "worst-value-shared": (SearchProfile, {"worst": SHARED, "trial_worker_h": 1.0}, NOTE),
    "trial-duration-outliers": (
        SearchProfile,
        {"n_timed": 50, "trial_worker_h": 10.0, "outlier_worker_h": 1.0, "outliers": FAR},
        NOTE,
    ),
    "trial-duration-drift": (
        SearchProfile,
        {"n_drift": 20, "drift_p": 0.009, "drift_rho": 0.3, "drift_ratio": 1.2},
        NOTE,
    ),
    "trial-gap-growth": (
        SearchProfile,
        {"n_gaps": 20, "gap_p": 0.009, "gap_rho": 0.3, "gap_first_s": 2.5, "gap_last_s": 5.1},
        WARNING,
    ),
    "study-tail": (SearchProfile, {"tail_s": 301.0, "tail_pct": 10.1, "peak": 2}, NOTE),
    "stated-counts-differ": (SearchProfile, {"stated": STATED}, NOTE),
    "pruned-too-early": (
        AgreementProfile,
        {"n_pruned": 1, "n": 15, "rho": 0.1, "rho_low": -0.2, "rho_high": 0.29},
        WARNING,
    ),
    "sensor-stuck": (RecorderProfile, {"stuck_s": 60.1}, WARNING),
    "sampler-slows-down": (RecorderProfile, {"slow_ratio": 1.31}, NOTE),
    "placeholder-columns": (
        RecorderProfile,
        {"constants": pd.DataFrame({"table": ["host"], "column": ["cpu_pct"], "gpu": [None], "value": [100.0]})},
        NOTE,
    ),
    "identity-mixed": (
        RecorderProfile,
        {"mixed": pd.DataFrame({"gpu": ["0, 1"], "kind": ["shared"], "name": ["uuid"], "n": [1]})},
        WARNING,
    ),
    "rank-missing": (CollectivesProfile, {**HUNG, "hang": "missing", "missing_ranks": "1", "n_missing": 1.0}, CRITICAL),
    "collective-stuck": (CollectivesProfile, {**HUNG, "hang": "stuck"}, CRITICAL),
    "collective-mismatch": (
        CollectivesProfile,
        {"n_dumps": 3, "mismatch": "7", "other_ranks": "1", "other_call": "reduce", "usual_call": "barrier"},
        CRITICAL,
    ),
    "input-unread": (InputsProfile, {"n_inputs": 2, "n_unread": 1, "unread": UNREAD}, WARNING),
}
"""A profile by rule that is just past its thresholds; columns of ``per_gpu`` and fields by name."""

SHORT: list[tuple[str, dict[str, Any], Status | Severity]] = [
    ("gpu-imbalance", {"jain": 0.8}, OK),
    ("gpu-imbalance", {"jain": NAN}, OK),
    ("gpu-imbalance", {"n_tasks": 3.0}, NOTE),
    ("gpu-imbalance", {"n_tasks": 4.0}, WARNING),
    ("gpu-imbalance", {"n_gpus": 1}, NOT_APPLICABLE),
    ("gpu-imbalance", {"n_at_once": 2}, NOT_ASSESSED),
    ("gpu-imbalance", {"n_at_once": 2, "n_tasks": 40.0}, WARNING),
    ("gpu-straggler", {"clock_ratio": 0.85}, OK),
    ("gpu-straggler", {"busy_s": 299.0}, OK),
    ("gpu-straggler", {"clock_ratio": NAN}, NOT_ASSESSED),
    ("gpu-straggler", {"n_gpus": 1}, NOT_APPLICABLE),
    ("stalls-periodic", {"acf": 0.2}, OK),
    ("stalls-periodic", {"acf": NAN}, OK),
    ("stalls-periodic", {"regular_pct": 49.9}, OK),
    ("stalls-periodic", {"n_dips": 4.0}, OK),
    ("stalls-periodic", {"lost_pct": 9.9}, NOTE),
    ("stalls-periodic", {"lost_pct": 4.9}, OK),
    ("stalls-periodic", {"lost_pct": NAN, "open_pct": 4.9}, OK),
    ("stalls-periodic", {"lost_pct": NAN, "open_pct": 5.0}, NOT_ASSESSED),
    ("stalls-periodic", {"lost_pct": 3.0, "open_pct": 2.0}, NOT_ASSESSED),
    ("stalls-periodic", {"n_dips": 4.0, "open_pct": 4.9}, OK),
    ("stalls-periodic", {"n_dips": 4.0, "open_pct": 5.0}, NOT_ASSESSED),
    ("stalls-periodic", {"work_s": 0.0, "acf": NAN}, NOT_ASSESSED),
    ("stalls-aperiodic", {"stalled_pct": 9.9}, OK),
    ("stalls-aperiodic", {"stalled_pct": NAN, "open_pct": 9.9}, OK),
    ("stalls-aperiodic", {"stalled_pct": NAN, "open_pct": 10.0}, NOT_ASSESSED),
    ("stalls-aperiodic", {"stalled_pct": 6.0, "open_pct": 4.0}, NOT_ASSESSED),
    ("stalls-aperiodic", {"n_stalls": 4.0, "open_pct": 9.9}, OK),
    ("stalls-aperiodic", {"stalled_pct": 6.0, "open_pct": 4.0, "p95_pct": 49.9}, OK),
    ("stalls-aperiodic", {"stalled_pct": 5.0, "stalled_s": 180.0, "unclear_s": 190.0}, OK),
    ("stalls-aperiodic", {"stalled_pct": 5.0, "stalled_s": 180.0, "unclear_s": 200.0}, NOT_ASSESSED),
    ("stalls-aperiodic", {"p95_pct": 49.9, "unclear_s": 3600.0}, OK),
    ("stalls-aperiodic", {"p95_pct": 49.9}, OK),
    ("stalls-aperiodic", {"n_stalls": 4.0}, OK),
    ("stalls-aperiodic", {"acf": 0.5, "regular_pct": 50.0, "n_dips": 5.0, "lost_pct": 5.0}, OK),
    ("stalls-aperiodic", {"acf": 0.5, "regular_pct": 50.0, "n_dips": 4.0, "lost_pct": 5.0}, WARNING),
    ("stalls-aperiodic", {"acf": 0.5, "regular_pct": 50.0, "n_dips": 5.0, "lost_pct": 4.9}, WARNING),
    ("idle-before-work", {"lead_s": 1200.0}, OK),
    ("idle-before-work", {"lead_mib": 2000.0}, WARNING),
    ("idle-before-work", {"lead_mib": 1999.0}, NOTE),
    ("idle-before-work", {"lead_s": NAN}, NOT_APPLICABLE),
    ("idle-after-work", {"trail_s": 600.0}, OK),
    ("idle-after-work", {"trail_mib": 2000.0}, WARNING),
    ("idle-between-work", {"longest_between_s": 600.0}, OK),
    ("idle-between-work", {"between_pct": 10.0}, WARNING),
    ("idle-between-work", {"between_mib": 2000.0}, WARNING),
    ("idle-between-work", {"between_mib": 1999.0}, NOTE),
    ("idle-between-work", {"between_s": NAN, "longest_between_s": NAN}, NOT_APPLICABLE),
    ("idle-between-work", {"has_trials": True}, NOT_APPLICABLE),
    ("idle-between-work", {"longest_between_s": 600.0, "sampling_period_s": 60.0}, OK),
    ("idle-between-work", {"longest_between_s": 600.0, "sampling_period_s": 61.0}, NOT_ASSESSED),
    ("gpu-allocated-idle", {"longest_allocated_idle_s": 600.0}, OK),
    ("gpu-allocated-idle", {"longest_allocated_idle_s": NAN, "allocated_idle_s": NAN}, NOT_ASSESSED),
    ("gpu-level-shift", {"fall_pct": 19.9}, OK),
    ("gpu-level-shift", {"fall_s": 99.0}, OK),
    ("gpu-level-shift", {"before_s": 11.0}, OK),
    ("gpu-level-shift", {"fall_pct": NAN, "n_segments": 0.0}, NOT_ASSESSED),
    ("cpu-bound-input", {"starved_pct": 49.9}, NOTE),
    ("cpu-bound-input", {"starved_pct": 49.9, "soft_starved_pct": 49.9}, OK),
    ("cpu-bound-input", NOT_STARVED, OK),
    ("cpu-bound-input", {**NOT_STARVED, "full_starved_pct": 50.0}, NOTE),
    ("cpu-bound-input", {**NOT_STARVED, "most_full_starved_pct": 49.9}, OK),
    ("cpu-bound-input", {**NOT_STARVED, "most_full_starved_pct": 50.0}, NOT_ASSESSED),
    (
        "cpu-bound-input",
        {**NOT_STARVED, "most_full_starved_pct": 50.0, "mean_pct": 40.0, "stated_wait_pct": 29.9},
        OK,
    ),
    ("cpu-bound-input", {"host_s": 59.0}, NOT_ASSESSED),
    ("cpu-bound-input", {"mean_pct": 40.0, "stated_wait_pct": 29.9}, OK),
    ("cpu-bound-input", {"mean_pct": 40.0, "stated_wait_pct": 30.0}, WARNING),
    ("cpu-bound-input", {"stated_wait_pct": 0.0}, WARNING),
    ("cpu-bound-input", {"mean_pct": 40.0, "stated_wait_pct": 29.9, "host_s": 59.0}, NOT_ASSESSED),
    ("cpu-bound-input", {"starved_pct": NAN, "soft_starved_pct": NAN}, NOT_ASSESSED),
    ("io-wait", {"io_starved_pct": 49.9}, OK),
    ("io-wait", {"io_starved_pct": 49.9, "io_wait_pct": 50.0, "stated_wait_pct": 25.0}, WARNING),
    ("io-wait", {"io_starved_pct": 49.9, "io_wait_pct": 50.0, "stated_wait_pct": 24.9}, OK),
    ("io-wait", {"io_starved_pct": 49.9, "io_wait_pct": 49.9, "stated_wait_pct": 25.0}, OK),
    ("io-wait", {"io_starved_pct": 49.9, "io_wait_pct": 50.0}, OK),
    ("io-wait", {"io_starved_pct": NAN}, NOT_ASSESSED),
    ("io-wait", {"io_starved_pct": 49.9, "io_soft_starved_pct": 50.0}, NOTE),
    ("io-wait", {"io_starved_pct": 49.9, "io_soft_starved_pct": 49.9}, OK),
    ("io-wait", {"io_starved_pct": 0.0, "io_soft_starved_pct": 50.0, "mean_pct": 40.0, "stated_wait_pct": 30.0}, NOTE),
    ("io-wait", {"io_starved_pct": 0.0, "io_soft_starved_pct": 50.0, "mean_pct": 40.0, "stated_wait_pct": 29.9}, OK),
    ("io-wait", {"io_starved_pct": 49.9, "most_io_soft_starved_pct": 50.0}, NOT_ASSESSED),
    ("io-wait", {"io_starved_pct": 49.9, "most_io_soft_starved_pct": 49.9}, OK),
    ("io-wait", {"io_starved_pct": 49.9, "io_soft_starved_pct": 49.9, "most_io_soft_starved_pct": 50.0}, OK),
    (
        "io-wait",
        {"io_starved_pct": 0.0, "most_io_soft_starved_pct": 50.0, "mean_pct": 40.0, "stated_wait_pct": 29.9},
        OK,
    ),
    ("batch-or-kernels-small", {"p95_pct": 70.0}, OK),
    ("batch-or-kernels-small", {"p95_used_pct": 70.0}, OK),
    ("batch-or-kernels-small", {"p95_used_pct": NAN}, NOT_ASSESSED),
    ("batch-or-kernels-small", {"power_ratio": 0.35}, OK),
    ("batch-or-kernels-small", {"power_ratio": NAN}, WARNING),
    ("batch-or-kernels-small", {"cv": 0.5}, OK),
    ("batch-or-kernels-small", {"p95_cpu_pct": 70.0, "least_p95_cpu_pct": 70.0}, OK),
    ("batch-or-kernels-small", {"p95_cpu_pct": NAN, "least_p95_cpu_pct": 70.0}, OK),
    ("batch-or-kernels-small", {"p95_cpu_pct": 70.0}, NOT_ASSESSED),
    ("batch-or-kernels-small", {"p95_cpu_pct": NAN}, NOT_ASSESSED),
    ("batch-or-kernels-small", {"p95_cpu_pct": NAN, "least_p95_cpu_pct": NAN}, NOT_ASSESSED),
    ("batch-or-kernels-small", {"work_s": 59.0}, OK),
    ("batch-or-kernels-small", {"host_s": 59.0}, NOT_ASSESSED),
    ("batch-or-kernels-small", {"host_s": 60.0}, WARNING),
    ("batch-or-kernels-small", {"mean_pct": 40.0, "stated_wait_pct": 29.9}, WARNING),
    ("batch-or-kernels-small", {"mean_pct": 40.0, "stated_wait_pct": 30.0}, OK),
    ("launch-bound", {"mean_pct": 29.9}, OK),
    ("launch-bound", {"mean_pct": 90.0}, OK),
    ("launch-bound", {"hot_pct": 79.9}, OK),
    ("launch-bound", {"power_ratio": 0.35}, OK),
    ("launch-bound", {"power_ratio": 0.5, "least_power_ratio": 0.34}, NOT_ASSESSED),
    ("launch-bound", {"power_ratio": 0.5, "least_power_ratio": 0.35}, OK),
    ("launch-bound", {"cv": 0.3}, OK),
    ("launch-bound", {"hot_pct": NAN}, NOT_ASSESSED),
    ("gpu-busy-but-light", {"busy_power_ratio": 0.35}, OK),
    ("gpu-busy-but-light", {"busy_power_ratio": NAN}, NOT_ASSESSED),
    ("gpu-busy-but-light", {"busy_power_ratio": 0.5, "least_busy_power_ratio": 0.34}, NOT_ASSESSED),
    ("gpu-busy-but-light", {"busy_power_ratio": 0.5, "least_busy_power_ratio": 0.34, "busy_sm_pct": 50.0}, OK),
    ("gpu-busy-but-light", {"busy_power_ratio": 0.5, "least_busy_power_ratio": 0.35}, OK),
    ("gpu-busy-but-light", {"busy_s": 299.0}, NOT_APPLICABLE),
    ("gpu-busy-but-light", {"busy_sm_pct": 49.9}, NOTE),
    ("gpu-busy-but-light", {"busy_sm_pct": 50.0}, OK),
    ("sm-activity-low", {"busy_sm_pct": 50.0}, OK),
    ("sm-activity-low", {"busy_sm_pct": NAN}, NOT_APPLICABLE),
    ("sm-activity-low", {"busy_s": 299.0}, NOT_APPLICABLE),
    ("tensor-cores-unused", {"busy_tensor_pct": 1.0}, OK),
    ("tensor-cores-unused", {"busy_tensor_pct": NAN}, NOT_APPLICABLE),
    ("tensor-cores-unused", {"busy_sm_pct": 49.9}, OK),
    ("tensor-cores-unused", {"busy_sm_pct": NAN}, OK),
    ("tensor-cores-unused", {"busy_s": 299.0}, NOT_APPLICABLE),
    ("loader-slow", {"avg_ms": 30.0}, OK),
    ("loader-slow", {"of_step_pct": 5.0}, OK),
    ("loader-slow", {"of_step_pct": 5.1}, NOTE),
    ("loader-slow", {"of_step_pct": 25.0}, WARNING),
    ("loader-slow", {"n_lines": 0, "avg_ms": NAN}, NOT_ASSESSED),
    ("loader-workers-cores", {"of_cores_pct": 70.0}, OK),
    ("loader-workers-cores", {"of_cores_pct": 200.0}, OK),
    ("loader-workers-cores", {"of_cores_pct": 200.1}, NOTE),
    ("loader-workers-cores", {"of_cores_pct": NAN}, NOT_ASSESSED),
    ("loader-workers-cores", {"of_step_pct": 5.0}, OK),
    ("loader-workers-cores", {"of_step_pct": 5.1}, NOTE),
    ("loader-workers-cores", {"avg_ms": 0.0}, OK),
    ("loader-workers-cores", {"avg_ms": 0.2}, NOTE),
    ("loader-workers-cores", {"of_cores_pct": 200.1, "of_step_pct": 0.0}, NOTE),
    ("memory-leak", {"slope_pct_h": 1.0}, OK),
    ("memory-leak", {"p_rise": 0.01}, OK),
    ("memory-leak", {"rise_pct": 4.9}, OK),
    ("memory-leak", {"slope_pct_h": NAN}, NOT_ASSESSED),
    ("memory-residual", {"residual_mib": 299.0}, OK),
    ("memory-residual", {"residual_mib": NAN, "residual_high_mib": 299.0}, OK),
    ("memory-residual", {"residual_mib": NAN, "residual_high_mib": 300.0}, NOT_ASSESSED),
    ("memory-residual", {"ended": False}, NOT_ASSESSED),
    ("memory-residual", {"n_open": 1}, NOT_APPLICABLE),
    ("thermal-throttling", {"thermal_pct": 5.0}, OK),
    ("thermal-throttling", {"thermal_pct": NAN}, NOT_ASSESSED),
    ("thermal-throttling", {"thermal_pct": NAN, "warm_low_pct": 5.1}, WARNING),
    ("thermal-throttling", {"busy_s": 59.0}, NOT_APPLICABLE),
    ("power-throttling", {"capped_low_pct": 5.0}, OK),
    ("power-throttling", {"capped_low_pct": NAN}, NOT_ASSESSED),
    ("clocks-low", {"busy_clock_mhz": 600.0}, OK),
    ("clocks-low", {"uncapped_low_pct": 49.9}, OK),
    ("clocks-low", {"uncapped_low_pct": NAN}, NOT_ASSESSED),
    ("temperature-high", {"hot_s": 60.0}, OK),
    ("temperature-high", {"hot_s": NAN}, NOT_ASSESSED),
    ("power-fault-throttling", {"frozen_cap_s": 60.0}, OK),
    ("power-fault-throttling", {"frozen_cap_s": NAN}, NOT_ASSESSED),
    ("gpu-lost", {"n_lost": 0}, OK),
    ("log-silent", {"silent_s": 599.0}, OK),
    ("log-silent", {"due_s": 301.0}, OK),
    ("log-silent", {"due_s": NAN}, OK),
    ("log-silent", {"has_trials": True}, NOT_APPLICABLE),
    ("loss-not-finite", {"n_not_finite": 2.0}, OK),
    ("loss-not-finite", {"n_not_finite": 0.0, "n_never": 1}, NOT_ASSESSED),
    ("loss-not-finite", {"trainings": DIVERGED.assign(rerun="b.log")}, NOTE),
    ("loss-not-finite", {"n_logs": 0, "n_not_finite": 0.0, "has_trials": True}, NOT_APPLICABLE),
    ("training-failed", {"n_failed": 0}, OK),
    ("training-failed", {"n_failed": 0, "n_short": 1}, NOT_ASSESSED),
    ("training-failed", {"n_failed": 0, "n_unended": 1}, NOT_ASSESSED),
    ("training-failed", {"n_logs": 0, "n_failed": 0, "has_trials": True}, NOT_APPLICABLE),
    ("training-failed", {"n_logs": 0, "n_recorded": 1, "n_failed": 0}, OK),
    ("training-failed", {"failed": DIED.assign(outcome="open"), "n_failed": 0, "n_open": 1}, NOTE),
    ("training-failed", {"failed": DIED.assign(by="signal", outcome="outside"), "n_failed": 0, "n_outside": 1}, NOTE),
    ("training-failed", {"failed": DIED.assign(by="signal", outcome="went_on"), "n_failed": 0, "n_went_on": 1}, NOTE),
    ("training-failed", {"failed": DIED.assign(by="exit_code"), "has_trials": True}, WARNING),
    ("training-failed", {"has_unknown_logs": True}, NOT_ASSESSED),
    ("training-failed", {"failed": DIED.assign(by="exit_code"), "has_unknown_logs": True}, CRITICAL),
    ("gpu-hardware-errors", {"n_hardware": 0}, NOT_ASSESSED),
    ("gpu-hardware-errors", {"n_hardware": 0, "has_kernel_log": True}, OK),
    ("gpu-hardware-errors", {"n_hardware": 0, "n_ambiguous": 1, "events": LOST.assign(origin="unclear")}, NOTE),
    ("failures-out-of-memory", {"by_kind": ASSERTS}, OK),
    ("failures-out-of-memory", {"by_kind": ASSERTS, "n_told": 0}, NOT_ASSESSED),
    ("failures-out-of-memory", {"by_kind": ASSERTS, "n_fail": 0}, NOT_APPLICABLE),
    ("failures-out-of-memory", {"by_kind": ASSERTS.assign(n=[0, 9, 9])}, OK),
    ("failures-device-assert", {"by_kind": ASSERTS.assign(n=[9, 0, 9])}, OK),
    ("failures-not-finite", {"by_kind": NANS.assign(n=[0])}, OK),
    ("failures-not-finite", {"n_finished": 100}, NOTE),
    ("failures-not-finite", {"n_finished": 99}, WARNING),
    ("failures-host-killed", {"by_kind": ASSERTS.assign(n=[9, 9, 0])}, OK),
    ("failures-poisoned", {"n_events": 3}, OK),
    ("failures-poisoned", {"n_events": 4, "n_open": 1}, OK),
    ("failures-poisoned", {"n_events": 4, "n_open": 2}, NOT_ASSESSED),
    ("failures-poisoned", {"n_fail": 0, "n_events": 0}, NOT_APPLICABLE),
    ("failures-after-full-memory", {"p_memory": 0.01}, OK),
    ("failures-after-full-memory", {"p_memory": NAN}, NOT_ASSESSED),
    ("failures-after-full-memory", {"fail_before_pct": 84.9}, OK),
    ("failures-bimodal", {"p_one_group": 0.01}, OK),
    ("failures-bimodal", {"long_s": 9.9}, OK),
    ("failures-bimodal", {"p_one_group": NAN}, OK),
    ("failures-bimodal", {"n_fail": 5}, NOT_APPLICABLE),
    ("duplicate-trials", {"n_duplicates": 5}, OK),
    ("duplicate-trials", {"duplicate_worker_h": 0.1}, WARNING),
    ("duplicate-trials", {"n_with_params": 0}, NOT_APPLICABLE),
    ("worst-value-shared", {"worst": SHARED.assign(n_valued=80)}, OK),
    ("worst-value-shared", {"worst": SHARED.assign(n_valued=20, n_worst=2)}, OK),
    ("worst-value-shared", {"worst": SHARED.assign(n_valued=8)}, NOT_ASSESSED),
    ("worst-value-shared", {"worst": SHARED.assign(n_valued=4, other_values_pct=NAN)}, NOT_ASSESSED),
    ("worst-value-shared", {"worst": SHARED.assign(other_values_pct=89.9)}, NOT_ASSESSED),
    ("worst-value-shared", {"worst": SHARED.iloc[:0], "n_undirected": 1}, NOT_ASSESSED),
    ("worst-value-shared", {"worst": SHARED.iloc[:0]}, NOT_APPLICABLE),
    ("trial-duration-outliers", {"outliers": FAR.iloc[:0]}, OK),
    ("trial-duration-outliers", {"outlier_worker_h": 2.5}, WARNING),
    ("trial-duration-outliers", {"outlier_worker_h": 59 / 3600}, OK),
    ("trial-duration-outliers", {"n_timed": 0}, NOT_ASSESSED),
    ("trial-duration-drift", {"drift_p": 0.01}, OK),
    ("trial-duration-drift", {"drift_rho": 0.29}, OK),
    ("trial-duration-drift", {"drift_ratio": 1.19}, OK),
    ("trial-duration-drift", {"drift_ratio": 0.8, "drift_rho": -0.4}, NOTE),
    ("trial-duration-drift", {"n_drift": 19, "drift_p": NAN}, NOT_ASSESSED),
    ("trial-gap-growth", {"gap_p": 0.01}, OK),
    ("trial-gap-growth", {"gap_rho": 0.29}, OK),
    ("trial-gap-growth", {"gap_last_s": 5.0}, OK),
    ("trial-gap-growth", {"gap_first_s": 2.6}, OK),
    ("trial-gap-growth", {"gap_p": NAN, "n_gaps": 19}, NOT_ASSESSED),
    ("study-tail", {"tail_s": 300.0}, OK),
    ("study-tail", {"tail_pct": 10.0}, OK),
    ("study-tail", {"tail_s": NAN}, NOT_ASSESSED),
    ("study-tail", {"peak": 1}, NOT_APPLICABLE),
    ("stated-counts-differ", {"stated": STATED.assign(found=10.0)}, OK),
    ("stated-counts-differ", {"stated": STATED.iloc[:0]}, NOT_APPLICABLE),
    ("rank-missing", {"wait_s": 60.0}, OK),
    ("rank-missing", {"wait_s": NAN}, NOT_ASSESSED),
    ("rank-missing", {"hang": "stuck"}, OK),
    ("rank-missing", {"hang": "open", "unknown_ranks": "1", "undumped_ranks": "1"}, NOT_ASSESSED),
    ("rank-missing", {"hang": "open", "unknown_ranks": "1", "wait_s": 60.0}, OK),
    ("rank-missing", {"hang": "open", "n_dumps": 0}, NOT_ASSESSED),
    ("collective-stuck", {"wait_s": 60.0}, OK),
    ("collective-stuck", {"wait_s": NAN}, NOT_ASSESSED),
    ("collective-stuck", {"hang": "missing"}, OK),
    ("collective-stuck", {"hang": "", "wait_s": NAN}, OK),
    ("collective-mismatch", {"mismatch": ""}, OK),
    ("collective-mismatch", {"mismatch": "", "n_dumps": 0}, NOT_APPLICABLE),
    ("collective-mismatch", {"mismatch": "", "n_unseen": 1}, NOT_ASSESSED),
    ("input-unread", {"n_unread": 0, "unread": UNREAD.iloc[:0]}, NOT_APPLICABLE),
    ("pruned-too-early", {"rho_high": 0.3}, NOT_ASSESSED),
    ("pruned-too-early", {"rho_high": 0.95, "rho_low": 0.71}, OK),
    ("pruned-too-early", {"rho_high": 0.95, "rho_low": 0.7}, NOT_ASSESSED),
    ("pruned-too-early", {"n": 14, "rho_high": NAN, "rho_low": NAN}, NOT_ASSESSED),
    ("pruned-too-early", {"n_pruned": 0}, NOT_APPLICABLE),
    ("sensor-stuck", {"stuck_s": 60.0}, OK),
    ("sensor-stuck", {"stuck_s": NAN}, NOT_ASSESSED),
    ("sampler-slows-down", {"slow_ratio": 1.3}, OK),
    ("sampler-slows-down", {"slow_ratio": NAN}, NOT_APPLICABLE),
    ("placeholder-columns", {"constants": pd.DataFrame(), "n_judged": 1}, OK),
    ("placeholder-columns", {"constants": pd.DataFrame(), "n_judged": 1, "n_blind": 1}, NOT_ASSESSED),
    ("placeholder-columns", {"constants": pd.DataFrame()}, NOT_APPLICABLE),
    ("identity-mixed", {"mixed": pd.DataFrame(columns=["gpu", "kind", "name", "n"])}, OK),
]


def made(rule: str, changed: dict[str, Any] | None = None) -> Any:
    """The faulty profile of that rule with changes."""
    kind, values, _ = FAULTS[rule]
    values = {**values, **(changed or {})}
    row = kind.tables().get("per_gpu")
    columns = {name: value for name, value in values.items() if row and name in row.declared()}
    fields = {name: value for name, value in values.items() if name not in columns or name in kind.facts()}
    return profile(kind, {"0": columns}, **fields)


@pytest.mark.parametrize("rule", FAULTS)
def test_just_past_every_threshold(rule: str) -> None:
    found = verdict(RULE[rule], made(rule))
    assert (found.status, found.severity) == (FOUND, FAULTS[rule][2])
    assert found.summary.endswith(".")
    assert found.margin is None or found.margin >= 0


@pytest.mark.parametrize(("rule", "changed", "expected"), SHORT, ids=lambda x: str(x)[:60])
def test_just_short_of_a_threshold(rule: str, changed: dict[str, Any], expected: Status | Severity) -> None:
    one = verdict(RULE[rule], made(rule, changed))
    if isinstance(expected, Severity):
        assert (one.status, one.severity) == (FOUND, expected)
    else:
        assert one.status is expected
        assert expected is not NOT_ASSESSED or (one.reason and one.remedy)


def test_case_1_workers_are_configured_and_not_measured() -> None:
    loader = made("loader-workers-cores", {"workers_per_trial": 2.0, "parallel": 4.0, "n_workers": 8.0, "cores": 12.0})
    found = verdict(RULE["loader-workers-cores"], replace(loader, of_cores_pct=100 * 8 / 12))
    assert found.summary == (
        "2 loader workers for each of 4 trials make 8 on 12 cores: 67 % configured (not CPU load), below "
        "the usual 70–200 %."
    )


@pytest.mark.parametrize(("stated_wait_pct", "both"), [(NAN, True), (3.0, False)])
def test_small_steps_and_a_slow_storage_are_both_said_unless_waits_are_stated(
    stated_wait_pct: float, both: bool
) -> None:
    changed = {"mean_pct": 40.0, "stated_wait_pct": stated_wait_pct}
    found = verdict(RULE["batch-or-kernels-small"], made("batch-or-kernels-small", changed))
    assert ("or wait for storage" in found.summary, "one batch that stays" in found.remedy) == (both, both)


def test_io_wait_of_some_process_is_not_told_as_the_wait_of_the_gpu() -> None:
    note = verdict(RULE["io-wait"], made("io-wait", {"io_starved_pct": 49.9, "io_soft_starved_pct": 50.0}))
    assert (note.severity, note.name) == (NOTE, "Some process on the host waits for I/O beside a GPU with little work")
    assert verdict(RULE["io-wait"], made("io-wait", {})).name == "The GPU waits for storage"


def test_the_mean_of_many_cores_is_not_told_as_an_idle_cpu() -> None:
    changed = {"p95_cpu_pct": NAN, "least_p95_cpu_pct": 1.6}
    one = verdict(RULE["batch-or-kernels-small"], made("batch-or-kernels-small", changed))
    assert "1.6 % of all CPU cores together may be one core that is full" in one.reason


@pytest.mark.parametrize(("most_pct", "first"), [(50.0, True), (49.9, False)])
def test_more_workers_are_not_advised_before_the_own_cores_are_looked_at(most_pct: float, first: bool) -> None:
    one = verdict(RULE["cpu-bound-input"], made("cpu-bound-input", {"most_full_starved_pct": most_pct}))
    assert one.status is Status.FOUND and one.remedy.startswith("See in the job") is first


def test_case_5_names_the_command_that_would_tell() -> None:
    one = verdict(RULE["batch-or-kernels-small"], made("batch-or-kernels-small", {"p95_cpu_pct": NAN}))
    assert "a slow CPU both look like that" in one.reason and RECORD_COMMAND in one.remedy
