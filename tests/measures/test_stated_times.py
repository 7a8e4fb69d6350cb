"""Where an epoch's first line stands behind steps of the epoch before: logs of means, and sums of the steps' times."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.errors import NotMeasurable
from gpudiag.measures.loader import measure_loader
from gpudiag.measures.steps import StepsProfile, measure_steps

VALIDATION_S = 20.0


@dataclass
class Log:
    """What was written, and the times of the steps up to its last line."""

    lines: list[str]
    took_s: list[float]
    waited_s: list[float]


def imagenet(epoch: int, k: int, n: int, took: list[float], waited: list[float]) -> str:
    """Means of the epoch so far."""
    mean_s, wait_s = sum(took) / len(took), sum(waited) / len(waited)
    return (
        f"Epoch: [{epoch}][{k + 1:3d}/{n}]\tTime {took[-1]:6.3f} ({mean_s:6.3f})\t"
        f"Data {waited[-1]:6.3f} ({wait_s:6.3f})\tLoss 4.1e+00 (4.2e+00)"
    )


def torchvision(epoch: int, k: int, n: int, took: list[float], waited: list[float]) -> str:
    """Means of the last 20 steps of the epoch."""
    mean_s, wait_s = sum(took[-20:]) / len(took[-20:]), sum(waited[-20:]) / len(waited[-20:])
    return (
        f"Epoch: [{epoch}]  [{k:3d}/{n}]  eta: 0:08:20  lr: 0.1  loss: 6.9 (6.95)  time: {mean_s:.4f}  "
        f"data: {wait_s:.4f}  max mem: 900"
    )


def written(dialect: str, *, n: int, every: int, n_epochs: int, slow_s: float, dated: bool) -> Log:
    """Steps of about 0.2 s with 0.06 s of waiting, ``slow_s`` more for the first batch of each epoch."""
    rng, out, at_s = random.Random(n), Log([], [], []), 0.0
    all_took: list[float] = []
    all_waited: list[float] = []
    for epoch in range(n_epochs):
        took, waited = [], []
        for k in range(n):
            waited.append(0.06 * rng.uniform(0.5, 1.5) + (slow_s if k == 0 else 0.0))
            took.append(waited[-1] + 0.14 * rng.uniform(0.9, 1.1))
            at_s += took[-1]
            if k % every == 0:
                line = {"imagenet": imagenet, "torchvision": torchvision}[dialect](epoch, k, n, took, waited)
                stamp = f"{datetime(2026, 1, 5) + timedelta(seconds=at_s):%Y-%m-%d %H:%M:%S.%f} " if dated else ""
                out.lines.append(stamp + line)
                out.took_s, out.waited_s = [*all_took, *took], [*all_waited, *waited]
        all_took, all_waited = [*all_took, *took], [*all_waited, *waited]
        at_s += VALIDATION_S
        out.lines.append("Test: [ 1/40]\tTime  0.250 ( 0.250)\tLoss 4.0e+00 (4.0e+00)")
    return out


def loaded(folder: Path, log: Log) -> gd.Run:
    (folder / "train.log").write_text("\n".join(log.lines) + "\n", encoding="utf-8")
    return gd.load_run(folder, timezone="UTC")


def measured(folder: Path, log: Log) -> StepsProfile:
    return measure_steps(loaded(folder, log))


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["imagenet", "torchvision"])
@pytest.mark.parametrize("slow_s", [0.0, 4.0])
@pytest.mark.parametrize("n", [196, 101])
def test_the_rest_of_an_epoch_has_the_pace_of_its_lines(tmp_path: Path, dialect: str, slow_s: float, n: int) -> None:
    log = written(dialect, n=n, every=100, n_epochs=10, slow_s=slow_s, dated=False)
    run = loaded(tmp_path, log)
    said, loader = measure_steps(run), measure_loader(run)
    assert said.n_steps == len(log.took_s)
    assert said.logged_s == pytest.approx(sum(log.took_s), rel=0.02)
    assert loader.step_ms == pytest.approx(1000 * sum(log.took_s) / len(log.took_s), rel=0.02)
    assert loader.avg_ms == pytest.approx(1000 * sum(log.waited_s) / len(log.waited_s), rel=0.03)
    assert said.loader_pct == pytest.approx(100 * sum(log.waited_s) / sum(log.took_s), abs=1)


@pytest.mark.parametrize("slow_s", [0.0, 4.0])
def test_a_pause_between_epochs_is_what_their_steps_leave(tmp_path: Path, slow_s: float) -> None:
    log = written("imagenet", n=196, every=100, n_epochs=12, slow_s=slow_s, dated=True)
    said = measured(tmp_path, log)
    assert said.n_pauses == 11 and said.pauses_s == pytest.approx(11 * VALIDATION_S, rel=0.03)
    assert said.logged_s == pytest.approx(sum(log.took_s) + 11 * VALIDATION_S, rel=0.01)
    assert said.loader_pct == pytest.approx(100 * sum(log.waited_s) / sum(log.took_s), abs=1)


def test_the_time_of_an_epoch_s_first_step_is_not_that_of_the_epoch(tmp_path: Path) -> None:
    """A line an epoch, of its first step: nobody knows what the other 195 took, or waited."""
    log = written("imagenet", n=196, every=200, n_epochs=12, slow_s=4.0, dated=False)
    run = loaded(tmp_path, log)
    with pytest.raises(NotMeasurable):
        measure_steps(run)
    with pytest.raises(NotMeasurable):
        measure_loader(run)


def test_a_mean_since_the_line_before_is_of_its_own_epoch(tmp_path: Path) -> None:
    """mmcv: at each 50 of 190 steps their mean; the first of each epoch takes 10 s, the others 0.2 s."""
    lines = [
        f"2021-08-22 - mmdet - INFO - Epoch [{epoch}][{step}/190]\tlr: 2e-3, eta: 0:10:00, time: {mean_s:.3f}, "
        "data_time: 0.050, memory: 3769, loss: 1.2"
        for epoch in range(1, 13)
        for step, mean_s in [(50, (10 + 49 * 0.2) / 50), (100, 0.2), (150, 0.2)]
    ]
    said = measured(tmp_path, Log(lines, [], []))
    assert said.n_steps == 11 * 190 + 150
    assert said.logged_s == pytest.approx(12 * 9.8 + said.n_steps * 0.2, rel=0.001)


@pytest.mark.parametrize("every_s", [1, 2, 7, 15])
def test_the_worst_wait_is_that_of_one_line_and_every_line_counts(tmp_path: Path, every_s: int) -> None:
    """Lines closer than a clock of whole seconds tells apart are one interval; what each states stays its own."""
    begin = datetime(2026, 3, 2, 10)
    waits_s = [8.0 if at == 133 else 0.125 for at in range(240)]
    lines = [
        f'{{"timestamp": "{begin + timedelta(seconds=every_s * at):%Y-%m-%dT%H:%M:%S}Z", "step": {at + 1}, '
        f'"loss": {3 - 0.001 * at:.3f}, "step_time": {every_s}.0, "data_time": {wait_s}}}'
        for at, wait_s in enumerate(waits_s)
    ]
    found = measure_loader(loaded(tmp_path, Log(lines, [], [])))
    assert (found.n_lines, found.worst_ms) == (240, 8000)
    assert found.avg_ms == pytest.approx(1000 * sum(waits_s) / 240)


def test_waits_far_shorter_than_the_mean_round_to_none_and_count_as_none(tmp_path: Path) -> None:
    """A pause of 15 s every 100 steps beside waits of 5 ms: a mean of three decimals falls by less than it should."""
    log = Log([], [], [])
    for epoch in range(3):
        waited = [15.0 if k % 100 == 99 else 0.005 for k in range(1000)]
        took = [0.495 + wait_s for wait_s in waited]
        for k in [*range(0, 1000, 50), 999]:
            log.lines.append(imagenet(epoch, k, 1000, took[: k + 1], waited[: k + 1]))
        log.took_s, log.waited_s = log.took_s + took, log.waited_s + waited
    found = measure_loader(loaded(tmp_path, log))
    assert found.avg_ms == pytest.approx(1000 * sum(log.waited_s) / len(log.waited_s), rel=0.005)
