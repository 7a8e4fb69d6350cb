"""Rows without header and units: read where the ranges leave one reading, else --columns are asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpudiag.errors import InputError
from gpudiag.hardware import is_memory_size
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

STAMPS = ("2026/02/15 06:12:{s:02d}.455, ", "2026-02-15 06:12:{s:02d},", "17711359{s:02d};")


def read(cells: Callable[[int, int], list[object]], stamp: str, folder: Path, gpus: int = 1) -> Telemetry:
    separator = stamp.split("}")[-1].split("5")[-1]
    lines = [stamp.format(s=s) + separator.join(map(str, cells(s, g))) for s in range(12) for g in range(gpus)]
    (folder / "log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_telemetry(folder / "log", timezone="UTC")


@pytest.mark.parametrize("stamp", STAMPS)
@pytest.mark.parametrize("total", [24564, 16384, 81559])
def test_index_two_shares_used_and_a_size_that_boards_have(stamp: str, total: int, tmp_path: Path) -> None:
    telemetry = read(lambda s, g: [g, 8 * s, 3 * s, 900 + s + g, total], stamp, tmp_path, gpus=2)
    gpu = telemetry.gpu
    assert gpu["gpu"].tolist() == ["0"] * 12 + ["1"] * 12 and gpu["util_pct"].tolist()[:12] == [
        8 * s for s in range(12)
    ]
    assert gpu["mem_util_pct"].tolist()[11] == 33 and gpu["mem_used_mib"].tolist()[12:14] == [901, 902]
    assert set(gpu["mem_total_mib"]) == {total}
    assert any("ranges as timestamp, index, utilization.gpu, utilization.memory" in note for note in telemetry.notes)


@pytest.mark.parametrize(
    ("cells", "columns"),
    [
        (lambda s, g: [8 * s, 3 * s, 900 + s, 24564], {"util_pct", "mem_util_pct"}),
        (lambda s, g: [0, 8 * s, 900 + s, 24564], {"util_pct"}),
        (lambda s, g: [8 * s, 900 + s, 24564], {"util_pct"}),
    ],
)
def test_fewer_columns(cells: Callable[[int, int], list[object]], columns: set[str], tmp_path: Path) -> None:
    gpu = read(cells, STAMPS[0], tmp_path).gpu
    assert set(gpu) == {"time", "gpu", "mem_used_mib", "mem_total_mib"} | columns
    assert gpu["util_pct"].tolist() == [8 * s for s in range(12)] and gpu["mem_used_mib"].tolist()[0] == 900


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (lambda s, g: [g, 8 * s, 3 * s, 900 + s, 21777], "no board has this size"),
        (lambda s, g: [g, 8 * s, 3 * s, 900 + s, 24564 - s], "a size does not change"),
        (lambda s, g: [g, 8 * s, 40 + s, 900 + s, 24564], "a temperature"),
        (lambda s, g: [g, 60 + s, 3 * s, 900 + s, 24564], "a temperature, or a GPU always busy"),
        (lambda s, g: [g, 3 * s, 8 * s, 900 + s, 24564], "the memory controller is not busier than the GPU"),
        (lambda s, g: [g, 8 * s, 3 * s, 24564, 900 + s], "total before used, or free"),
        (lambda s, g: [g, 0, 0, 24000 + s, 24564], "free memory of an idle GPU"),
        (lambda s, g: [0, 2 * s, 900 + s, 24564], "index and utilization, or both shares of an idle GPU"),
        (lambda s, g: [8 * s, 9000 + s, 15884], "the load and memory of a PC"),
        (lambda s, g: [8 * s, 3 * s, 9000 + s, 15884], "load, waiting and memory of a PC"),
        (lambda s, g: [0, 8 * s, 9000 + s, 15884], "a column of 0 is no index"),
        (lambda s, g: [g, 8 * s, 3 * s, 70.25, 900 + s, 24564], "a power between"),
    ],
)
@pytest.mark.parametrize("stamp", STAMPS)
def test_what_ranges_leave_open_is_asked_for(
    cells: Callable[[int, int], list[object]], why: str, stamp: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="--columns"):
        read(cells, stamp, tmp_path)


def test_beside_gpus_that_take_turns_a_board_may_have_any_size(tmp_path: Path) -> None:
    gpu = read(lambda s, g: [g, 8 * s, 900 + s, 15884], STAMPS[0], tmp_path, gpus=2).gpu
    assert set(gpu["gpu"]) == {"0", "1"} and set(gpu["mem_total_mib"]) == {15884}


def test_one_row_has_no_range(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(STAMPS[0].format(s=1) + "0, 8, 3, 900, 24564\n", encoding="utf-8")
    with pytest.raises(InputError, match="--columns"):
        read_telemetry(tmp_path / "log", timezone="UTC")


@pytest.mark.parametrize(
    ("mib", "known"),
    [
        (81559, True),
        (24564, True),
        (15360, True),
        (11441, True),
        (8192, True),
        (143771, True),
        (21777, False),
        (15884, False),
        (65536, False),
        (900, False),
    ],
)
def test_sizes_of_boards(mib: int, known: bool) -> None:
    assert is_memory_size(float(mib)) is known
