"""The median time of a step where a record holds several trainings: each one's, or from the least to the greatest."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.measures.steps import measure_steps
from gpudiag.report._sections.key_numbers import key_numbers
from gpudiag.report._sections.step_times import step_times


def logged(folder: Path, *each_s: float) -> gd.Run:
    """A log of 60 lines with 20 steps each for each time of a step, one training after the other."""
    now = datetime(2026, 3, 4, 8)
    for place, step_s in enumerate(each_s):
        lines = []
        for step in range(20, 1201, 20):
            now += timedelta(seconds=20 * step_s)
            lines.append(f"{now:%Y-%m-%d %H:%M:%S} INFO step {step}/1200 loss 0.5\n")
        (folder / f"train_{'abcd'[place]}.log").write_text("".join(lines), encoding="utf-8")
        now += timedelta(minutes=5)
    return gd.load_run(folder, timezone="UTC")


@pytest.mark.parametrize(
    ("each_s", "told", "n"),
    [
        ((0.5,), "500 ms", 1),
        ((0.5, 0.5), "500 ms", 1),
        ((0.5, 2.0), "500 ms and 2 s", 2),
        ((2.0, 0.5), "500 ms and 2 s", 2),
        ((0.5, 2.0, 1.0), "500 ms to 2 s", 3),
    ],
)
@pytest.mark.slow
def test_each_training_has_its_own_time_of_a_step(tmp_path: Path, each_s: tuple[float, ...], told: str, n: int) -> None:
    run = logged(tmp_path, *each_s)
    steps = measure_steps(run)
    found = (steps.n_paced, steps.least_step_s, steps.most_step_s)
    assert found == (len(each_s), pytest.approx(min(each_s)), pytest.approx(max(each_s)))
    diagnosis = gd.diagnose(run)
    assert step_times(diagnosis.document) == (told, n)
    numbers = {label.split(" (MFU)")[0]: number for label, number in key_numbers(diagnosis.document)}
    said = f"median time of one step, in {n} trainings" if n > 1 else "median time of one step"
    assert numbers[said] == told
    page = diagnosis.show.steps._repr_markdown_()
    assert f"One step took {told} in the median" + (f" of {n} trainings." if n > 1 else ".") in page
