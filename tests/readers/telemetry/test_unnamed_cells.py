"""Rows with more cells than the header has names: what a cell holds tells which of them has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gpudiag.readers._delimited.unnamed_cells import aligned
from gpudiag.readers.telemetry import read_telemetry

UUID = "GPU-27b94a00-ed54-5c24-b1fd-00000000000"


def rows_of(head: str, row: str, folder: Path, **options: Any) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Eight ticks of two GPUs; s is the second and g the GPU of a row."""
    lines = [row.format(s=s, g=g, u=UUID + str(g), n=2 * s + g) for s in range(8) for g in range(2)]
    (folder / "gpu.csv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    telemetry = read_telemetry(folder / "gpu.csv", timezone="UTC", **options)
    assert not any(problem.lost for problem in telemetry.problems), telemetry.problems
    return telemetry.gpu, telemetry.notes


SMI = "2026/05/06 10:06:4{s}.521, {g}, 5{s}"
BARE = SMI + ", 300{s}, 81559, 70.2{s}"
UNITS = SMI + " %, 300{s} MiB, 81559 MiB, 70.2{s} W"
HOME = "time,gpu_index,utilization.gpu,memory.used,memory.total,power.draw"
QUERY = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]"


@pytest.mark.parametrize(
    ("head", "row"),
    [
        (HOME, "2026-05-06 10:06:4{s}," + BARE),
        (HOME, "2026-05-06 10:06:4{s}," + UNITS),
        (HOME, "17780620{s}," + BARE),
        (HOME.replace("time", "timestamp"), "2026-05-06T10:06:4{s}Z," + BARE),
        (QUERY, "2026-05-06 10:06:4{s}, " + UNITS),
        (QUERY, "2026-05-06 10:06:4{s}," + BARE),
        (QUERY, "17780620{s}, " + UNITS),
        (HOME, "{n}," + BARE),
        (HOME, BARE + ", 1980"),
        (HOME, UNITS + ","),
        (QUERY.replace("memory.total [MiB], ", ""), UNITS.replace("81559 MiB", "1980 MHz")),
        (HOME, BARE.replace("{g}", "{g}, {u}")),
        (QUERY, UNITS.replace("{g}", "{g}, {u}")),
    ],
)  # fmt: skip
def test_named_cells_are_found(head: str, row: str, tmp_path: Path) -> None:
    gpu, _ = rows_of(head, row, tmp_path)
    assert gpu["gpu"].value_counts().to_dict() == {"0": 8, "1": 8}
    assert gpu["time"].iloc[:8].tolist() == [pd.Timestamp(f"2026-05-06 10:06:4{s}.521", tz="UTC") for s in range(8)]
    for name, first, step in (("util_pct", 50, 1), ("mem_used_mib", 3000, 1), ("power_w", 70.2, 0.01)):
        assert gpu[name].iloc[:8].tolist() == pytest.approx([first + step * s for s in range(8)]), name


def test_the_date_of_a_shell_is_the_time_where_the_header_names_none(tmp_path: Path) -> None:
    for head in (HOME.replace("time,", ""), QUERY.replace("timestamp, ", "")):
        gpu, _ = rows_of(head, "2026-05-06 10:06:4{s}, {g}, 5{s}, 300{s}, 81559, 70.2{s}", tmp_path)
        assert gpu["time"].iloc[7] == pd.Timestamp("2026-05-06 10:06:47", tz="UTC") and gpu["util_pct"].iloc[7] == 57


def test_a_name_for_which_two_cells_fit_is_left_out_and_said(tmp_path: Path) -> None:
    row = "2026/05/06 10:06:4{s}.521, 5{s}, 6{s}, {u}, 71.5"
    gpu, notes = rows_of("time,gpu_util,gpu_uuid,power.draw", row, tmp_path)
    assert gpu["power_w"].unique().tolist() == [71.5] and "util_pct" not in gpu
    assert any("gpu_util cannot be told" in note for note in notes)


SNAPSHOT = "index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
NAMES, TARGETS = ["index", "util", "used", "total"], ["index", "util_pct", "mem_used_mib", "mem_total_mib"]


@pytest.mark.parametrize("units", [(" %", " MiB"), ("", "")])
@pytest.mark.parametrize("busy", [0, 7])
@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_a_snapshot_of_gpus_with_a_comma_too_many(gpus: int, busy: int, units: tuple[str, str], tmp_path: Path) -> None:
    share, size = units
    rows = [f"{g}, {busy * g}{share}, {10 + g}{size}, 24564{size},\n" for g in range(gpus)]
    (tmp_path / "log.csv").write_text(SNAPSHOT + "".join(rows))
    gpu = read_telemetry(tmp_path / "log.csv", timezone="UTC").gpu
    assert gpu["gpu"].tolist() == [str(g) for g in range(gpus)]
    assert gpu["util_pct"].tolist() == [busy * g for g in range(gpus)]
    assert gpu["mem_used_mib"].tolist() == [10 + g for g in range(gpus)] and set(gpu["mem_total_mib"]) == {24564}


def test_a_numbering_stands_in_front_where_the_columns_fit_better_behind_it() -> None:
    rows = [[str(n), "0", f"{n} %", f"{900 + n} MiB", "24564 MiB"] for n in range(5)]
    assert aligned(NAMES, TARGETS, rows) == ["", *NAMES]


def test_one_row_shows_no_numbering() -> None:
    assert aligned(["util", "used"], ["util_pct", "mem_used_mib"], [["7", "8", "9"]]) == ["util", "used", ""]


def test_what_counts_up_and_may_be_either_is_left_out() -> None:
    rows = [[str(n), "60", "900"] for n in range(5)]
    assert aligned(["util", "power"], ["util_pct", "power_w"], rows) == ["", "", ""]


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("time                 gpu  util(%)  power(W)", "2026-05-06 10:06:4{s}  {g}   5{s}   70"),
        ("gpu  time                 util(%)  power(W)", "{g}    2026-05-06 10:06:4{s}  5{s}   70"),
        ("timestamp index util power", "2026-05-06 10:06:4{s} {g} 5{s} 70"),
        ("timestamp index util power", "2026-05-06T10:06:4{s} {g} 5{s} 70"),
        ("     timestamp      gpu_index  gpu_util  power_w", "{n}  2026-05-06 10:06:4{s}  {g}  5{s}  70"),
    ],
)
def test_a_date_that_a_blank_parts_from_its_time_is_read(head: str, row: str, tmp_path: Path) -> None:
    gpu, notes = rows_of(head, row, tmp_path)
    assert sorted(set(gpu["time"])) == [pd.Timestamp(f"2026-05-06 10:06:4{s}", tz="UTC") for s in range(8)]
    assert gpu["util_pct"].tolist() == [50 + s for s in range(8)] * 2 and not any("date" in note for note in notes)
