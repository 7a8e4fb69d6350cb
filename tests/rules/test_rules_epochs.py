"""Idle time that comes once an epoch, which the bars of a log leave out, is tied to the epochs and to no evaluation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from smallruns import gpu, run

import gpudiag as gd
from gpudiag.analysis import Analysis
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.verdict import Verdict

EPOCHS, STEPS, STEP_S, VALIDATION_S = 10, 160, 0.5, 20


def bar(name: str, n: int, each_s: float, every: int) -> list[str]:
    def clock(seconds: float) -> str:
        return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"

    return [
        f"{name}: {100 * at // n:3d}%|###| {at}/{n} [{clock(at * each_s)}<00:10, {1 / each_s:.2f}it/s]"
        for at in range(every, n + 1, every)
    ]


def found(folder: Path, gap_s: int, evaluating_pct: float) -> dict[str, Verdict]:
    """Epochs of 80 s and a validation of 20 s, each with a bar, and then a gap without a kernel."""
    lines = [
        line
        for epoch in range(EPOCHS)
        for line in (*bar(f"Epoch {epoch}", STEPS, STEP_S, 8), *bar("Validation DataLoader 0", 40, 0.5, 4))
    ]
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    epoch = np.repeat([100.0, evaluating_pct, 0.0], [int(STEPS * STEP_S), VALIDATION_S, gap_s])
    util_pct = np.tile(epoch, EPOCHS)
    given = run(gpu=gpu(np.arange(len(util_pct)), util_pct=util_pct), steps=gd.load_run(folder, timezone="UTC").steps)
    rules = tuple(rule for rule in RULES if rule.id in ("stalls-periodic", "steps-paused"))
    verdicts = judge_all(rules, Analysis(given), {rule.id: dict(rule.thresholds) for rule in rules})
    return {verdict.rule: verdict for verdict in verdicts}


def test_a_gap_at_each_epoch_that_no_bar_counts_is_none_of_the_evaluations(tmp_path: Path) -> None:
    said = found(tmp_path, 18, 100.0)
    assert said["stalls-periodic"].evidence["period_s"] == pytest.approx(118, abs=1)
    assert "once an epoch, in time that the log's bars leave out" in said["stalls-periodic"].summary
    assert "first batch" in said["stalls-periodic"].remedy and said["stalls-periodic"].caused_by is None
    assert "It may be more: its lines on steps have no timestamps" in said["steps-paused"].summary


def test_an_evaluation_with_a_bar_remains_the_cause_of_what_comes_once_an_epoch(tmp_path: Path) -> None:
    said = found(tmp_path, 0, 0.0)["stalls-periodic"]
    assert "That is once an epoch." in said.summary and said.caused_by == "steps-paused"


def test_a_period_unlike_that_of_the_epochs_is_none_of_theirs(tmp_path: Path) -> None:
    said = found(tmp_path, 45, 0.0)["stalls-periodic"]
    assert said.status.value == "found" and "an epoch" not in said.summary and said.caused_by == "steps-paused"
