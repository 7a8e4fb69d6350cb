"""A trace among the files of a run is named, with the command that reads it, and disturbs nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import gpudiag as gd

TRACE = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
    "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.0, "dur": 2.0, "args": {}}],
}


def test_a_trace_beside_a_run_is_named(samples: Path, tmp_path: Path) -> None:
    for name in ("gpu.csv", "optuna.db"):
        if (samples / "healthy" / name).exists():
            shutil.copy(samples / "healthy" / name, tmp_path)
    (tmp_path / "rank0.pt.trace.json").write_text(json.dumps(TRACE))
    run = gd.load_run(tmp_path)
    (error,) = [one.error for one in run.info.inputs if one.path.endswith("rank0.pt.trace.json")]
    assert error is not None and "gpudiag trace FILE" in error


@pytest.mark.parametrize("change", [{"traceEvents": None}, {"schemaVersion": None}])
def test_other_json_is_none(tmp_path: Path, change: dict[str, None]) -> None:
    path = tmp_path / "x.json"
    held = {name: value for name, value in TRACE.items() if name not in change and name != "deviceProperties"}
    path.write_text(json.dumps(held | ({"traceEvents": []} if "traceEvents" in held else {})))
    with pytest.raises(gd.InputError) as caught:
        gd.read_trials(path)
    assert "torch.profiler" not in str(caught.value)
