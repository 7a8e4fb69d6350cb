"""Sets of thresholds of other tools, for ``diagnose(run, preset="jobstats")``."""

from __future__ import annotations

from collections.abc import Mapping

from gpudiag.errors import ConfigError, expected, nearest

PRESETS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    # jobstats config.py and job_defense_shield (Princeton): red at 15 %, alert below 25 %, target 50 %, runs from
    # 30 minutes on; unused GPU at 0 %; 80 % of the samples needed.
    "jobstats": {
        "gpu-unused": {"max_util_pct": 0.0, "min_periods": 10.0},
        "gpu-low-utilization": {"very_low_pct": 15.0, "low_pct": 25.0, "below_par_pct": 50.0, "min_run_s": 1800.0},
        "sampling-coverage": {"min_pct": 80.0},
    },
    # SageMaker Debugger profiler rules, defaults of smdebug_rulesconfig: LowGPUUtilization(70, 10), CPUBottleneck(50,
    # 10, 90), IOBottleneck(50, 10, 50), BatchSize(70, 70, 70), Dataloader 70-200 %, GPUMemoryIncrease(5),
    # MaxInitializationTime(20 minutes).
    "sagemaker": {
        "gpu-fluctuating": {"high_pct": 70.0, "low_pct": 10.0},
        "gpu-idle-beside-busy": {"idle_pct": 10.0},
        "cpu-bound-input": {"min_starved_pct": 50.0, "min_soft_pct": 50.0},
        "io-wait": {"min_starved_pct": 50.0},
        "batch-or-kernels-small": {"max_p_util_pct": 70.0, "max_p_memory_pct": 70.0, "max_p_cpu_pct": 70.0},
        "loader-workers-cores": {"min_cores_pct": 70.0, "max_cores_ratio": 2.0},
        "memory-leak": {"min_rise_pct": 5.0},
        "idle-before-work": {"max_lead_s": 1200.0},
    },
    # TraceML, src/traceml_ai/diagnostics/{system,step_time}/policy.py (github.com/traceopt-ai/traceml): utilization low
    # below 30 %, moderate to 70 %; peak memory low below 30 %, high from 80 % on; input share of a step 10 % and 20 %.
    "traceml": {
        "gpu-low-utilization": {"low_pct": 30.0, "below_par_pct": 70.0},
        "memory-near-limit": {"high_pct": 80.0},
        "memory-headroom": {"low_pct": 30.0},
        "loader-slow": {"max_step_pct": 10.0, "severe_step_pct": 20.0},
    },
}
"""By name: thresholds by rule id. What a preset does not name keeps gpudiag's default."""


def preset(name: str) -> Mapping[str, Mapping[str, float]]:
    """The thresholds of that name; none for ''. Raises ConfigError with the nearest name."""
    if not isinstance(name, str):
        raise expected("the name of a preset", name)
    if name and name not in PRESETS:
        raise ConfigError(f"there is no preset '{name}'; {nearest(name, PRESETS)}")
    return PRESETS[name] if name else {}
