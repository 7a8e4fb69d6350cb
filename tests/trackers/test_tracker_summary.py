"""The six numbers of a tracker against the tables that they come from."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sampleruns import diagnosed
from toyrun import toy_run

from gpudiag.diagnosis import diagnose
from gpudiag.run import Run
from gpudiag.schema import GPU, conform
from gpudiag.trackers.summary import labels, summary

NAMES = ("utilization_pct", "idle_pct", "gpu_h", "memory_peak_pct", "n_critical", "n_warning")


@pytest.mark.parametrize("name", ["healthy", "tiny-batch-laptop"])
def test_the_numbers_are_those_of_the_run(name: str) -> None:
    diagnosis = diagnosed(name)
    found = summary(diagnosis.document)
    assert list(found) == [f"gpudiag.{name}" for name in NAMES]
    cells = diagnosis.ledger.cells.groupby("cell", observed=False)["gpu_s"].sum()
    idle = cells.reindex(["idle_no_trial", "startup_only", "tail_only", "waiting", "stalled"]).sum()
    assert found["gpudiag.gpu_h"] == pytest.approx(cells.sum() / 3600)
    assert found["gpudiag.idle_pct"] == pytest.approx(100 * idle / cells.sum())
    gpu = diagnosis.run.gpu
    assert found["gpudiag.memory_peak_pct"] == pytest.approx(
        100 * (gpu["mem_used_mib"] / gpu["mem_total_mib"]).max(), rel=1e-6
    )
    severities = [one.severity.value for one in diagnosis.findings]
    assert found["gpudiag.n_critical"] == severities.count("critical")
    assert found["gpudiag.n_warning"] == severities.count("warning")


@pytest.mark.slow
def test_what_is_not_known_is_absent() -> None:
    known = summary(diagnose(toy_run(samples=0)).document)
    assert set(known) == {"gpudiag.n_critical", "gpudiag.n_warning"}
    time = pd.date_range("2026-03-01", periods=100, freq="1s", tz="UTC")
    gpu = pd.DataFrame({"time": time, "gpu": "0", "util_pct": np.where(np.arange(100) < 25, 0.0, 80.0)})
    known = summary(diagnose(Run(gpu=conform(gpu, GPU))).document)
    assert known["gpudiag.utilization_pct"] == pytest.approx(60.0)
    assert known["gpudiag.idle_pct"] == pytest.approx(25.0)
    assert "gpudiag.memory_peak_pct" not in known and not any(map(math.isnan, known.values()))


def test_the_verdict_is_that_of_the_report() -> None:
    document = diagnosed("healthy").document
    assert labels(document) == {
        "gpudiag.verdict": "ok",
        "gpudiag.headline": document.headline.sentences[0],
        "gpudiag.version": document.version,
    }
