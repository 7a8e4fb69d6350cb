"""Uneven work: of what it is the cause, and what is said of GPUs that are not alike."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small_profiles import profile, verdict

import gpudiag as gd
from gpudiag.measures.balance import BalanceProfile, measure_balance
from gpudiag.rules._engine.verdict import Severity, Verdict
from gpudiag.rules.balance import gpu_imbalance
from gpudiag.run import Run
from gpudiag.schema import GPU, GPUS, conform

T0 = pd.Timestamp("2026-03-10 08:00", tz="UTC")


def steady(*means: float, names: tuple[str, ...] = ()) -> Run:
    """GPUs at these means for an hour, up and down by a percent."""
    timestamps = T0 + pd.to_timedelta(np.arange(0, 3600, 10), unit="s")
    logs = [
        pd.DataFrame({"time": timestamps, "gpu": str(i), "util_pct": mean + np.arange(360) % 2})
        for i, mean in enumerate(means)
    ]
    listed = pd.DataFrame({"gpu": [str(i) for i in range(len(names))], "name": list(names)})
    return Run(gpu=conform(pd.concat(logs), GPU), **({"gpus": conform(listed, GPUS)} if names else {}))


def found(run: Run) -> dict[str, Verdict]:
    return {one.rule: one for one in gd.diagnose(run).findings}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("means", "explained"),
    [((98.0, 12.0), True), ((60.0, 12.0), True), ((95.0, 94.0, 12.0), True), ((20.0, 3.0), False)],
)
def test_work_that_others_have_explains_a_gpu_with_little(means: tuple[float, ...], explained: bool) -> None:
    """Where all GPUs are low, the load is, however it is spread."""
    made = found(steady(*means))
    cause = "gpu-imbalance" if explained else None
    assert {"gpu-imbalance", "gpu-low-utilization"} <= set(made) and made["gpu-low-utilization"].caused_by == cause
    assert made["gpu-imbalance"].severity is Severity.WARNING


def test_gpus_of_two_models_are_named() -> None:
    rows = {"0": {"mean_pct": 99.0, "model": "NVIDIA A100-SXM4-80GB"}, "1": {"mean_pct": 12.0, "model": "Tesla T4"}}
    uneven = {"n_gpus": 2, "jain": 0.62, "jain_least": 0.62}
    one = verdict(gpu_imbalance, profile(BalanceProfile, rows, **uneven))
    assert one.severity is Severity.NOTE
    assert "different models (Tesla T4, NVIDIA A100-SXM4-80GB)" in one.summary
    alike = {gpu: {**row, "model": "Tesla T4"} for gpu, row in rows.items()}
    same = verdict(gpu_imbalance, profile(BalanceProfile, alike, **uneven))
    assert same.severity is Severity.WARNING and "models" not in same.summary


def test_what_is_to_be_done_names_trials_only_where_there_are_some() -> None:
    rows, uneven = {"0": {"mean_pct": 94.0}, "1": {"mean_pct": 28.0}}, {"n_gpus": 2, "jain": 0.77, "jain_least": 0.77}
    for n_tasks, word in ((40.0, "each trial"), (float("nan"), "In one training")):
        assert word in verdict(gpu_imbalance, profile(BalanceProfile, rows, **uneven, n_tasks=n_tasks)).remedy


def test_names_and_times_are_those_of_the_record() -> None:
    table = measure_balance(steady(90.0, 20.0, names=("NVIDIA L4", "Tesla T4"))).per_gpu
    assert table["model"].tolist() == ["NVIDIA L4", "Tesla T4"] and table["observed_s"].tolist() == [3600.0, 3600.0]
    assert measure_balance(steady(90.0, 20.0)).per_gpu["model"].tolist() == ["", ""]
