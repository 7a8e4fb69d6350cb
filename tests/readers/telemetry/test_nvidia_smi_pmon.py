"""pmon: processes, idle rows, commands with blanks, ticks without timestamps."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

MU = """\
# gpu        pid  type    sm   mem   enc   dec   command
# Idx          #   C/G     %     %     %     %   name
# gpu        pid  type    fb    sm   mem   enc   dec   command
# Idx          #   C/G    MB     %     %     %     %   name
    0     447153     C  7669    31     -     -     -   python3.9
    0     447160   C+G 11057     -     -     -     -   NVIDIA Overlay.
    1          -     -     -     -     -     -     -   -
    0     447153     C  7670    32     -     -     -   python3.9
"""


def read(text: str, folder: Path) -> Telemetry:
    path = folder / "pmon.log"
    path.write_text(text, encoding="utf-8")
    return read_telemetry(path, timezone="UTC")


def test_two_header_pairs_then_rows(tmp_path: Path) -> None:
    table = read(MU, tmp_path).processes
    assert table["gpu"].tolist() == ["0", "0", "0"] and table["pid"].tolist() == [447153, 447153, 447160]
    assert table["mem_used_mib"].tolist() == [7669, 7670, 11057]
    assert table["sm_pct"].tolist()[:2] == [31, 32] and table["sm_pct"].isna().tolist() == [False, False, True]
    assert table["name"].tolist() == ["python3.9", "python3.9", "NVIDIA Overlay."]


def test_a_process_that_comes_again_begins_a_tick(tmp_path: Path) -> None:
    table = read(MU, tmp_path).processes
    assert table["time"].astype("int64").floordiv(1_000_000).tolist() == [0, 1, 0]


def test_only_idle_rows_are_refused_with_what_they_are(tmp_path: Path) -> None:
    text = "".join(MU.splitlines(keepends=True)[2:4]) + "    0          -     -     -     -     -     -     -   -\n" * 5
    with pytest.raises(InputError, match="5 x row of a GPU without a process"):
        read(text, tmp_path)


def test_a_row_with_a_damaged_pid_is_lost(tmp_path: Path) -> None:
    telemetry = read(MU + "    0     44x153     C  7670    32     -     -     -   python3.9\n", tmp_path)
    assert len(telemetry.processes) == 3
    assert [(p.kind, p.line, p.lost) for p in telemetry.problems] == [("torn row", 9, True)]
