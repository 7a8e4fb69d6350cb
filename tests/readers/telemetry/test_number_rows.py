"""Rows of numbers that nothing names: refused with the remedy, and read where their columns are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.errors import ConfigError, UnknownInput
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

JETSON = [
    f"2024-05-01 05:32:{at:02d}, {2.5 + at}%,344,896M,41.8,  {p}   " for at, p in enumerate(["466 mW", "6.69 W"] * 20)
]
SHELL = [f"15:38:{at:02d}.359 {at}, 636, 2.23" for at in range(30)]
WATTS = [f"{28 + at / 10:.2f}" for at in range(30)]
SHARES = ["307200000", *(f"{at}%" for at in range(30))]


def write(lines: list[str], folder: Path, encoding: str = "utf-8") -> Path:
    (folder / "log.txt").write_text("\n".join(lines) + "\n", encoding=encoding)
    return folder / "log.txt"


def read(lines: list[str], columns: str, folder: Path, **options: Any) -> Telemetry:
    return read_telemetry(write(lines, folder), columns=tuple(columns.split(",")), timezone="UTC", **options)


@pytest.mark.parametrize("lines", [JETSON, SHELL, WATTS, SHARES], ids=["jetson", "shell", "watts", "shares"])
def test_they_are_refused_with_the_option_that_names_them(lines: list[str], tmp_path: Path) -> None:
    with pytest.raises(UnknownInput, match=r"--columns, or as columns in run\.toml"):
        read_telemetry(write(lines, tmp_path))


def test_a_column_may_change_its_unit_from_row_to_row(tmp_path: Path) -> None:
    found = read(JETSON, "timestamp,-,ram_used_mb,mem_used_mib,temp_c,power_w", tmp_path).gpu
    assert found["power_w"].tolist() == [0.466, 6.69] * 20 and set(found["mem_used_mib"]) == {896}
    assert found["time"].iloc[3] == pd.Timestamp("2024-05-01 05:32:03", tz="UTC")
    milliwatts = read(JETSON, "timestamp,-,ram_used_mb,mem_used_mib,temp_c,power_mw", tmp_path).gpu
    assert milliwatts["power_w"].tolist() == pytest.approx([0.466, 6.69] * 20)
    rows = [f"{row.replace('896M', '1.5G' if at % 2 else '512M')}" for at, row in enumerate(JETSON)]
    found = read(rows, "timestamp,-,ram_used_mb,mem_used_mib,temp_c,power_w", tmp_path).gpu
    assert found["mem_used_mib"].tolist() == [512, 1536] * 20
    found = read([row.replace("896M", "2G") for row in JETSON], "timestamp,-,-,mem_used_mib,-,power_w", tmp_path).gpu
    assert set(found["mem_used_mib"]) == {2048}


def test_a_shell_may_set_a_blank_between_the_time_and_the_row(tmp_path: Path) -> None:
    found = read(SHELL, "timestamp,util_pct,mem_used_mib,power_w", tmp_path).gpu
    assert found["util_pct"].tolist() == list(range(30)) and set(found["mem_used_mib"]) == {636}
    assert found["time"].iloc[1] - found["time"].iloc[0] == pd.Timedelta(seconds=1)


def test_one_column_is_enough(tmp_path: Path) -> None:
    found = read(WATTS, "power_w", tmp_path, period_s=0.5).gpu
    assert found["power_w"].tolist() == [float(line) for line in WATTS]
    assert found["time"].iloc[-1] - found["time"].iloc[0] == pd.Timedelta(seconds=14.5)
    telemetry = read(SHARES, "util_pct", tmp_path)
    assert telemetry.gpu["util_pct"].tolist() == list(range(30))
    assert sum(problem.count for problem in telemetry.problems) == 1


def test_text_between_blocks_of_rows_tells_how_many_gpus_there_are(tmp_path: Path) -> None:
    """Some blocks are torn, so that they are fewer than nine in ten."""
    lines = [
        line for at in range(60) for line in (*(["97", "50", "3", "0"] if at % 4 else ["9750", "3", "0"]), "util[]")
    ]
    telemetry = read(lines, "util_pct", tmp_path)
    assert telemetry.gpu.groupby("gpu")["util_pct"].agg(["min", "max"]).to_numpy().tolist() == [
        [v, v] for v in (97, 50, 3, 0)
    ]


def test_as_many_columns_must_be_named_as_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"2 columns were named .* and its rows have 6"):
        read(JETSON, "timestamp,util_pct", tmp_path)


@pytest.mark.parametrize(
    "text",
    ["Hello, this is prose.\n" * 20, "loss 0.5\nloss 0.4\n" * 20, "a,b\nc,d\n" * 10, "x = 5\n" * 30],
)
def test_names_make_no_table_of_other_text(text: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(UnknownInput):
        read_telemetry(tmp_path / "x", columns=("power_w",))


@pytest.mark.parametrize(
    "columns", ['"timestamp, util_pct,mem_used_mib,power_w"', '["timestamp", "util_pct", "mem_used_mib", "power_w"]']
)
def test_a_run_toml_names_them_as_a_list_or_as_the_option_does(columns: str, tmp_path: Path) -> None:
    write(SHELL, tmp_path, "utf-16")
    (tmp_path / "run.toml").write_text(f'telemetry = "log.txt"\ntimezone = "UTC"\ncolumns = {columns}\n')
    run = gd.load_run(tmp_path)
    assert run.gpu["util_pct"].tolist() == list(range(30)) and set(run.gpu["power_w"]) == {2.23}
