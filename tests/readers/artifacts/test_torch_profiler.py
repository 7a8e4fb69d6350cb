"""What is a trace of torch.profiler, by its head; tests/traces reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gpudiag as gd

TRACE = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
    "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.0, "dur": 2.0, "args": {}}],
}


@pytest.mark.parametrize("change", [{"traceEvents": None}, {"schemaVersion": None}])
def test_other_json_is_none(tmp_path: Path, change: dict[str, None]) -> None:
    path = tmp_path / "x.json"
    held = {name: value for name, value in TRACE.items() if name not in change and name != "deviceProperties"}
    path.write_text(json.dumps(held | ({"traceEvents": []} if "traceEvents" in held else {})))
    with pytest.raises(gd.InputError) as caught:
        gd.read_trials(path)
    assert "torch.profiler" not in str(caught.value)
