"""Sessions of the recorder whose wall clock was set between them: put right within a boot, and said otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from gpudiag.readers._io.record_format import COLUMNS
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry
from gpudiag.record.parquet import convert

NOON = pd.Timestamp("2026-03-01T12:00:00Z")
MID_COMMAS = "," * (len(COLUMNS) - 5)


def session(wall_s: float, mono_s: float, boot: str, host: str = "n1") -> str:
    """Ten minutes of one GPU, a sample a second, from ``wall_s`` after noon by a clock that may be wrong."""
    about = {"host": host} | ({"boot": boot} if boot else {})
    head = [f"# gpudiag-record 1 {json.dumps(about)}", '# gpu {"gpu": "0", "uuid": "GPU-1"}', ",".join(COLUMNS)]
    times = [(NOON + pd.Timedelta(wall_s + k, unit="s")).strftime("%Y-%m-%dT%H:%M:%S.%fZ") for k in range(600)]
    return "\n".join([*head, *(f"{at},{mono_s + k:.6f},0,50{MID_COMMAS},gpu" for k, at in enumerate(times))]) + "\n"


def read(folder: Path, *sessions: str) -> Telemetry:
    (folder / "gpu.csv").write_text("".join(sessions))
    return read_telemetry(folder / "gpu.csv")


def span_s(telemetry: Telemetry) -> tuple[float, float]:
    first, last = telemetry.gpu["time"].min(), telemetry.gpu["time"].max()
    return (first - NOON).total_seconds(), (last - NOON).total_seconds()


@pytest.mark.parametrize("wrong_s", [-3600.0, -5.0, 5.0, 700.0, 3600.0])
def test_within_a_boot_times_are_those_of_the_later_clock(wrong_s: float, tmp_path: Path) -> None:
    """The second session begins 900 s after the first, by the monotonic clock, and shows the right time."""
    sessions = session(wrong_s, 5000, "b1"), session(900, 5900, "b1")
    telemetry = read(tmp_path, *sessions)
    assert span_s(telemetry) == (0, 1499) and len(telemetry.gpu) == 1200
    assert [note for note in telemetry.notes if "clock that held at the end" in note]
    parquet = convert(tmp_path / "gpu.csv", tmp_path / "gpu.parquet")
    pd.testing.assert_frame_equal(read_telemetry(parquet).gpu, telemetry.gpu)


@pytest.mark.parametrize("wrong_s", [-3600.0, 3600.0])
def test_without_a_boot_id_it_is_said(wrong_s: float, tmp_path: Path) -> None:
    telemetry = read(tmp_path, session(wrong_s, 5000, ""), session(900, 5900, ""))
    assert any("was set between two sessions" in note for note in telemetry.notes)


@pytest.mark.parametrize(
    ("sessions"),
    [
        (session(0, 5000, ""), session(900, 5900, "")),
        (session(0, 5000, ""), session(900, 100, "")),  # restarted between them
        (session(0, 5000, "b1"), session(900, 100, "b2")),
        (session(0, 5000, "b1", "n1"), session(0, 90_000, "b2", "n2")),
    ],
)
def test_clocks_that_nobody_set_are_left_alone(sessions: tuple[str, str], tmp_path: Path) -> None:
    telemetry = read(tmp_path, *sessions)
    assert not telemetry.notes and span_s(telemetry)[0] == 0
