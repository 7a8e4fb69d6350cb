"""Whether a fall of memory is the end of a job that was started again."""

from __future__ import annotations

import numpy as np
import pytest

from gpudiag.measures._gpu.restarts import was_restarted
from gpudiag.measures._steps.paused_for import Part
from gpudiag.measures._waits.logged import LoggedInterval

EVERY_S = 10.0
AT = 20
TIME_US = (np.arange(60) * EVERY_S * 1e6).astype(np.int64)
FELL = np.where(np.arange(60) <= AT, 79000.0, 30000.0)
BUSY = np.full(60, 95.0)


def util(idle: slice, value: float = 0.0) -> np.ndarray:
    out = BUSY.copy()
    out[idle] = value
    return out


def told(cause: str = "", paused_s: float = 0.0, start_s: float = 100.0, end_s: float = 400.0) -> LoggedInterval:
    parts = (Part(cause, paused_s, paused_s, paused_s),) if cause else ()
    return LoggedInterval(int(start_s * 1e6), int(end_s * 1e6), 1.0, 1.0, paused_s, parts, 0.0, 10.0)


def restarted(util_pct: np.ndarray, *log: LoggedInterval, used: np.ndarray = FELL, every: int = 1) -> bool | None:
    fall = (AT // every, AT // every + 1)
    return was_restarted(TIME_US[::every], used[::every], util_pct[::every], fall, log)


@pytest.mark.parametrize(
    ("idle", "expected"),
    [
        (slice(AT + 1, AT + 5), True),  # four samples, 30 s from the first to the last
        (slice(AT + 2, AT + 6), True),  # utilization shows the second before
        (slice(AT - 3, AT + 1), True),  # the crash, before memory was freed
        (slice(AT + 1, AT + 4), None),  # 20 s seen, 40 s at most
        (slice(0, 0), False),
        (slice(AT + 10, AT + 30), False),  # idle later on
    ],
)
def test_an_idle_stretch_at_the_fall_is_a_restart(idle: slice, expected: bool | None) -> None:
    assert restarted(util(idle)) is expected


def test_what_was_not_seen_is_open() -> None:
    assert restarted(np.full(60, np.nan)) is None
    assert restarted(util(slice(AT + 2, AT + 8), np.nan)) is None
    assert restarted(BUSY, every=4) is None, "a sample every 40 s"


def test_less_memory_than_a_context_takes_is_no_process() -> None:
    assert restarted(BUSY, used=np.where(np.arange(60) == AT + 1, 299.0, FELL)) is True
    assert restarted(BUSY, used=np.where(np.arange(60) == AT + 1, 300.0, FELL)) is False


def test_a_log_that_goes_on_is_no_restart_and_one_that_resumes_is() -> None:
    idle = util(slice(AT + 1, AT + 8))
    assert restarted(idle, told()) is False
    assert restarted(idle, told("evaluation", 80.0)) is False
    assert restarted(idle, told("other", 80.0)) is True, "what the pause was for is open"
    assert restarted(idle, told(start_s=300.0)) is True, "the log begins later"
    assert restarted(BUSY, told("restart", 80.0)) is True


def test_of_a_fall_of_several_samples_the_steepest_counts() -> None:
    slow = FELL - 50.0 * np.clip(np.arange(60) - 14, 0, 6)
    fall = (14, AT + 1)
    assert was_restarted(TIME_US, slow, BUSY, fall, []) is False
    assert was_restarted(TIME_US, slow, util(slice(AT + 1, AT + 6)), fall, []) is True
