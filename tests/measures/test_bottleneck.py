"""A label only where one class holds half of the trial time and twice the next; each second in one class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.errors import NotMeasurable
from gpudiag.manifest import Settings
from gpudiag.measures._gpu.signatures import CLASSES
from gpudiag.measures.bottleneck import BottleneckProfile, measure_bottleneck
from gpudiag.run import Run, RunInfo
from gpudiag.schema import GPU, GPUS, HOST, conform

START = pd.Timestamp("2026-03-01 10:00:00", tz="UTC")
N = 200
IDLE_W, LIMIT_W = 50.0, 450.0


def run(
    util: list[float],
    ratio: float | None = None,
    host: dict[str, float] | None = None,
    cores: int | None = None,
    **columns: float,
) -> Run:
    """One GPU at 5 s without trials; the first and the last sample are busy, so that all of it counts as work."""
    values = np.array(util, float)
    time = START + pd.to_timedelta(np.arange(len(values)) * 5.0, unit="s")
    frame = pd.DataFrame({"time": time, "gpu": "0", "util_pct": values, "mem_total_mib": 24564.0, **columns})
    frame["power_limit_w"] = LIMIT_W
    if ratio is not None:
        frame["power_w"] = np.where(values <= 10, IDLE_W, IDLE_W + ratio * (LIMIT_W - IDLE_W))
    seen = pd.DataFrame({"time": time, **host}) if host else pd.DataFrame({"time": time[:0]})
    gpus = pd.DataFrame({"gpu": ["0"], "name": "NVIDIA GeForce RTX 4090", "mem_total_mib": 24564.0})
    info = RunInfo(settings=Settings(cpu_cores=cores))
    return Run(gpu=conform(frame, GPU), gpus=conform(gpus, GPUS), host=conform(seen, HOST), info=info)


def shares(profile: BottleneckProfile) -> dict[str, float]:
    return {row["class"]: row["share_pct"] for _, row in profile.classes.iterrows() if row["share_pct"] > 0}


BUSY = [95.0] * N
OF_16_CORES = {"cpu_max_core_pct": 40.0, "host_cores": 16.0}
FEW_IDLE = [0.0] * 8 + [95.0] * 2  # some idle samples, for the idle power


@pytest.mark.parametrize(
    ("made", "label"),
    [
        (run([95.0] + [5.0] * (N - 2) + [95.0], host={"cpu_max_core_pct": 96.0}), "cpu_bound"),
        (run([95.0] + [40.0] * (N - 2) + [95.0], host={"cpu_max_core_pct": 96.0}), "cpu_bound"),
        (run([95.0] + [5.0] * (N - 2) + [95.0], host={"io_wait_pct": 60.0}), "io_wait"),
        (
            run([30.0] * N, mem_used_mib=3000.0, host={"io_wait_pct": 7.0, **OF_16_CORES}),
            "io_wait",
        ),
        (
            run([30.0] * N, mem_used_mib=3000.0, host={"io_wait_pct": 5.0, **OF_16_CORES}),
            "small_work",
        ),
        (run([60.0] * N, ratio=0.2, host={"cpu_max_core_pct": 96.0}), "launch_bound"),
        (run([95.0] + [0.0] * 9 + BUSY, ratio=0.8), "compute_bound"),
        (run([95.0] + [0.0] * 9 + BUSY, ratio=0.2), "light"),
        (run([95.0] + [0.0] * 9 + BUSY, ratio=0.5), "busy"),
        (run([95.0] + [0.0] * 9 + BUSY, ratio=0.5, mem_util_pct=70.0), "bandwidth_bound"),
        (run([95.0] + [0.0] * 9 + BUSY, ratio=0.9, dram_active_pct=60.0), "bandwidth_bound"),
        (run([95.0] + [0.0] * 9 + BUSY, ratio=0.5, mem_util_pct=70.0, dram_active_pct=59.0), "busy"),
        (run(BUSY, sm_active_pct=85.0), "compute_bound"),
        (run(BUSY, sm_active_pct=40.0), "light"),
        (run(BUSY), "busy"),
        (run([95.0] * 20 + [2.0] * N + [95.0] * 20), "stalled"),
        (run([30.0] * N, mem_used_mib=3000.0, host={"cpu_max_core_pct": 40.0}), "small_work"),
        (run([30.0] * N, mem_used_mib=3000.0), ""),
        (run([0.5] * N), "unused"),
        (run([30.0] * N, host={"cpu_pct": 96.0}), ""),
    ],
)
def test_each_signature_gives_its_label(made: Run, label: str) -> None:
    profile = measure_bottleneck(made)
    assert profile.label == label, shares(profile)


@pytest.mark.parametrize(("busy", "label"), [(49, ""), (65, ""), (66, "busy")])
def test_a_label_needs_half_of_the_time_and_twice_the_next(busy: int, label: str) -> None:
    # The rest of the time shows nothing: it may be any class and counts against the label.
    assert measure_bottleneck(run([95.0] * busy + [60.0] * (99 - busy) + [95.0])).label == label


def test_power_and_heat() -> None:
    made = run(BUSY)
    clock = np.where(np.arange(N) < 20, 2500.0, 1500.0)
    made = Run(gpu=made.gpu.assign(sm_clock_mhz=clock, throttle_reasons=0x40), gpus=made.gpus)
    assert shares(measure_bottleneck(made)) == pytest.approx({"limited": 90.0, "busy": 10.0}, abs=0.1)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.floats(0, 100), min_size=12, max_size=60), st.floats(0, 100), st.floats(0, 100))
def test_every_second_is_in_one_class(util: list[float], core: float, wait: float) -> None:
    profile = measure_bottleneck(run(util, ratio=0.5, host={"cpu_max_core_pct": core, "io_wait_pct": wait}))
    assert list(profile.classes["class"]) == list(CLASSES)
    assert profile.classes["gpu_s"].sum() == pytest.approx(profile.trial_gpu_s)
    assert profile.classes["share_pct"].sum() == pytest.approx(100)
    for name in CLASSES:
        held = profile.classes.set_index("class").at[name, "share_pct"]
        assert getattr(profile, f"{name}_pct") == held
        assert profile.label != name or held >= 50


def test_without_utilization() -> None:
    with pytest.raises(NotMeasurable):
        measure_bottleneck(Run())
