"""How long a log goes on behind its last line on a step."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpudiag.readers._batches.line_timestamps import line_timestamp
from gpudiag.readers._steps.step_log import StepLog

BEGIN = datetime(2026, 3, 2, 8)


def last_row(behind: Sequence[tuple[float, str]], *, dated: bool = True) -> dict[str, object]:
    """Of the last of five steps, one each 10 s, and the lines behind the last, so many seconds after it."""
    said = [(10.0 * n, f" iteration {n}/ 500 | elapsed time per iteration (ms): 10000.0 |") for n in range(1, 6)]
    said += [(50.0 + seconds, text) for seconds, text in behind]
    log = StepLog(Path("train.log"))
    for number, (seconds, text) in enumerate(said, 1):
        stamp = f"{(BEGIN + timedelta(seconds=seconds)).isoformat(' ')},000 " if dated else ""
        line = f"{stamp}INFO {text}"
        log.take(number, line, line_timestamp(line))
    frame, _ = log.frame(UTC)
    assert "last_s" not in frame or frame["last_s"].iloc[:-1].isna().all()
    return dict(frame.iloc[-1])


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
    assert last_row(behind)["last_s"] == expected


def test_without_timestamps_nobody_knows() -> None:
    assert "last_s" not in last_row([(60.0, "test")], dated=False)


def test_a_failure_hours_later_is_no_part_of_an_evaluation() -> None:
    evaluated = last_row([(5.0, "val_loss 2.1"), (10800.0, "error: JOB 7 CANCELLED DUE TO TIME LIMIT")])
    assert (evaluated["then"], evaluated["then_s"]) == ("failure, evaluation", 5.0)
    failed = last_row([(10800.0, "error: JOB 7 CANCELLED DUE TO TIME LIMIT")])
    assert (failed["then"], failed["then_s"]) == ("failure", 10800.0)


def test_what_ends_without_a_timestamp_lasted_as_long_as_is_stated() -> None:
    log = StepLog(Path("train.log"))
    said = "iteration {n}/ 5 | elapsed time per iteration (ms): 10000.0 |"
    stamped = [f"{BEGIN + timedelta(seconds=10 * n):%F %T} {said.format(n=n)}" for n in range(1, 6)]
    tests = [f"{BEGIN + timedelta(seconds=50 + n):%F %T} Test: [{n}/40] loss: 4.9" for n in (10, 20, 30)]
    for number, line in enumerate([*stamped, *tests, "Test:  Total time: 0:00:40"], 1):
        log.take(number, line, line_timestamp(line))
    row = log.frame(UTC)[0].iloc[-1]
    assert (row["then"], row["then_s"], row["then_evaluation_s"]) == ("evaluation", 40, 40)
