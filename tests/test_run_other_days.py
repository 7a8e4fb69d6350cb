"""A log of another day beside telemetry and a log of today."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import gpudiag as gd

TODAY = datetime(2026, 3, 1, 10, tzinfo=UTC)


def log(path: Path, begin: datetime, first: int = 10) -> None:
    moments = [(step, begin + timedelta(seconds=step - first)) for step in range(first, first + 300, 10)]
    lines = [f"{step},{at.timestamp()},{2.0 - step / 1000}\n" for step, at in moments]
    path.write_text("step,timestamp,loss\n" + "".join(lines))


def telemetry(folder: Path) -> None:
    lines = [f"{TODAY + timedelta(seconds=k):%Y/%m/%d %H:%M:%S}.000, 0, 90 %, 900 MiB\n" for k in range(300)]
    header = "timestamp, index, utilization.gpu [%], memory.used [MiB]\n"
    (folder / "gpu.csv").write_text(header + "".join(lines))
    (folder / "run.toml").write_text('timezone = "UTC"\n')


@pytest.mark.parametrize(
    ("before", "first", "kept"),
    [
        (timedelta(days=30), 10, ["today.csv"]),
        (timedelta(hours=12), 10, ["old.csv", "today.csv"]),
        (timedelta(days=30), 310, ["old.csv", "today.csv"]),
    ],
    ids=["another day", "perhaps another zone", "today's goes on"],
)
def test_a_log_of_another_day_is_left_out_and_named(
    tmp_path: Path, before: timedelta, first: int, kept: list[str]
) -> None:
    telemetry(tmp_path)
    log(tmp_path / "today.csv", TODAY, first)
    log(tmp_path / "old.csv", TODAY - before)
    run = gd.load_run(tmp_path)
    assert sorted({Path(path).name for path in run.steps["path"]}) == kept
    assert any(note.startswith("old.csv: left out") for note in run.info.notes) == (kept == ["today.csv"])


def test_the_only_log_stays(tmp_path: Path) -> None:
    telemetry(tmp_path)
    log(tmp_path / "old.csv", TODAY - timedelta(days=30))
    assert len(gd.load_run(tmp_path).steps) == 30
