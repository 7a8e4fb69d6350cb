"""A training that waits for its loader, as its log alone says: its cost, its bound, and a plan that is checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.advice._engine.plan import make_plan
from gpudiag.simulation.trainings.spec import LoaderSpec, TrainingSpec
from gpudiag.simulation.trainings.training import simulate_training
from gpudiag.simulation.trainings.world import train

STEPS, EVERY, COMPUTE_S = 6000, 20, 0.2
BEGIN = pd.Timestamp("2026-03-01T10:00:00Z")


def training(folder: Path, wait_s: float, name: str) -> gd.Run:
    """An epoch of steps that compute for 0.2 s at 100 %, and wait so long before each."""
    folder = folder / name
    folder.mkdir()
    step_s = COMPUTE_S + wait_s
    util = round(100 * COMPUTE_S / step_s)
    at = pd.date_range(BEGIN, periods=int(STEPS * step_s), freq="s").strftime("%Y/%m/%d %H:%M:%S.000")
    head = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
    (folder / "gpu.csv").write_text(head + "".join(f"{time}, 0, {util} %, 9000 MiB, 40000 MiB\n" for time in at))
    steps = np.arange(0, STEPS, EVERY)
    times = (BEGIN + pd.to_timedelta(steps * step_s, unit="s")).strftime("%Y-%m-%d %H:%M:%S,000")
    lines = [
        f"{time} Epoch: [0]  [{step:5d}/{STEPS}]  eta: 0:10:00  loss: 2.1  time: {step_s:.4f}  data: {wait_s:.4f}  "
        "max mem: 8000\n"
        for time, step in zip(times, steps, strict=True)
    ]
    (folder / "train.log").write_text("".join(lines))
    return gd.load_run(folder, timezone="UTC")


@pytest.mark.slow
def test_the_wait_has_its_cost_its_bound_and_a_prediction_that_is_checked(tmp_path: Path) -> None:
    before, after = training(tmp_path, 0.3, "before"), training(tmp_path, 0.02, "after")
    d = gd.diagnose(before)
    finding = d.findings["loader-slow"]
    hours = STEPS * 0.5 / 3600
    assert finding.lost_gpu_h == pytest.approx(0.6 * hours, rel=0.02), "0.3 of each 0.5 s"
    _, proof, then = d.document.headline.sentences
    assert "It cost 0.5 GPU-h." in proof
    assert then.startswith("Load batches ahead, in more processes (num_workers=8).") and "up to 2.5" in then
    (one,) = (one for one in d.recommendations if one.id == "load-ahead")
    assert one.gain is not None and one.gain.low == 1.0
    assert 0.5 / 0.22 < one.gain.high == pytest.approx(0.5 / 0.2, rel=0.02), "what it then brings lies below"
    step = next(each for each in one.predictions if each.measure == "steps.step_s")
    assert (step.low, step.high) == (pytest.approx(0.2, rel=0.02), pytest.approx(0.5, rel=0.001))
    compared = gd.compare(before, after, plan=make_plan(before, d.advice))
    assert compared.plan and {each.status for each in compared.plan} == {"came true"}


@pytest.mark.slow
def test_a_number_of_workers_that_is_known_is_what_to_change(tmp_path: Path) -> None:
    run = training(tmp_path, 0.3, "before")
    (tmp_path / "before/run.toml").write_text('timezone = "UTC"\n[dataloader]\nnum_workers = 2\n')
    ids = {one.id for one in gd.diagnose(tmp_path / "before").recommendations}
    assert "loader-workers" in ids and "load-ahead" not in ids
    assert "load-ahead" in {one.id for one in gd.diagnose(run).recommendations}


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_what_one_rank_waits_bounds_no_gain_of_several(tmp_path: Path, ranks: int) -> None:
    """Late single batches come in turn: each rank waits for those of the others in a collective, and counts as busy."""
    loader = LoaderSpec(workers=2, batch_s=0.3, batch_cv=0.6, hiccup_rate=0.02)
    spec = TrainingSpec(epochs=2, steps_per_epoch=300, pace=(1.0,) * ranks, loader=loader, log_every=20)
    d = gd.diagnose(gd.load_run(simulate_training(spec, seed=1).write(tmp_path)))
    gains = {one.id: one.gain for one in d.recommendations}
    no_wait = replace(spec, loader=replace(loader, batch_s=0.01, hiccup_rate=0.0))
    true = train(spec, 1).end_s / train(no_wait, 1).end_s
    some = gains["cache-input"]
    assert gains["loader-workers"] is not None, "the ratio of workers bounds it"
    if ranks == 1:
        assert some is not None and true <= some.high
    else:
        assert some is None and true > 1.7, "the rank that logs waits for a third of its time"
