"""A comparison on a screen: one way of speaking, each fact once, and no check that cannot apply."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.report._render.terminal import render
from gpudiag.report.comparison.text import text


def training(folder: Path, step_s: float, *, minutes: int) -> Path:
    """A log of steps and samples of its GPU, so many minutes long."""
    folder.mkdir()
    begin, logged, sampled = datetime(2026, 3, 2, 10), [], []
    for i in range(0, 60 * minutes, 5):
        at = begin + timedelta(seconds=i)
        sampled.append(f"{at:%Y/%m/%d %H:%M:%S}.000, 0, {80 + i % 7} %, {9000 + i % 11} MiB, {200 + i % 13}.0 W")
    for n in range(10, int(60 * minutes / step_s), 10):
        at = begin + timedelta(seconds=n * step_s + 0.01 * (n % 3))
        logged.append(f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03} INFO step {n}/9000 loss 2.5")
    head = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]"
    (folder / "gpu.csv").write_text("\n".join([head, *sampled, ""]), encoding="utf-8")
    (folder / "train.log").write_text("\n".join([*logged, ""]), encoding="utf-8")
    return folder


def said(a: Path, b: Path) -> str:
    return " ".join(render(text(gd.compare(gd.load_run(a), gd.load_run(b)).document), width=200).split())


@pytest.mark.slow
def test_of_two_trainings_only_what_applies_is_shown(tmp_path: Path) -> None:
    out = said(training(tmp_path / "a", 2.0, minutes=60), training(tmp_path / "b", 1.0, minutes=30))
    found = re.search(r"FASTER: b is ([0-9.]+)× faster \(([0-9.]+)–([0-9.]+)×\) than a", out)
    assert found is not None and float(found[1]) == pytest.approx(2.0, abs=0.02)
    assert float(found[2]) <= 2.0 <= float(found[3])
    for check in ("Telemetry covers the job", "No warm-up or cache effect", "Parameters applied"):
        assert check not in out
    assert "Same unit and definition" in out and "Same workload" in out, "whether it was the same work stays open"
    assert "invalid Greatest" not in out and "Per item" not in out and "– → –" not in out


@pytest.mark.slow
def test_each_fact_is_said_once(samples: Path) -> None:
    out = said(samples / "starved-input-pipeline/before", samples / "starved-input-pipeline/after")
    assert out.count("is 1.57 times the samples of one of") == 1
    assert out.count("An item kept GPUs busy for") == 1
    assert out.count("So few items cannot rule out that") == 1 and "Of 6 of these: So few items cannot" in out
    assert out.count("prefetch_factor 8 16") == 1 and "dataloader, params prefetch_factor 8 16" in out
