"""A trace among the files of a run: its profiled steps stand in table ``profiled``, and it disturbs nothing."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pandas as pd
import pytest
from test_nsight import exported
from writtentrace import BASE_US, SHARES, WrittenTrace, training

import gpudiag as gd
from gpudiag.readers._traces.breakdown import IDLE_STATES


@pytest.mark.slow
def test_a_trace_beside_a_run_is_read(samples: Path, tmp_path: Path) -> None:
    for name in ("gpu.csv", "optuna.db"):
        shutil.copy(samples / "healthy" / name, tmp_path)
    plain = gd.load_run(tmp_path)
    training(3).write(tmp_path / "rank0.pt.trace.json.gz")
    run = gd.load_run(tmp_path)
    (record,) = [one for one in run.info.inputs if one.path.endswith("rank0.pt.trace.json.gz")]
    assert (record.kind, record.reader, record.rows, record.error) == ("artifacts", "torch-profiler", 1, None)
    (row,) = run.profiled.to_dict("records")
    assert {name: row[name] for name in SHARES} == pytest.approx(SHARES)
    assert (row["n_steps"], row["rank"], row["world_size"], row["step_s"]) == (3, 1, 4, pytest.approx(1e-3))
    assert row["time"] == pd.Timestamp(BASE_US, unit="us", tz="UTC")
    assert run.gpu.equals(plain.gpu) and run.trials.equals(plain.trials)


def test_a_trace_without_operators_tells_nothing_of_the_host(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.step(1, 0, 100)
    made.on_gpu("k", 10, 60)
    made.on_host("cuda_runtime", "cudaLaunchKernel", 5, 10)
    (row,) = gd.load_run(made.write(tmp_path / "t.json")).profiled.to_dict("records")
    assert row["idle_pct"] == pytest.approx(50.0)
    assert all(math.isnan(row.get(name, math.nan)) for name in IDLE_STATES)


def test_a_trace_without_work_of_a_gpu_is_said(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.on_host("cpu_op", "aten::add", 0, 5)
    with pytest.raises(gd.InputError, match="no work of a GPU"):
        gd.load_run(made.write(tmp_path / "t.json"))


def test_a_report_of_nsight_systems_is_read_the_same(tmp_path: Path) -> None:
    made = training(3)
    chrome, nsight = (gd.load_run(path).profiled for path in (
        made.write(tmp_path / "t.json"), exported(made, tmp_path / "report.sqlite")
    ))  # fmt: skip
    states = ["n_steps", "step_s", "compute_pct", "copy_pct", "idle_pct"]
    pd.testing.assert_frame_equal(chrome[states], nsight[states], rtol=1e-6)
