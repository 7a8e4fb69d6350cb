"""Two logs of one GPU, a fraction of a second apart, are one record with the period of either."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpudiag as gd
from gpudiag.readers._shape.merge_telemetry import merge
from gpudiag.readers.base import Telemetry
from gpudiag.schema import TABLES, conform

BASE = pd.Timestamp("2026-03-10 08:00:00", tz="UTC")


def log(seconds: list[float], reader: str = "x", **values: list[float]) -> Telemetry:
    time = (BASE + pd.to_timedelta(seconds, unit="s")).astype("datetime64[us, UTC]")
    frame = pd.DataFrame({"time": time, "gpu": ["0"] * len(seconds), **values})
    gpus = pd.DataFrame({"gpu": ["0"], "uuid": ["GPU-aaaaaaaa"]})
    return Telemetry(gpu=conform(frame, TABLES["gpu"]), gpus=conform(gpus, TABLES["gpus"]), reader=reader, clock="utc")


def seconds_of(merged: Telemetry) -> list[float]:
    return ((merged.gpu["time"] - BASE) / pd.Timedelta("1s")).round(6).tolist()


def test_near_samples_are_one_and_complete_each_other() -> None:
    fine = log([0.4, 10.4, 20.4], util_pct=[50, 60, np.nan], power_w=[100, 110, 120])
    coarse = log([0, 10, 20, 30], "y", util_pct=[5, 6, 7, 8], mem_util_pct=[1, 2, 3, 4])
    for parts in ([fine, coarse], [coarse, fine]):
        merged = merge(parts)
        assert seconds_of(merged) == [0.4, 10.4, 20.4, 30]
        assert merged.gpu["util_pct"].tolist() == [50, 60, 7, 8]
        assert merged.gpu["mem_util_pct"].tolist() == [1, 2, 3, 4]
        assert merged.gpu["power_w"].fillna(-1).tolist() == [100, 110, 120, -1]
        assert merged.notes[0].startswith("3 samples lie at most 400 ms from one of another log")
        assert not merged.problems and not merged.taking_turns


@pytest.mark.parametrize(("late", "n"), [(3.3, 20), (3.4, 40), (5, 40), (6.6, 40), (6.7, 21)])
def test_samples_a_third_of_a_period_apart_are_two(late: float, n: int) -> None:
    one = [10.0 * k + 0.1 for k in range(20)]
    merged = merge([log(one, util_pct=[9.0] * 20), log([at + late for at in one], "y", util_pct=[9.0] * 20)])
    assert len(merged.gpu) == n and merged.taking_turns == (("0",) if n == 40 else ())


def test_it_is_the_period_nearby_that_counts() -> None:
    """A recorder that samples every second under load and every minute without."""
    one = [*map(float, range(100)), *(100.0 + 60 * k for k in range(40))]
    other = [at + 0.4 for at in one]
    merged = merge([log(one, util_pct=[50.0] * 140), log(other, "y", util_pct=[50.0] * 140)])
    at = np.array(seconds_of(merged))
    assert np.count_nonzero(at > 200) == 38, "where samples lie a minute apart, 0.4 s is near"
    assert np.count_nonzero(at < 99) == 198, "where they lie a second apart, it is not"


def test_a_dense_log_gives_the_times_and_three_logs_are_one() -> None:
    dense = log([1.0 * k for k in range(60)], util_pct=[1.0 * k for k in range(60)])
    sparse = log([0.25, 15.25, 30.25, 45.25], "w", power_w=[1, 2, 3, 4])
    third = log([1.0 * k + 0.1 for k in range(60)], "y", temp_c=[40.0] * 60)
    merged = merge([sparse, third, dense])
    assert len(merged.gpu) == 60 and not merged.taking_turns
    assert seconds_of(merged) == [round(k + 0.1, 1) for k in range(60)], "the dense log with the finer times"
    assert merged.gpu["util_pct"].tolist() == [*range(60)]
    assert merged.gpu["power_w"].dropna().tolist() == [1, 2, 3, 4]


def test_reasons_are_taken_with_the_mask_of_what_their_log_tells() -> None:
    one = log([0.4, 10.4, 20.4], throttle_reasons=[4, np.nan, 0])
    other = log([0, 10, 20], "y", throttle_reasons=[1, 1, 1], throttle_known=[1, 1, 1])
    merged = merge([one, other]).gpu
    assert merged["throttle_reasons"].tolist() == [4, 1, 0]
    assert merged["throttle_known"].fillna(-1).tolist() == [-1, 1, -1]


def test_logs_that_follow_each_other_and_other_gpus_are_left() -> None:
    first, second = log([0, 10, 20], util_pct=[1, 2, 3]), log([30, 40, 50], util_pct=[4, 5, 6])
    assert len(merge([first, second]).gpu) == 6 and not merge([first, second]).notes
    other = log([0.1, 10.1, 20.1], util_pct=[1, 2, 3])
    other = Telemetry(gpu=other.gpu.assign(gpu="1"), gpus=conform(pd.DataFrame({"gpu": ["1"]}), TABLES["gpus"]))
    assert len(merge([first, other]).gpu) == 6


@pytest.mark.parametrize("late", [0.1, 0.25, 0.45])
def test_gpus_of_one_number_that_may_be_of_two_machines_keep_all_samples(late: float) -> None:
    """Whatever the phase of the recorders; beside another tool, or with an uuid, near samples are one."""
    n = 120
    first = log([1.0 * k for k in range(n)], util_pct=[90.0 + k % 3 for k in range(n)])
    second = log([k + late for k in range(n)], util_pct=[92.0 + k % 3 for k in range(n)])
    bare = [replace(part, gpus=conform(pd.DataFrame({"gpu": ["0"]}), TABLES["gpus"])) for part in (first, second)]
    merged = merge(bare)
    assert len(merged.gpu) == 2 * n and merged.gpu["util_pct"].mean() == 92.0
    assert merged.notes[0].startswith("Logs that overlap in time name GPU 0 by number alone") and len(merged.notes) == 1
    assert merged.taking_turns == ("0",)
    if late < 1 / 3:
        assert len(merge([first, second]).gpu) == n
        assert len(merge([bare[0], replace(bare[1], reader="y")]).gpu) == n


@pytest.mark.slow
@given(
    st.floats(0.5, 60).map(lambda s: round(s, 3)),
    st.floats(0, 1).map(lambda share: round(share, 3)),
    st.integers(8, 40),
)
def test_two_equal_recorders_never_make_gaps(period: float, share: float, n: int) -> None:
    one = [round(period * k, 4) for k in range(n)]
    other = [round(at + share * period, 4) for at in one]
    merged = merge([log(one, util_pct=[50.0] * n), log(other, "y", util_pct=[50.0] * n)])
    step = np.diff(seconds_of(merged))
    assert step.max() <= max(3 * np.median(step), 3.0) + 1e-3
    assert set(one) <= set(seconds_of(merged)) or set(other) <= set(seconds_of(merged))


def work(n: int) -> np.ndarray:
    t = np.arange(n)
    wave = np.clip(60 + 30 * np.sin(t / 60) + np.random.default_rng(0).normal(0, 8, n), 0, 100)
    return np.where((t < n // 4) | ((t // 75) % 4 == 3), 0, wave).round()


HEAD = "#Date Time gpu sm mem enc dec\n#YYYYMMDD HH:MM:SS Idx % % % %\n"


def two_logs(folder: Path, period: float, late: float, drift: float = 0.0, n: int = 3000) -> None:
    """nvidia-smi dmon, and the query beside it that much later, by ``drift`` more each second."""
    at, util = np.arange(0.0, n - period, period), work(n)
    rows = [(BASE + pd.Timedelta(seconds=s), util[int(s)]) for s in at]
    lines = [f" {t:%Y%m%d %H:%M:%S} 0 {u:.0f} {u / 2:.0f} 0 0\n" for t, u in rows]
    (folder / "dmon.txt").write_text(HEAD + "".join(lines))
    rows = [(BASE + pd.Timedelta(seconds=s), util[min(int(s), n - 1)]) for s in at * (1 + drift) + late]
    lines = [f"{t:%Y/%m/%d %H:%M:%S.%f}, 0, NVIDIA A100-SXM4-80GB, {u:.0f} %, {70 + 3 * u:.2f} W" for t, u in rows]
    header = "timestamp, index, name, utilization.gpu [%], power.draw [W]"
    (folder / "gpu.csv").write_text("\n".join([header, *lines, ""]))


@pytest.mark.slow
def test_a_second_log_leaves_periods_gaps_and_means_as_they_are(tmp_path: Path) -> None:
    two_logs(tmp_path, 30, 0.37)
    alone, both = (gd.diagnose(gd.load_run(one, timezone="UTC")) for one in (tmp_path / "gpu.csv", tmp_path))
    for topic in ("sampling", "utilization", "power"):
        pd.testing.assert_frame_equal(
            alone.profiles[topic].to_frame().dropna(axis=1), both.profiles[topic].to_frame().dropna(axis=1), atol=1e-9
        )
    assert [one.rule for one in alone.findings] == [one.rule for one in both.findings]
    assert both.profiles["sampling"].median_period_s == 30


@pytest.mark.parametrize(("late", "drift"), [(0.25, 0.0), (0.4, 0.0), (0.0, 0.002)])
@pytest.mark.slow
def test_no_recorder_slows_down_where_two_take_turns(tmp_path: Path, late: float, drift: float) -> None:
    two_logs(tmp_path, 1, late, drift)
    assert "sampler-slows-down" not in [one.rule for one in gd.diagnose(gd.load_run(tmp_path, timezone="UTC")).findings]
