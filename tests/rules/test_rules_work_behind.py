"""An evaluation behind the last step of a training, on the CPU: one finding has its cost, nobody ends the job."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.measures.idleness import measure_idleness
from gpudiag.measures.steps import measure_steps
from gpudiag.rules._engine.verdict import Status

BEGIN = datetime(2026, 3, 2, 8)
WORK_S, EVALUATION_S = 2400, 1500


def folder(at: Path, *, early_s: int = 0, after_s: int = 30, step_every_s: int = 20, n_gpus: int = 1) -> Path:
    """Steps for 40 min, an evaluation of 25 min for which the GPUs wait, and ``after_s`` without a word; another
    evaluation of ``early_s`` in the middle.
    """
    lines, second = [], 0
    for n in range(1, WORK_S // step_every_s + 1):
        second += step_every_s
        lines.append((second, f"step {10 * n}/{WORK_S // 2} loss 2.1 step_time 2.000s"))
        if early_s and n == 60:
            lines.append((second + 1, "running evaluation"))
            lines.append((second := second + early_s, f"evaluation finished in {early_s - 1}.0s, val_loss 2.1"))
    first = 60 * step_every_s
    lines.append((second + 1, "running evaluation"))
    lines += [(second + 60 * n, f"evaluation {4 * n} %") for n in range(1, EVALUATION_S // 60 + 1)]
    lines.append((second + EVALUATION_S, f"evaluation finished in {EVALUATION_S - 1}.0s, val_loss 2.1"))
    text = [f"{BEGIN + timedelta(seconds=at_s)},000 INFO {said}" for at_s, said in lines]
    rows = ["timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"]
    for at_s in range(0, second + EVALUATION_S + after_s, 10):
        busy = at_s < second and not first <= at_s < first + early_s
        when = (BEGIN + timedelta(seconds=at_s)).strftime("%Y/%m/%d %H:%M:%S.000")
        rows += [f"{when}, {gpu}, {97 if busy else 0} %, 60000 MiB, 81559 MiB" for gpu in range(n_gpus)]
    (at / "train.log").write_text("\n".join(text) + "\n")
    (at / "gpu.csv").write_text("\n".join(rows) + "\n")
    return at


@pytest.mark.slow
@pytest.mark.parametrize("n_gpus", [1, 2])
def test_one_finding_carries_the_cost(tmp_path: Path, n_gpus: int) -> None:
    made = gd.diagnose(gd.load_run(folder(tmp_path, n_gpus=n_gpus), timezone="UTC"))
    found = {one.rule: one for one in made.verdicts if one.status is Status.FOUND}
    paused = found["steps-paused"]
    assert "idle-after-work" not in found and "gpu-allocated-idle" not in found
    assert paused.lost_gpu_h == pytest.approx(n_gpus * EVALUATION_S / 3600, rel=0.02)
    assert "came after the last step logged (1,200)" in paused.summary
    assert "End the job" not in paused.remedy and "less often" not in paused.remedy
    assert not [one for one in made.recommendations if "half as often" in one.title], "of one there is no half"


@pytest.mark.slow
def test_idle_time_after_the_evaluation_is_told(tmp_path: Path) -> None:
    made = gd.diagnose(gd.load_run(folder(tmp_path, after_s=1200), timezone="UTC"))
    found = {one.rule: one for one in made.verdicts if one.status is Status.FOUND}
    assert found["idle-after-work"].lost_gpu_h == pytest.approx(1200 / 3600, rel=0.03)
    assert found["idle-after-work"].caused_by is None
    assert found["steps-paused"].lost_gpu_h == pytest.approx(EVALUATION_S / 3600, rel=0.02)


@pytest.mark.slow
def test_several_evaluations_may_be_fewer(tmp_path: Path) -> None:
    made = gd.diagnose(gd.load_run(folder(tmp_path, early_s=900), timezone="UTC"))
    assert [one for one in made.recommendations if "half as often" in one.title]


@pytest.mark.slow
def test_what_is_said_of_the_time_behind_the_last_step(tmp_path: Path) -> None:
    run = gd.load_run(folder(tmp_path, after_s=600), timezone="UTC")
    (gpu,) = measure_idleness(run).per_gpu.to_dict("records")
    assert gpu["trail_s"] == pytest.approx(600, abs=20)
    assert gpu["trail_logged_s"] == pytest.approx(EVALUATION_S, abs=20)
    steps = measure_steps(run)
    assert steps.pauses["behind"].tolist() == [True] and steps.n_evaluations == 1
