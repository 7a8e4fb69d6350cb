"""What the simulated sampler sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.simulation import Gpu


def weights(timestamps: np.ndarray) -> np.ndarray:
    """Half the way to each neighbour, as METHODS 2 has it, without a cap."""
    steps = np.diff(timestamps)
    return (np.concatenate(([steps[0]], steps)) + np.concatenate((steps, [steps[-1]]))) / 2


@pytest.mark.parametrize("options", [{}, {"slow_down": 1.5, "dip_s": (20.0, 40.0)}, {"window_s": 1 / 6}])
def test_weighted_mean_of_samples_is_the_true_mean(options: dict[str, Any]) -> None:
    done = gd.simulate(seed=3, n_trials=60, workers=2, lead_s=0.0, lag_s=0.0, jitter_s=0.5, **options)
    gpu = done.run.gpu
    seconds = (gpu["time"] - gpu["time"].iloc[0]).dt.total_seconds().to_numpy()
    mean = np.average(gpu["util_pct"], weights=weights(seconds))
    assert mean == pytest.approx(done.truth.gpus["mean_util_pct"].iloc[0], abs=1.0)


def test_a_slowed_sampler_takes_longer_under_load() -> None:
    gpu = gd.simulate(seed=3, slow_down=1.0, jitter_s=0.0).run.gpu
    period = -gpu["time"].diff(-1).dt.total_seconds()
    assert period[gpu["util_pct"] > 70].median() == pytest.approx(10.0, abs=0.01)
    assert period[gpu["util_pct"] == 0].median() == pytest.approx(5.0, abs=0.01)


def test_an_outage_leaves_no_samples_and_is_unobserved() -> None:
    whole = gd.simulate(seed=1, jitter_s=0.0)
    holed = gd.simulate(seed=1, jitter_s=0.0, outages_s=((200.0, 500.0),))
    seconds = holed.samples["true_s"]
    assert not ((seconds >= 200) & (seconds < 500)).any()
    missing = holed.truth.ledger.set_index("cell")["gpu_s"]
    # The cells at both borders reach 7.5 s into the hole of 305 s between samples.
    assert missing["unobserved"] == pytest.approx(300 + 5 - 2 * 7.5, abs=0.1)
    assert whole.truth.ledger["gpu_s"].sum() == pytest.approx(holed.truth.ledger["gpu_s"].sum())


def test_an_offset_moves_the_telemetry_and_nothing_else() -> None:
    plain, ahead = gd.simulate(seed=1), gd.simulate(seed=1, offset_s=3600.0)
    moved = ahead.run.gpu.assign(time=ahead.run.gpu["time"] - pd.Timedelta(hours=1))
    # pandas 2.2 makes nanoseconds of the difference.
    pd.testing.assert_frame_equal(moved.astype({"time": plain.run.gpu["time"].dtype}), plain.run.gpu)
    pd.testing.assert_frame_equal(ahead.run.trials, plain.run.trials)
    pd.testing.assert_frame_equal(ahead.truth.ledger, plain.truth.ledger)
    assert ahead.truth.offset_s == 3600.0


def test_gpus_of_one_tick_differ_by_one_to_five_milliseconds() -> None:
    done = gd.simulate(seed=1, gpus=(Gpu(), Gpu(), Gpu()))
    ticks = done.samples["true_s"].to_numpy().reshape(-1, 3)
    lag_ms = np.rint(np.diff(ticks, axis=1) * 1000)
    assert lag_ms.min() == 1
    assert lag_ms.max() == 5
    assert done.samples["gpu"].to_list()[:4] == ["0", "1", "2", "0"]


def test_readings_have_the_resolution_and_range_of_the_driver() -> None:
    gpu = gd.simulate(seed=2, spikes=((40, 0, 590.0),)).run.gpu
    for name in ("util_pct", "mem_util_pct", "mem_used_mib", "temp_c", "sm_clock_mhz"):
        assert (gpu[name] == gpu[name].round()).all(), name
    assert gpu["util_pct"].between(0, 100).all()
    assert gpu["power_w"].max() == 590.0
    assert gpu["power_w"].nlargest(2).iloc[1] < 450


def test_power_and_temperature_follow_the_load() -> None:
    done = gd.simulate(seed=2, lead_s=120.0, lag_s=300.0)
    gpu = done.run.gpu
    idle = gpu[gpu["time"] < done.truth.window_start]
    busy = gpu[gpu["util_pct"] > 85]
    spec = done.spec.gpus[0]
    assert idle["power_w"].mean() == pytest.approx(spec.idle_w, abs=1.5)
    assert busy["power_w"].mean() > 320
    assert busy["temp_c"].max() == pytest.approx(spec.ambient_c + spec.c_per_w * busy["power_w"].mean(), abs=3)
    after = gpu[gpu["time"] > done.truth.window_end]["temp_c"].to_numpy()
    # It cools over minutes, not at once.
    assert after[0] > after[5] > after[-1] + 3
    assert (np.diff(after) <= 0).all()


def test_memory_reading_is_the_sum_of_what_trials_hold() -> None:
    done = gd.simulate(seed=2, n_trials=15)
    lives = done.history.lives
    for at, reading in zip(done.samples["true_s"][::7], done.samples["mem_used_mib"][::7], strict=True):
        held = sum(next((level for when, level in reversed(life.memory) if when <= at), 0.0) for life in lives)
        assert reading == pytest.approx(held + done.spec.gpus[0].base_mib, abs=0.51)
