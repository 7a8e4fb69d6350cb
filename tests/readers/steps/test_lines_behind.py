"""How long a log goes on behind its last line on a step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpudiag.readers._batches.line_timestamps import line_timestamp
from gpudiag.readers._steps.step_log import StepLog

BEGIN = datetime(2026, 3, 2, 8)


def last_s(behind: Sequence[tuple[float, str]], *, dated: bool = True) -> float:
    """Of five steps, one each 10 s, and the lines behind the last, so many seconds after it."""
    said = [(10.0 * n, f"step {n}/500 loss 2.1 step_time 10.000s") for n in range(1, 6)]
    said += [(50.0 + seconds, text) for seconds, text in behind]
    log = StepLog(Path("train.log"))
    for number, (seconds, text) in enumerate(said, 1):
        stamp = f"{(BEGIN + timedelta(seconds=seconds)).isoformat(' ')},000 " if dated else ""
        line = f"{stamp}INFO {text}"
        log.take(number, line, line_timestamp(line))
    frame, _ = log.frame(UTC)
    if "last_s" not in frame:
        return math.nan
    assert frame["last_s"].iloc[:-1].isna().all()
    return float(frame["last_s"].iloc[-1])


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        ([], 0.0),
        ([(20.0 * n, f"rollout: generated {n} of 90 samples") for n in range(1, 46)], 900.0),
        ([(590.0, "collecting"), (1180.0, "collecting")], 1180.0),
        ([(30.0, "Early stopping"), (1860.0, "[rank0] Watchdog caught collective operation timeout")], 30.0),
        ([(700.0, "slurmstepd: error: CANCELLED"), (701.0, "bye")], 0.0),
        ([(-30.0, "of a process whose clock is late"), (40.0, "test")], 40.0),
    ],
    ids=["nothing", "another phase", "rarely", "silent, then its end", "ended from outside", "a late clock"],
)
def test_up_to_ten_minutes_of_silence(behind: list[tuple[float, str]], expected: float) -> None:
    assert last_s(behind) == expected


def test_without_timestamps_nobody_knows() -> None:
    assert math.isnan(last_s([(60.0, "test")], dated=False))
