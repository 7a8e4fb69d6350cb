"""What pauses cost is the same with a table of jobs as without one: an evaluation behind the last step is a pause."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.measures.causes import measure_causes
from gpudiag.measures.steps import measure_steps
from gpudiag.measures.trial_waits import measure_trial_waits
from gpudiag.run import Run

BEGIN = datetime(2026, 3, 4, 8)
START, STARTUP, EPOCHS, EPOCH_S, EVALUATION_S, PERIOD_S = 120, 60, 4, 300, 60, 2
"""In four epochs of 300 s of steps, each with 60 s of evaluation behind it, 240 s pass without a kernel."""


def at(second: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return (BEGIN + timedelta(seconds=second)).strftime(form)


def loaded(folder: Path, *, table: bool, tail_s: int = 6, evaluated: int = EPOCHS) -> Run:
    """``tail_s``: from the end of the last evaluation to that of the job; only ``evaluated`` epochs have one."""
    now, lines, busy = START + STARTUP, [(START + 1, "loading data")], list[tuple[int, int]]()
    for epoch in range(EPOCHS):
        busy.append((now, now + EPOCH_S))
        for step in range(50, 601, 50):
            lines.append((now + step // 2, f"step {600 * epoch + step}/2400 loss 0.5"))
        now += EPOCH_S
        if epoch < evaluated:
            lines.append((now, "evaluating"))
            now += EVALUATION_S
            lines.append((now, "eval loss 1.9"))
    end = now + tail_s
    (folder / "train.log").write_text("".join(f"{at(s)} INFO {said}\n" for s, said in lines), encoding="utf-8")
    rows = ["timestamp, index, utilization.gpu [%], memory.used [MiB]"]
    for second in range(0, end + 120, PERIOD_S):
        used = 93 if any(low <= second < high for low, high in busy) else 0
        held = 30_000 if START + STARTUP <= second < end - 1 else 4
        rows.append(f"{at(second, '%Y/%m/%d %H:%M:%S')}.000, 0, {used} %, {held} MiB")
    (folder / "gpu.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    if table:
        job = f"4471|train|COMPLETED|{at(START, '%Y-%m-%dT%H:%M:%S')}|{at(end, '%Y-%m-%dT%H:%M:%S')}|n01|gres/gpu=1"
        head = "JobID|JobName|State|Start|End|NodeList|AllocTRES"
        (folder / "sacct.txt").write_text(f"{head}\n{job}\n", encoding="utf-8")
    return gd.load_run(folder, timezone="UTC")


@pytest.mark.parametrize("tail_s", [6, 200])
@pytest.mark.slow
def test_pauses_cost_the_same_with_a_table_of_jobs(tmp_path: Path, tail_s: int) -> None:
    found = []
    for table in (True, False):
        folder = tmp_path / str(table)
        folder.mkdir()
        run = loaded(folder, table=table, tail_s=tail_s)
        steps, causes = measure_steps(run), measure_causes(run).by_cause
        found.append(steps.idle_paused_gpu_h)
        assert steps.n_evaluations == EPOCHS and steps.evaluations_s == EPOCHS * EVALUATION_S
        assert causes.at["evaluation", "gpu_s"] == pytest.approx(EPOCHS * EVALUATION_S, abs=2 * PERIOD_S)
        if table:  # what is left of the end of the job is the time behind its last evaluation
            assert causes.at["tail", "gpu_s"] == pytest.approx(tail_s, abs=PERIOD_S)
            waits = measure_trial_waits(run).causes.set_index("cause")["gpu_s"]
            assert waits["evaluation"] == pytest.approx(EPOCHS * EVALUATION_S, abs=2 * PERIOD_S)
    assert found[0] == pytest.approx(found[1], abs=PERIOD_S / 3600)
    assert found[0] == pytest.approx(EPOCHS * EVALUATION_S / 3600, abs=2 * PERIOD_S / 3600)


def test_the_end_of_a_job_without_an_evaluation_is_its_end(tmp_path: Path) -> None:
    run = loaded(tmp_path, table=True, tail_s=60, evaluated=EPOCHS - 1)
    causes = measure_causes(run).by_cause["gpu_s"]
    assert causes["tail"] == pytest.approx(60, abs=PERIOD_S)
    assert causes["evaluation"] == pytest.approx(3 * EVALUATION_S, abs=2 * PERIOD_S)
