"""One worker whose trials train on two GPUs each: a second GPU is no free place for another worker."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.manifest import Settings
from gpudiag.simulation.simulator import simulate
from gpudiag.simulation.spec import Spec


@pytest.mark.slow
@pytest.mark.parametrize("second", [1.0, 0.3])
def test_no_gain_of_the_second_gpu_is_made_up(second: float) -> None:
    """Another worker would share both GPUs with the first, so that it brings between less than nothing and twice."""
    made = simulate(Spec(n_trials=30, workers=1, declares=(), settings=Settings(parallel=1)), seed=0).run
    other = made.gpu.assign(gpu="1", util_pct=(second * made.gpu["util_pct"]).round())
    both = pd.concat([made.gpu, other]).sort_values(["time", "gpu"], kind="stable", ignore_index=True)
    run = replace(made, gpu=both, trials=made.trials.assign(gpu="0,1"))
    advised = {one.id: one for one in gd.diagnose(run).recommendations}
    assert "pin-gpu" not in advised
    gain = advised["more-workers"].gain
    assert gain is not None and gain.low < 1 and gain.high == pytest.approx(2.0)
    forecast = gd.what_if(run, 2)
    assert forecast.at(2).bounds_only and "30 trials of 30 ran on several GPUs each" in forecast.at(2).throughput.reason
