"""Logs of several GPUs in the hour that autumn repeats: each GPU keeps its samples, and all share one decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from gpudiag.readers.telemetry import read_telemetry

ZONE = "Europe/Berlin"
TURN = pd.Timestamp("2026-10-25 01:00", tz="UTC")
STEP = pd.Timedelta("10s")
REPEATED = "timestamp in an hour that a clock change repeats"
Row = tuple[pd.Timestamp, int]
Form = Callable[[Sequence[Row]], str]


@cache
def local(at: pd.Timestamp) -> str:
    """The clock on the wall; many cases ask for the same moments."""
    return f"{at.tz_convert(ZONE):%Y-%m-%d %H:%M:%S}"


def taken(start_min: int, end_min: int, gpus: int) -> list[Row]:
    """Samples by UTC, minutes from the turn of the clock, GPU after GPU in each tick."""
    ticks = pd.date_range(TURN + pd.Timedelta(minutes=start_min), TURN + pd.Timedelta(minutes=end_min), freq=STEP)
    return [(tick, gpu) for tick in ticks[:-1] for gpu in range(gpus)]


def smi(rows: Sequence[Row]) -> str:
    lines = [f"{local(at).replace('-', '/')}.000, {gpu}, {at.minute} %" for at, gpu in rows]
    return "\n".join(["timestamp, index, utilization.gpu [%]", *lines]) + "\n"


def long(rows: Sequence[Row]) -> str:
    lines = [f"{local(at)},{gpu},{at.minute}" for at, gpu in rows]
    return "\n".join(["time,gpu,gpu_util", *lines]) + "\n"


def wide(rows: Sequence[Row]) -> str:
    gpus = sorted({gpu for _, gpu in rows})
    ticks = list(dict.fromkeys(at for at, _ in rows))
    lines = [local(at) + f",{at.minute}" * len(gpus) for at in ticks]
    return "\n".join(["time," + ",".join(f"gpu{gpu}_util" for gpu in gpus), *lines]) + "\n"


def one_after_the_other(rows: Sequence[Row]) -> str:
    return long(sorted(rows, key=lambda row: row[1]))


FORMS: list[Form] = [smi, long, wide, one_after_the_other]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("start_min", "end_min"), [(-50, 50), (10, 90), (-90, 50), (-30, 15), (-200, 200)])
@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_every_sample_comes_back(form: Form, start_min: int, end_min: int, gpus: int, tmp_path: Path) -> None:
    rows = taken(start_min, end_min, gpus)
    (tmp_path / "gpu.csv").write_text(form(rows))
    read = read_telemetry(tmp_path / "gpu.csv", timezone=ZONE)
    times = read.gpu["time"].dt.as_unit("ns").astype("int64")
    found = list(zip(times, read.gpu["gpu"].astype(int), read.gpu["util_pct"], strict=True))
    assert sorted(found) == sorted((at.value, gpu, at.minute) for at, gpu in rows)
    assert [str(problem) for problem in read.problems] == []


@pytest.mark.parametrize("form", FORMS)
def test_what_nothing_decides_is_counted_and_taken_alike_for_all_gpus(form: Form, tmp_path: Path) -> None:
    rows = taken(10, 50, 3)
    (tmp_path / "gpu.csv").write_text(form(rows))
    read = read_telemetry(tmp_path / "gpu.csv", timezone=ZONE)
    for _, own in read.gpu.groupby("gpu"):
        assert list(own["time"]) == [at - pd.Timedelta("1h") for at, gpu in rows if gpu == 0]
    assert {problem.kind: problem.count for problem in read.problems} == {REPEATED: len(rows)}


def test_a_gpu_that_joins_late_goes_with_those_that_were_there(tmp_path: Path) -> None:
    rows = [(at, gpu) for at, gpu in taken(-50, 50, 2) if gpu == 0 or at > TURN + pd.Timedelta("20min")]
    (tmp_path / "gpu.csv").write_text(smi(rows))
    read = read_telemetry(tmp_path / "gpu.csv", timezone=ZONE)
    assert [datetime.fromisoformat(str(at)) for at in read.gpu["time"][read.gpu["gpu"] == "1"]] == [
        (TURN + pd.Timedelta("20min")).to_pydatetime() + timedelta(seconds=10 * k) for k in range(1, 180)
    ]
