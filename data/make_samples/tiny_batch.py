"""tiny-batch-laptop: a small model on a laptop GPU that is hardly used, and one impossible power reading."""

from __future__ import annotations

import numpy as np
import pandas as pd

from data.make_samples.steer import steer
from gpudiag.manifest import DataLoader, Settings
from gpudiag.simulation.cases.case import Case
from gpudiag.simulation.simulator import observed, simulate
from gpudiag.simulation.spec import Gpu, ModelSpec, Spec, TelemetrySpec, Trial

NAME = "tiny-batch-laptop"
SEED = 5
SPIKE_TICK = 54
SPIKE_W = 590.0

STORY = """
Five minutes of training a model of 559,738 parameters with batches of 32 on a laptop with a 6 GB GPU: 90 samples over
300 s. The GPU is 11.4 % busy on average (0-20 %), its memory never holds more than 167 of 6141 MiB, and the board
draws 26.8 W on average. That mean includes one reading of 590 W, which no such board can draw (a known telemetry
fault of that chip); without it the mean is 20.5 W. There is no record of trials, no host metrics and no step times:
whether a step holds little work or the CPU feeds it slowly cannot be told from this run.

The course of the job (start-up, steady training) is simulated; its readings are then moved by whole units, watts by
hundredths, until their mean, lowest and highest values are those of the situation.
"""

SPEC = Spec(
    name=NAME,
    start="2025-11-12T21:04:00",
    timezone="Europe/Berlin",
    n_trials=1,
    workers=1,
    record="none",
    gpus=(
        Gpu(
            name="NVIDIA GeForce RTX 4050 Laptop GPU",
            mem_total_mib=6141,
            base_mib=2,
            power_limit_w=60.0,
            idle_w=1.9,
            context_w=14.0,
            full_w=62.0,
            ambient_c=41.0,
            c_per_w=0.45,
            max_clock_mhz=2370,
            mem_util_ratio=0.35,
        ),
    ),
    trial=Trial(
        startup_s=(24.0, 24.0),
        epochs=11,
        epoch_s=(22.95, 22.95),
        dip_s=(2.2, 2.2),
        tail_s=(1.0, 1.0),
        gpu_share_pct=(13.5, 13.5),
        models=(ModelSpec("cnn", 1, 1.0, 34.0, 0.5),),
        batch_sizes=(32,),
        context_mib=115.0,
    ),
    telemetry=TelemetrySpec(period_s=300.0 / 89, lead_s=0.0, lag_s=-1.0, util_noise_pct=3.0, power_noise_w=1.2),
    settings=Settings(parallel=1),
    dataloader=DataLoader(batch_size=32),
    notes=("the model has 559,738 parameters",),
)


def make() -> Case:
    """Simulate the job, then move its readings onto the figures of the situation."""
    simulated = simulate(SPEC, seed=SEED)
    samples = _steered(simulated.samples)
    return Case(NAME, SEED, STORY, {"": observed(simulated.spec, simulated.history, samples)}, made_by="make samples")


def _steered(samples: pd.DataFrame) -> pd.DataFrame:
    """The readings with the stated figures: utilization, memory, power without and with the faulty reading."""
    count = len(samples)
    spike = np.arange(count) == SPIKE_TICK
    power = np.empty(count)
    power[spike] = SPIKE_W
    power[~spike] = steer(
        samples["power_w"].to_numpy()[~spike],
        mean=(26.8 * count - SPIKE_W) / (count - 1),
        low=1.7,
        high=27.9,
        step=0.01,
    )
    return samples.assign(
        util_pct=steer(samples["util_pct"].to_numpy(), mean=11.4, low=0.0, high=20.0),
        mem_used_mib=steer(
            samples["mem_used_mib"].to_numpy(), mean=round(0.022 * 6141 * count) / count, low=2.0, high=167.0
        ),
        power_w=power,
    )
