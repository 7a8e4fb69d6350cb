"""Frames of samples as pandas saves them, and JSON with a row under each time: the same samples in any form."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpudiag.errors import UnknownInput
from gpudiag.readers._io.source import HEAD_BYTES
from gpudiag.readers.telemetry import read_telemetry

N = 40
AFTER_MS = np.arange(N) * 2000 + np.random.default_rng(0).integers(0, 300, N)
TIMES = pd.DatetimeIndex(pd.Timestamp("2026-03-01 10:00:00") + pd.to_timedelta(AFTER_MS, unit="ms")).as_unit("ms")
VALUES = pd.DataFrame({"gpu_util": np.arange(N) * 2, "gpu_mem_mb": 1000 + np.arange(N), "power_w": 100 + np.arange(N)})
EPOCH_MS = TIMES.astype("int64")


def check(path: Path, *, dated: bool = True, gpus: int = 1) -> None:
    gpu = read_telemetry(path, timezone="UTC").gpu
    assert gpu["gpu"].unique().tolist() == [str(n) for n in range(gpus)]
    for _, rows in gpu.groupby("gpu"):
        for name, column in {"util_pct": "gpu_util", "mem_used_mib": "gpu_mem_mb", "power_w": "power_w"}.items():
            assert rows[name].tolist() == VALUES[column].tolist()
        since_ms = (rows["time"] - rows["time"].iloc[0]).dt.total_seconds() * 1000
        assert since_ms.tolist() == pytest.approx((AFTER_MS - AFTER_MS[0]).tolist(), abs=1)
        assert not dated or rows["time"].iloc[0] == TIMES[0].tz_localize("UTC")


@pytest.mark.parametrize("date_format", ["iso", "epoch"])
@pytest.mark.parametrize("orient", ["columns", "index", "split"])
def test_json_of_a_frame_with_times_as_its_index(orient: str, date_format: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of newer pandas: it does not want to write numbers
        text = VALUES.set_index(TIMES.as_unit("ns")).to_json(orient=orient, date_format=date_format)  # type: ignore[call-overload]
    (tmp_path / "gpu.json").write_text(text, encoding="utf-8")
    check(tmp_path / "gpu.json")


@pytest.mark.parametrize("orient", ["columns", "index", "split", "records", "table"])
def test_json_of_a_frame_with_times_as_a_column(orient: str, tmp_path: Path) -> None:
    VALUES.assign(timestamp=TIMES.astype(str)).to_json(tmp_path / "gpu.json", orient=orient)  # type: ignore[call-overload]
    check(tmp_path / "gpu.json")


@pytest.mark.parametrize(
    ("index", "dated"),
    [
        (TIMES, True),
        (pd.Index(EPOCH_MS), True),
        (pd.Index(EPOCH_MS / 1000), True),
        (TIMES - TIMES[0], False),
    ],
    ids=["times", "milliseconds since 1970", "seconds since 1970", "durations"],
)
@pytest.mark.parametrize("name", [None, "time"])
def test_parquet_of_a_frame_with_times_as_its_index(
    index: pd.Index, dated: bool, name: str | None, tmp_path: Path
) -> None:
    VALUES.set_index(index.rename(name if dated or name is None else "elapsed")).to_parquet(tmp_path / "gpu.parquet")
    check(tmp_path / "gpu.parquet", dated=dated)


def rows() -> list[dict[str, int]]:
    return [{str(name): int(value) for name, value in row.items()} for row in VALUES.to_dict("records")]


@pytest.mark.parametrize(
    "key",
    [lambda k: TIMES[k].isoformat(), lambda k: str(EPOCH_MS[k]), lambda k: f"{EPOCH_MS[k] / 1000:.3f}"],
    ids=["iso", "milliseconds", "seconds"],
)
@pytest.mark.parametrize(
    ("held", "gpus"),
    [
        (lambda row: row, 1),
        (lambda row: {"gpu0": row, "gpu1": row}, 2),
        (lambda row: [row, row], 2),
        (lambda row: {"gpus": [{"index": 0, **row}, {"index": 1, **row}]}, 2),
    ],
    ids=["plain", "by GPU", "a list", "a list by name"],
)
def test_rows_under_their_times(
    key: Callable[[int], str], held: Callable[[dict[str, int]], Any], gpus: int, tmp_path: Path
) -> None:
    document = {key(k): held(row) for k, row in enumerate(rows())}
    (tmp_path / "gpu.json").write_text(json.dumps(document), encoding="utf-8")
    check(tmp_path / "gpu.json", gpus=gpus)


def test_members_under_other_names_are_no_rows(tmp_path: Path) -> None:
    trials = [{**row, "time": 3.5} for row in rows()]  # how long each took
    for keys, held in (
        (map(str, range(N)), rows()),
        ((f"step {k}" for k in range(N)), rows()),
        (map(str, range(N)), trials),
    ):
        (tmp_path / "gpu.json").write_text(json.dumps(dict(zip(keys, held, strict=True))), encoding="utf-8")
        with pytest.raises(UnknownInput):
            read_telemetry(tmp_path / "gpu.json", timezone="UTC")


@pytest.mark.slow
@pytest.mark.parametrize("orient", ["columns", "index", "split"])
def test_a_frame_larger_than_the_head_of_a_file_is_read_as_a_small_one(orient: str, tmp_path: Path) -> None:
    large = pd.concat([VALUES] * 200, ignore_index=True)
    times = pd.date_range(TIMES[0], periods=len(large), freq="2s")
    text = large.set_index(times).to_json(orient=orient, date_format="iso")  # type: ignore[call-overload]
    assert len(text) > HEAD_BYTES
    (tmp_path / "gpu.json").write_text(text, encoding="utf-8")
    gpu = read_telemetry(tmp_path / "gpu.json", timezone="UTC").gpu
    assert gpu["power_w"].tolist() == large["power_w"].tolist()
    assert gpu["time"].tolist() == times.tz_localize("UTC").tolist()


def test_members_of_one_time_under_numbers_are_no_rows(tmp_path: Path) -> None:
    gpus = {str(n): {"timestamp": "2026-03-01 10:00:00", "gpu_util": 30 + 60 * n, "power_w": 90} for n in range(2)}
    (tmp_path / "gpu.jsonl").write_text(f"{json.dumps(gpus)}\n", encoding="utf-8")
    with pytest.raises(UnknownInput):
        read_telemetry(tmp_path / "gpu.jsonl", timezone="UTC")
