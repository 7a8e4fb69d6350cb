"""dmon: columns by header name, missing cells, the three ways to carry time, torn rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

HEAD = "# gpu   pwr gtemp mtemp    sm   mem  mclk  pclk pviol tviol    fb rxpci txpci\n"
UNITS = "# Idx     W     C     C     %     %   MHz   MHz     %  bool    MB  MB/s  MB/s\n"
ROW = "    0   224    46     -    97    41  6250  1695     0     0 20480    14     2\n"


def read(text: str, folder: Path, **options: object) -> Telemetry:
    path = folder / "dmon.log"
    path.write_text(text, encoding="utf-8")
    return read_telemetry(path, timezone="UTC", **options)  # type: ignore[arg-type]


def test_every_column_goes_where_its_name_says(tmp_path: Path) -> None:
    row = read(HEAD + UNITS + ROW, tmp_path).gpu.iloc[0]
    wanted = {
        "power_w": 224, "temp_c": 46, "util_pct": 97, "mem_util_pct": 41, "mem_clock_mhz": 6250, "sm_clock_mhz": 1695,
        "mem_used_mib": 20480, "pcie_rx_mib_s": 14, "pcie_tx_mib_s": 2, "throttle_reasons": 0,
    }  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted
    assert "mem_temp_c" not in row, "a column of dashes is unknown, not zero"


def test_a_dash_is_missing_in_a_column_that_is_else_known(tmp_path: Path) -> None:
    gpu = read("# gpu     sm    mem\n# Idx      %      %\n    0      0      -\n    0      -      5\n", tmp_path).gpu
    assert gpu["util_pct"].tolist()[0] == 0 and np.isnan(gpu["util_pct"].tolist()[1])
    assert np.isnan(gpu["mem_util_pct"].tolist()[0]) and gpu["mem_util_pct"].tolist()[1] == 5


@pytest.mark.parametrize(("pviol", "tviol", "mask"), [(0, 0, 0), (49, 0, 0), (50, 0, 4), (100, 1, 0x24), (0, 1, 0x20)])
def test_violations_become_reason_bits(pviol: int, tviol: int, mask: int, tmp_path: Path) -> None:
    text = f"# gpu pviol tviol\n# Idx     %  bool\n    0 {pviol} {tviol}\n"
    assert read(text, tmp_path).gpu["throttle_reasons"].tolist() == [mask]


@pytest.mark.parametrize(("cells", "known"), [("0 0", 0x64), ("0 -", 0x4), ("- 1", 0x60)])
def test_of_no_hardware_slowdown_but_heat_is_anything_known(cells: str, known: int, tmp_path: Path) -> None:
    assert read(f"# gpu pviol tviol\n# Idx % bool\n 0 {cells}\n", tmp_path).gpu["throttle_known"].tolist() == [known]


def test_samples_without_time_are_one_second_apart_unless_told(tmp_path: Path) -> None:
    text = "# gpu     sm\n# Idx      %\n" + "    0      1\n    2      2\n" * 3
    assumed, told = read(text, tmp_path), read(text, tmp_path, period_s=2.5)
    seconds = [(time - pd.Timestamp(0, tz="UTC")).total_seconds() for time in told.gpu["time"]]
    assert seconds == [0.0, 2.5, 5.0, 0.0, 2.5, 5.0]
    assert assumed.gpu["time"].diff().dt.total_seconds().tolist()[1:3] == [1.0, 1.0]
    assert "1 s assumed" in assumed.notes[0] and "2.5 s as told" in told.notes[0]


def test_time_without_a_date_goes_on_past_midnight(tmp_path: Path) -> None:
    text = "#Time        gpu     sm\n#HH:MM:SS    Idx      %\n 23:59:59      0      1\n 00:00:01      0      2\n"
    telemetry = read(text, tmp_path)
    assert telemetry.gpu["time"].diff().dt.total_seconds().tolist()[1] == 2.0
    assert "no date" in telemetry.notes[0] and telemetry.clock == "day"


def test_date_and_time_are_local_to_the_zone_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "dmon.log"
    path.write_text(
        "#Date       Time        gpu   sm\n#YYYYMMDD   HH:MM:SS    Idx    %\n 20240704   13:54:35      0    6\n"
    )
    telemetry = read_telemetry(path, timezone="Europe/Berlin")
    assert telemetry.gpu["time"].tolist() == [pd.Timestamp("2024-07-04 11:54:35", tz="UTC")]


def test_columns_are_read_anew_at_each_header(tmp_path: Path) -> None:
    second = "# gpu    fb    sm\n# Idx    MB     %\n    0  4096    88\n"
    gpu = read("# gpu    sm    fb\n# Idx     %    MB\n    0    77  2048\n" + second, tmp_path).gpu
    assert gpu["util_pct"].tolist() == [77, 88] and gpu["mem_used_mib"].tolist() == [2048, 4096]


def test_csv_with_units_in_cells_and_without(tmp_path: Path) -> None:
    text = "#gpu, pwr, sm\n#Idx, W, %\n0, 224 W, 97 %\n0, 225, -\n"
    gpu = read(text, tmp_path).gpu
    assert gpu["power_w"].tolist() == [224, 225] and gpu["util_pct"].tolist()[0] == 97


def test_torn_rows_are_dropped_and_named(tmp_path: Path) -> None:
    text = (
        HEAD
        + UNITS
        + ROW
        + "    0   224    46\n"
        + ROW
        + "    0   2x4    46     -    97    41 6250 1695 0 0 20480 14 2\n"
    )
    telemetry = read(text, tmp_path)
    problems = {problem.kind: problem for problem in telemetry.problems}
    assert len(telemetry.gpu) == 3
    assert problems["torn row"].line == 4 and problems["torn row"].lost
    assert problems["cell that is no number"].line == 6 and np.isnan(telemetry.gpu["power_w"].tolist()[2])


def test_rows_of_pmon_in_the_same_file_are_not_taken_for_samples(tmp_path: Path) -> None:
    pmon = "# gpu        pid  type    sm   mem   command\n# Idx          #   C/G     %     %   name\n"
    telemetry = read(
        "# gpu     sm\n# Idx      %\n    0      7\n" + pmon + "    1  447153     C  5  6  python\n", tmp_path
    )
    assert telemetry.gpu["gpu"].tolist() == ["0"]
    assert any(problem.count == 1 and problem.line == 6 for problem in telemetry.problems)


def test_a_header_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no usable sample"):
        read(HEAD + UNITS, tmp_path)


cell = st.one_of(st.none(), st.integers(0, 100))


@pytest.mark.slow
@given(st.lists(st.tuples(cell, cell, cell), min_size=1, max_size=30), st.integers(1, 9))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list, every: int) -> None:
    lines = []
    for at, row in enumerate(rows):
        if at % every == 0:
            lines += ["# gpu     sm    mem  gtemp", "# Idx      %      %      C"]
        lines.append("    0" + "".join(f"{'-' if value is None else value:>7}" for value in row))
    gpu = read("\n".join(lines) + "\n", tmp_path_factory.mktemp("dmon")).gpu
    assert len(gpu) == len(rows)
    for column, values in zip(("util_pct", "mem_util_pct", "temp_c"), zip(*rows, strict=True), strict=True):
        wanted = np.array([np.nan if value is None else value for value in values])
        np.testing.assert_array_equal(gpu[column] if column in gpu else np.full(len(rows), np.nan), wanted)
