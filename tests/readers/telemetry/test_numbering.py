"""Logs that give the uuid or bus id of a GPU and no index: GPUs get the numbers that nvidia-smi gives them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

START = pd.Timestamp("2026-03-10 08:00")
UUIDS = [f"GPU-{number:08x}-1111-2222-3333-444455556666" for number in (0xD, 0x3, 0xF, 0x1, 0x8, 0x2, 0xA, 0x6)]
BUS_IDS = [f"00000000:{number:02X}:00.0" for number in (0x07, 0x0F, 0x47, 0x4E, 0x87, 0x90, 0xB7, 0xBD)]


def read(column: str, names: list[str], folder: Path, *, begin: int = 0, period_s: float = 2.0) -> Telemetry:
    """A log of GPUs in the order of their indices, of which the first rows are gone; each GPU has its own load."""
    rows = [
        f"{START + pd.Timedelta(seconds=tick * period_s, milliseconds=4 * gpu):%Y/%m/%d %H:%M:%S.%f}"[:-3]
        + f", {name}, {10 * gpu} %"
        for tick in range(30)
        for gpu, name in enumerate(names)
    ]
    text = "\n".join([f"timestamp, {column}, utilization.gpu [%]", *rows[begin:]]) + "\n"
    (folder / "gpu.csv").write_text(text)
    return read_telemetry(folder / "gpu.csv", timezone="UTC")


@pytest.mark.parametrize(("column", "names"), [("uuid", UUIDS), ("pci.bus_id", BUS_IDS)])
@pytest.mark.parametrize("gpus", [2, 4, 8])
@pytest.mark.parametrize("begin", [0, 1, 3])
def test_gpus_have_their_numbers_wherever_the_log_begins(
    column: str, names: list[str], gpus: int, begin: int, tmp_path: Path
) -> None:
    telemetry = read(column, names[:gpus], tmp_path, begin=begin)
    loads = telemetry.gpu.groupby("gpu")["util_pct"].agg(["min", "max"])
    assert loads.to_numpy().tolist() == [[10.0 * gpu, 10.0 * gpu] for gpu in range(gpus)]
    assert [note for note in telemetry.notes if "they were numbered in the order" in note]


def test_one_gpu_needs_no_note(tmp_path: Path) -> None:
    assert read("uuid", UUIDS[:1], tmp_path).notes == ()


def test_rows_without_pauses_keep_their_order(tmp_path: Path) -> None:
    telemetry = read("uuid", UUIDS[:4], tmp_path, begin=3, period_s=0.016)
    assert telemetry.gpu.groupby("gpu")["util_pct"].first().tolist() == [30.0, 0.0, 10.0, 20.0]
