from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from smallruns import T0, gpu, gpus, run, trials

from gpudiag.errors import NotMeasurable
from gpudiag.manifest import GpuOverride
from gpudiag.measures.memory import measure_memory


def test_figures_by_hand() -> None:
    used = [1000.0] * 50 + [5000.0] * 49 + [9000.0]
    memory = measure_memory(run(gpu=gpu(range(100), mem_used_mib=used, mem_total_mib=10000.0)))
    row = memory.per_gpu.loc["0"]
    assert row["mean_mib"] == pytest.approx((50 * 1000 + 49 * 5000 + 9000) / 100)
    assert (row["p50_mib"], row["p99_mib"], row["max_mib"], row["min_mib"]) == (1000, 5000, 9000, 1000)
    assert (row["p99_used_pct"], row["max_used_pct"], row["headroom_mib"]) == pytest.approx((50, 90, 1000))
    assert row["growth_factor"] == pytest.approx(9000 / 8000)
    assert row["max_at"] == T0 + pd.Timedelta("99s")
    assert (memory.max_used_pct, memory.headroom_mib) == pytest.approx((90, 1000))


def test_total_from_the_data_sheet_and_from_the_user() -> None:
    table = gpu(range(10), mem_used_mib=np.linspace(0, 12288, 10))
    named = gpus(gpu=["0"], name=["NVIDIA GeForce RTX 4090"])
    sheet = measure_memory(run(gpu=table, gpus=named)).per_gpu.loc["0"]
    assert (sheet["total_mib"], sheet["total_source"], sheet["max_used_pct"]) == (24576, "data sheet", 50)
    stated = run(gpu=table, gpus=named, overrides={"0": GpuOverride(mem_total_mib=16384)})
    assert measure_memory(stated).per_gpu.at["0", "max_used_pct"] == pytest.approx(75)


def test_unknown_total_leaves_shares_unknown() -> None:
    row = measure_memory(run(gpu=gpu(range(10), mem_used_mib=5.0))).per_gpu.loc["0"]
    assert row["mean_mib"] == pytest.approx(5)
    assert all(math.isnan(row[name]) for name in ("max_used_pct", "headroom_mib", "growth_factor", "total_mib"))


def test_memory_that_does_not_move_bounds_no_growth() -> None:
    row = measure_memory(run(gpu=gpu(range(10), mem_used_mib=500.0, mem_total_mib=6141.0))).per_gpu.loc["0"]
    assert math.isnan(row["growth_factor"])


def test_more_than_the_total_is_set_aside() -> None:
    used = [100.0, 100.0, 99999.0, 100.0]
    row = measure_memory(run(gpu=gpu(range(4), mem_used_mib=used, mem_total_mib=6141.0))).per_gpu.loc["0"]
    assert (row["max_mib"], row["n_rejected"]) == (100, 1)


def test_a_gpu_without_memory_has_a_row_of_nan() -> None:
    table = pd.concat([gpu(range(9), "0", mem_used_mib=5.0), gpu(range(9), "1", util_pct=5.0)])
    memory = measure_memory(run(gpu=table))
    assert memory.per_gpu["max_util_pct"].tolist() == [pytest.approx(math.nan, nan_ok=True), 5]
    assert memory.per_gpu.index.tolist() == ["0", "1"]
    assert math.isnan(memory.per_gpu.at["1", "mean_mib"])


def test_absent_memory_cannot_be_measured() -> None:
    with pytest.raises(NotMeasurable, match="no mem_used_mib"):
        measure_memory(run(gpu=gpu(range(9), util_pct=5.0)))


@pytest.mark.parametrize(("most", "unseen"), [(3000.0, 2), (9500.0, 0)])
def test_peaks_that_only_failures_show(most: float, unseen: int) -> None:
    table = gpu(range(0, 300, 5), mem_used_mib=[500.0] * 59 + [most], mem_total_mib=10000.0)
    rows = [("FAIL", 0, 50), ("COMPLETE", 60, 100), ("FAIL", 110, 140), ("FAIL", 150, 160)]
    texts = ["CUDA out of memory. Tried to allocate 2.00 GiB", None, "OutOfMemoryError: CUDA out of memory", "KeyError"]
    assert measure_memory(run(gpu=table, trials=trials(rows, detail=texts))).n_oom_unseen == unseen
    assert measure_memory(run(gpu=table)).n_oom_unseen == 0
