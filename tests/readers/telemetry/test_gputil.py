"""GPUtil blocks: what they say, and where they are not the kind of file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

BLOCK = "| ID | GPU | MEM |\n------------------\n|  0 | 98% | 15% |\n|  1 | nan% | 4% |\n"


def read(text: str, folder: Path) -> Telemetry:
    path = folder / "gpu.txt"
    path.write_text(text, encoding="utf-8")
    return read_telemetry(path, timezone="UTC")


def test_a_share_of_memory_is_no_memory_column(tmp_path: Path) -> None:
    telemetry = read(BLOCK * 3, tmp_path)
    assert telemetry.gpu["util_pct"].tolist()[0] == 98 and np.isnan(telemetry.gpu["util_pct"].tolist()[-1])
    assert set(telemetry.gpu) == {"time", "gpu", "util_pct"}
    assert "share of its size" in telemetry.notes[1] and "carry no time" in telemetry.notes[0]


def test_dates_between_blocks_are_their_time(tmp_path: Path) -> None:
    telemetry = read("2023-03-07 14:37:23\n" + BLOCK + "2023-03-07 14:37:33\n" + BLOCK, tmp_path)
    assert telemetry.gpu["time"].dt.second.tolist() == [23, 33, 23, 33]


def test_a_torn_row_is_counted(tmp_path: Path) -> None:
    problems = read(BLOCK + BLOCK[:-9], tmp_path).problems
    assert [(problem.kind, problem.line) for problem in problems] == [("torn row", 8)]


def test_a_training_log_that_prints_a_block_is_no_telemetry(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no reader recognizes"):
        read("[500]\tvalidation_0-rmse:11.2\n" * 20 + BLOCK, tmp_path)
