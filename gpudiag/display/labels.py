"""What the numbers of a finding are called: every name that a rule gives as evidence or place, in words.

The unit is in the name and is written with the value, so that it is not in the words.
"""

from __future__ import annotations

LABELS = {
    # where
    "gpu": "GPU", "trial": "trial", "time": "at", "start": "from", "duration_s": "lasting", "max_at": "peak at",
    "trials_failed_within": "trials that failed meanwhile", "columns": "columns",
    # utilization
    "mean_pct": "mean utilization", "max_pct": "highest utilization", "p5_pct": "utilization, 5th percentile",
    "p95_pct": "utilization, 95th percentile", "idle_pct": "time idle", "idle_gpu_h": "fully idle",
    "observed_s": "observed for", "expected_s": "length of the run", "coverage_pct": "observed part",
    "busiest_mean_pct": "mean of the busiest GPU", "busiest_max_pct": "highest of the busiest GPU",
    "max_util_pct": "highest utilization", "share_pct": "share of the time", "busy_s": "busy for",
    "jain": "Jain's index (1 is even)", "gini": "Gini coefficient (0 is even)", "least_pct": "least busy GPU",
    "jain_least": "Jain's index, least used GPU against the others",
    "most_pct": "busiest GPU", "fall_pct": "fall of utilization", "fall_s": "time after the fall",
    "first_pct": "utilization before", "last_pct": "utilization after", "n_segments": "levels found",
    "block_s": "averaged over", "foreign_s": "busy without a trial", "foreign_of_no_trial_pct": "part of that time",
    "outside_pct": "observed outside the run",
    # stalls
    "period_s": "every", "width_s": "each lasting", "depth_pct": "deep by", "n_dips": "dips seen",
    "acf": "autocorrelation at the period", "lost_pct": "utilization lost", "stalled_pct": "time stalled",
    "stalled_s": "stalled for", "n_stalls": "stalls", "longest_stall_s": "longest stall",
    "allocated_idle_s": "memory held while idle", "longest_allocated_idle_s": "longest at a stretch",
    "held_mib": "memory held",
    # feed
    "starved_pct": "GPU under 10 % beside a hot core", "soft_starved_pct": "GPU under 50 % beside a hot core",
    "io_starved_pct": "GPU under 10 % beside I/O wait", "hot_pct": "time with it", "hot_s": "hot for",
    "host_s": "host observed for", "p95_cpu_pct": "CPU, 95th percentile", "p95_used_pct": "memory, 95th percentile",
    "cv": "variation (standard deviation / mean)", "power_ratio": "part of the power range",
    "busy_power_ratio": "part of the power range while busy", "busy_sm_pct": "SM activity while busy",
    "avg_ms": "wait for the loader", "worst_ms": "longest wait", "step_ms": "time of a step",
    "of_step_pct": "wait in a step", "n_lines": "log lines that say so", "n_workers": "loader workers in all",
    "cores": "CPU cores", "of_cores_pct": "workers to cores",
    # memory
    "max_used_pct": "memory at the peak", "p99_used_pct": "memory, 99th percentile", "headroom_mib": "left at the peak",
    "growth_factor": "times as much would fit", "slope_pct_h": "growth of the floor",
    "rise_pct": "growth, of the total",
    "rise_mib": "growth", "p_rise": "chance of such growth by luck (p)", "span_s": "over", "residual_mib": "left over",
    "before_mib": "before the first trial", "after_mib": "after the last trial", "after_s": "observed after it",
    "fail_before_pct": "memory before failures", "ok_before_pct": "memory before other ends",
    "p_memory": "chance of this difference by luck (p)", "full_pct": "failures at 95 % or more",
    # power, clocks, heat
    "max_all_w": "highest reading", "plausible_w": "highest plausible", "limit_w": "limit of the board",
    "mean_all_w": "mean of all readings", "mean_w": "mean of the plausible ones", "n_rejected": "readings set aside",
    "rejected_pct": "part set aside", "longest_rejected_s": "longest at a stretch",
    "over_limit_pct": "time over the limit",
    "rejected_capped_pct": "of these while power was capped", "frozen_cap_s": "frozen while capped",
    "max_temp_c": "highest temperature", "busy_clock_mhz": "clock while busy", "max_clock_mhz": "highest clock",
    "clock_ratio": "clock to the peers'", "low_pct": "busy time at a low clock", "stuck_s": "stuck for",
    # events
    "detail": "log line", "xids": "Xid codes", "n_hardware": "hardware errors", "n_lost": "losses",
    # trials at once
    "configured": "configured", "effective": "at once, effectively", "effective_low": "at once, at least",
    "effective_high": "at once, at most", "peak": "at the peak", "peak_closed": "at the peak, ended trials only",
    "above_configured_s": "time above", "handover_pct": "hand-overs without a gap", "median_gap_s": "median gap",
    "mean_gap_s": "mean gap", "gap_slot_h": "in gaps", "gap_first_s": "gap at first", "gap_last_s": "gap at last",
    "gap_rho": "rank correlation with the order", "startup_share_pct": "start-up, of slot time",
    "startup_only_pct": "GPU with start-ups alone", "startup_law_pct": "the same if starts were independent (F^k)",
    "startup_median_s": "median start-up", "n_startups": "start-ups seen", "parallel": "trials at once",
    "tail_s": "last trial alone", "tail_pct": "of the whole study", "tail_idle_slot_h": "slots idle meanwhile",
    # failures
    "fail_pct": "failed", "fail_low_pct": "failed, at least", "fail_high_pct": "failed, at most",
    "n_fail": "failed trials",
    "n_finished": "finished trials", "fail_streak": "longest streak of failures",
    "p_fail_streak": "chance of such a streak by luck (p)", "fail_slot_h": "time of failed trials",
    "orphans": "dead, at least", "n_running": "RUNNING", "n": "trials", "n_events": "separate events",
    "followers": "followed another", "short_n": "fast failures", "short_s": "after about", "long_n": "slow failures",
    "long_s": "those after about", "split_s": "border between", "ashman_d": "distance of the kinds (Ashman's D)",
    # search
    "n_outliers": "trials", "longest_s": "the longest", "median_s": "usual", "drift_ratio": "last third to first",
    "drift_rho": "rank correlation with the order", "drift_p": "chance of such a drift by luck (p)",
    "n_duplicates": "repeated", "duplicate_slot_h": "time of the repeats", "stated": "written down",
    "found": "in the data", "n_pruned": "pruned trials", "of_decided_pct": "of COMPLETE + PRUNED",
    "of_decided_low_pct": "of these, at least", "of_decided_high_pct": "of these, at most",
    "of_finished_pct": "of finished trials", "of_all_pct": "of all trials", "cost_pct": "of the trial time",
    "at_first_pct": "at the first possible step", "median_step": "median step of the cut", "first_step": "earliest cut",
    "before_possible": "too early", "config_first_report": "first possible report", "cut_step": "step of the cut",
    "rho": "rank correlation, early to final", "rho_low": "rank correlation, at least",
    "rho_high": "rank correlation, at most",
    # the record
    "n_gaps": "gaps", "gap_pct": "time in gaps", "longest_gap_s": "longest gap", "busy_period_s": "period while busy",
    "idle_period_s": "period while idle", "slow_ratio": "slower by", "conflicts": "contradictions", "name": "name",
    "what": "what changed", "offset_s": "offset found", "applied_s": "offset applied", "confidence": "confidence",
}  # fmt: skip
"""By name. A test asks for one for every name that the rules use."""
