"""Tables that somebody holds in memory: of polars, and logs that pandas has read already."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import gpudiag as gd
from gpudiag.errors import InputError

SAMPLES = pd.DataFrame(
    {"time": pd.date_range("2026-03-10", periods=60, freq="1s", tz="UTC"), "gpu": "0", "util_pct": np.arange(60.0)}
)
HEADER = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W]\n"


def smi(path: Path) -> Path:
    rows = (f"2026/03/10 08:00:{s:02d}.000, {g}, NVIDIA A100, {s + g} %, 2000 MiB, 99.50 W\n"
            for s in range(60) for g in (0, 1))  # fmt: skip
    path.write_text(HEADER + "".join(rows))
    return path


def test_a_table_of_polars_is_read_as_that_of_pandas() -> None:
    read = gd.load_run(pl.from_pandas(SAMPLES))
    pd.testing.assert_frame_equal(read.gpu, gd.load_run(SAMPLES).gpu)
    pd.testing.assert_frame_equal(gd.load_run(pl.from_pandas(SAMPLES).to_arrow()).gpu, read.gpu)
    assert gd.diagnose(pl.from_pandas(SAMPLES)).profiles["sampling"].median_period_s == 1


@pytest.mark.parametrize("skip", [False, True])
def test_a_log_that_pandas_has_read_is_read_as_the_log(tmp_path: Path, skip: bool) -> None:
    path = smi(tmp_path / "gpu.csv")
    frame = pd.read_csv(path, skipinitialspace=skip)
    read = gd.load_run(frame, timezone="UTC")
    pd.testing.assert_frame_equal(read.gpu, gd.load_run(path, timezone="UTC").gpu)
    assert read.gpus["gpu"].tolist() == ["0", "1"]


def test_the_system_metrics_of_wandb_as_its_history_gives_them(tmp_path: Path) -> None:
    at = 1_773_129_600.5 + 15.0 * np.arange(40)
    frame = pd.DataFrame({"_timestamp": at, "_runtime": at - at[0], "system.gpu.0.gpu": np.arange(40.0)})
    frame["system.gpu.0.powerWatts"] = np.where(np.arange(40) % 7 == 3, np.nan, 200.0)
    frame.to_csv(tmp_path / "wandb.csv")
    read = gd.load_run(frame)
    pd.testing.assert_frame_equal(read.gpu, gd.load_run(tmp_path / "wandb.csv").gpu)
    assert read.gpu["util_pct"].tolist() == [*range(40)] and read.gpu["power_w"].isna().sum() == 6


def test_an_index_with_a_name_is_a_column(tmp_path: Path) -> None:
    frame = pd.read_csv(smi(tmp_path / "gpu.csv"), index_col=0)
    assert len(gd.load_run(frame, timezone="UTC").gpu) == 120


def test_other_tables_are_refused_with_what_was_expected_and_no_path(tmp_path: Path) -> None:
    empty = pd.read_csv(smi(tmp_path / "gpu.csv")).iloc[:0]
    with pytest.raises(InputError, match=r"^DataFrame: expected samples .columns time, gpu"):
        gd.load_run(pd.DataFrame({"a": [1], "b": [2]}))
    with pytest.raises(InputError, match=r"^DataFrame: holds no row"):
        gd.load_run(empty)
    broken = pd.read_csv(tmp_path / "gpu.csv").assign(timestamp="never")
    with pytest.raises(InputError) as caught:
        gd.load_run(broken, timezone="UTC")
    assert str(caught.value).startswith("DataFrame") and "/" not in str(caught.value).split(" (")[0]
