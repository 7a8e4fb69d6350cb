"""Boards and slots: what was replaced is one GPU, what worked beside it are two."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from gpudiag.fleets.fleet import fleet
from gpudiag.fleets.gpu_slots import n_slots
from gpudiag.load import load_run

pytestmark = pytest.mark.usefixtures("warm")

A, B, C = (f"GPU-{letter * 8}-0000-0000-0000-000000000000" for letter in "abc")
Board = tuple[int, str, int, int]
"""Its number and uuid, and the first and last minute of its samples."""


def written(folder: Path, *boards: Board) -> Path:
    """A log of nvidia-smi with a sample a minute of each board."""
    folder.mkdir(parents=True, exist_ok=True)
    began = datetime(2026, 3, 2, 10)
    rows = [(at, index, uuid) for index, uuid, low, high in boards for at in range(low, high + 1)]
    lines = [f"{began + timedelta(minutes=at)}, {index}, {uuid}, 80 %" for at, index, uuid in sorted(rows)]
    head = "timestamp, index, uuid, utilization.gpu [%]"
    (folder / "gpu.csv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("boards", "wanted"),
    [
        ([(0, A, 0, 30)], 1),
        ([(0, A, 0, 30), (1, B, 0, 30)], 2),
        ([(0, A, 0, 30), (0, B, 31, 60)], 1),
        ([(0, A, 0, 30), (0, B, 31, 60), (0, C, 61, 90)], 1),
        ([(0, A, 0, 60), (0, B, 31, 90)], 2),
        ([(0, A, 0, 30), (0, B, 31, 60), (0, C, 45, 60)], 2),
        ([(0, A, 0, 30), (0, B, 31, 60), (1, C, 0, 60)], 2),
    ],
)
def test_boards_one_after_the_other_are_one_gpu(tmp_path: Path, boards: list[Board], wanted: int) -> None:
    assert n_slots(load_run(written(tmp_path, *boards), timezone="UTC")) == wanted


@pytest.mark.slow
def test_a_replaced_board_counts_once_in_the_row_of_its_run(tmp_path: Path) -> None:
    """So it does in each session, of which the other one is listed without a sample."""
    written(tmp_path / "runs" / "one", (0, A, 0, 30), (0, B, 31, 60), (1, C, 0, 60))
    written(tmp_path / "runs" / "two", (0, A, 0, 30), (0, B, 600, 630))
    rows = fleet(tmp_path / "runs", tmp_path / "out", jobs=1, timezone="UTC").rows
    assert [(row.status, row.n_gpus) for row in rows] == [("diagnosed", 2), ("diagnosed", 1), ("diagnosed", 1)]
