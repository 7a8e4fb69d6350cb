"""A level that falls for good, beside evaluations that the log tells of, which are no fall, and beside dead trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from smallruns import T0, gpu, run, study, trials

import gpudiag as gd
from gpudiag.measures.shift import GpuShift, ShiftProfile, measure_shift
from gpudiag.rules.shift import gpu_level_shift
from tests.rules.small_profiles import profile, verdict

BEGIN = datetime(2026, 3, 2, 8)
STEPS_S = 600
Phase = tuple[int, str, int]
"""Seconds, what the log says of them (steps, evaluation, or nothing), and the utilization in them."""


def fall(at: Path, phases: Sequence[Phase]) -> tuple[float, float]:
    """Of a training with these phases: how far the last level lies below those before, and the work at it."""
    lines, rows, second, step = [], [], 0, 0
    for seconds, what, util in phases:
        if what == "evaluation":
            lines.append((second + 0.1, "INFO evaluation started"))
            lines.append((second + seconds - 0.1, f"INFO evaluation finished in {seconds - 0.2:.1f} seconds, acc 0.7"))
        for at_s in range(second + 10, second + seconds + 1, 10) if what == "steps" else ():
            lines.append((at_s, f"INFO step {(step := step + 50)}/20000 loss 2.1 step_time 0.200s"))
        rows += [(at_s, util) for at_s in range(second, second + seconds)]
        second += seconds
    stamp = "%Y-%m-%d %H:%M:%S,%f"
    text = [f"{(BEGIN + timedelta(seconds=at_s)).strftime(stamp)[:-3]} {said}" for at_s, said in lines]
    smi = [f"{BEGIN + timedelta(seconds=at_s):%Y/%m/%d %H:%M:%S.000}, 0, {util} %" for at_s, util in rows]
    (at / "train.log").write_text("\n".join(text) + "\n")
    (at / "gpu.csv").write_text("\n".join(["timestamp, index, utilization.gpu [%]", *smi]) + "\n")
    run = gd.load_run(at, timezone="UTC")
    row = measure_shift(run).per_gpu.loc["0"]
    return float(row[GpuShift.fall_pct.name]), float(row[GpuShift.fall_s.name])


STEPS: Phase = (STEPS_S, "steps", 95)


def test_an_evaluation_at_the_end_is_no_fall(tmp_path: Path) -> None:
    pct, _ = fall(tmp_path, [STEPS, STEPS, (240, "evaluation", 40)])
    assert not pct > 0, "NaN: one level"


def test_two_evaluations_are_no_fall(tmp_path: Path) -> None:
    pct, _ = fall(tmp_path, [STEPS, (240, "evaluation", 20), STEPS, (240, "evaluation", 20)])
    assert not pct > 0


def test_the_same_fall_of_which_the_log_says_nothing_is_one(tmp_path: Path) -> None:
    assert fall(tmp_path, [STEPS, STEPS, (240, "nothing", 40)]) == pytest.approx((55, 240), abs=15)


def test_steps_that_fall_are_found_beside_evaluations(tmp_path: Path) -> None:
    evaluation: Phase = (240, "evaluation", 20)
    slow: Phase = (STEPS_S, "steps", 50)
    pct, seconds = fall(tmp_path, [STEPS, evaluation, STEPS, evaluation, slow, evaluation])
    assert pct == pytest.approx(45, abs=1) and seconds == pytest.approx(STEPS_S, abs=60)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dies_s", "falls_s", "goes_on", "named"),
    [(9000, 9000, False, "3"), (4000, 13000, False, ""), (None, 9000, False, ""), (9000, 9000, True, "")],
)
def test_a_fall_names_the_trial_whose_worker_went_then(
    dies_s: int | None, falls_s: int, goes_on: bool, named: str
) -> None:
    """Of three workers with trials of 1000 s the last one dies, and is started again where the search ``goes_on``."""
    rows = []
    for worker in range(3):
        starts = range(20 * worker, 18000, 1010)
        dead = next((i for i, at in enumerate(starts) if dies_s is not None and worker == 2 and at + 1000 > dies_s), 99)
        rows += [("COMPLETE", at, at + 1000) for i, at in enumerate(starts) if i < dead or (goes_on and i > dead)]
        rows += [("RUNNING", at, math.nan) for i, at in enumerate(starts) if i == dead]
    rows.sort(key=lambda row: (row[0] != "RUNNING", row[1]))  # the dead one is trial 0
    at = np.arange(0.0, 18000.0, 10.0)
    samples = gpu(at, util_pct=np.where(at < falls_s, 80.0, 50.0))
    table = trials(rows).assign(trial=[3, *range(10, 9 + len(rows))] if dies_s else range(10, 10 + len(rows)))
    found = measure_shift(run(trials=table, gpu=samples, studies=study("MINIMIZE")))
    assert found.per_gpu.at["0", "fall_pct"] == pytest.approx(30, abs=1)
    assert found.per_gpu.at["0", "dead_trial"] == named


@pytest.mark.parametrize("dead", ["", "7"])
def test_the_sentence_names_it_and_what_to_do(dead: str) -> None:
    segments = pd.DataFrame({"gpu": ["0"] * 2, "start": [T0] * 2, "end": [T0] * 2})
    row = {"fall_pct": 30.0, "fall_s": 900.0, "before_s": 900.0, "last_pct": 50.0, "dead_trial": dead}
    found = verdict(gpu_level_shift, profile(ShiftProfile, {"0": row}, segments=segments))
    assert found.summary.endswith("Trial 7 died about then, and fewer ran at once since." if dead else "of work.")
    assert str(found.remedy).startswith("Start the worker again" if dead else "See what changed")
