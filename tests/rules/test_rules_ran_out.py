"""A training that ran out of GPU memory: because memory grew, or because one step did not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.diagnosis import Diagnosis

TOTAL_MIB, HOURS = 40000.0, 2.0
BEGIN = pd.Timestamp("2026-03-01T10:00:00Z")
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1.1 GiB free.\n"


def grows(part: np.ndarray) -> np.ndarray:
    return 12000 + 27000 * part


def grows_twice(part: np.ndarray) -> np.ndarray:
    """The first try fills up within an hour, too, and is started again."""
    return np.where((part > 0.48) & (part < 0.5), 200.0, grows(2 * (part % 0.5)))


def with_peaks(part: np.ndarray) -> np.ndarray:
    """An evaluation every tenth takes 15,000 more, which no longer fit once memory has grown by 12,000."""
    return 12000 + 12000 * part + np.where(part % 0.1 < 0.02, 15000, 0)


def stays(part: np.ndarray) -> np.ndarray:
    return np.full(len(part), 36000.0)


def grows_a_little(part: np.ndarray) -> np.ndarray:
    """Half of the memory is free when one step asks for more than that."""
    return 12000 + 6000 * part


def diagnosed(folder: Path, used_of: Callable[[np.ndarray], np.ndarray], error: str, after_h: float) -> Diagnosis:
    """A training of 2 h with a step a second, idle for 5 min before it and ``after_h`` behind it."""
    at = np.arange(-300, 3600 * (HOURS + after_h), 10.0)
    runs = (at >= 0) & (at <= 3600 * HOURS)
    used = np.where(runs, used_of(at.clip(0, 3600 * HOURS) / 3600 / HOURS), 300.0)
    times = (BEGIN + pd.to_timedelta(at, unit="s")).strftime("%Y/%m/%d %H:%M:%S.000")
    rows = [
        f"{time}, 0, {util} %, {mib:.0f} MiB, {TOTAL_MIB:.0f} MiB\n"
        for time, util, mib in zip(times, np.where(used > 1000, 95, 0), used, strict=True)
    ]
    head = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
    (folder / "gpu.csv").write_text(head + "".join(rows))
    steps = np.arange(10, int(3600 * HOURS), 10)
    stamps = (BEGIN + pd.to_timedelta(steps, unit="s")).strftime("%Y-%m-%d %H:%M:%S")
    log = "".join(f"{time} step {step}/20000 loss 0.5\n" for time, step in zip(stamps, steps, strict=True))
    (folder / "train.log").write_text(log + "Traceback (most recent call last):\n" + error)
    return gd.diagnose(gd.load_run(folder, timezone="UTC"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("used_of", "after_h"),
    [(grows, 0.0), (grows, 1.5), (grows_twice, 0.0), (with_peaks, 0.2)],
)
def test_memory_that_grew_until_it_ran_out_is_the_cause(
    tmp_path: Path, used_of: Callable[[np.ndarray], np.ndarray], after_h: float
) -> None:
    d = diagnosed(tmp_path, used_of, OOM, after_h)
    cause, end = d.findings["memory-leak"], d.findings["training-failed"]
    assert end.caused_by == "memory-leak" and "smaller batch" not in end.remedy.partition(". ")[0]
    assert cause.severity.value == "critical" and "ran out of it" in cause.summary
    first = "The GPU was well used" if after_h < 1 else "The GPU was partly used"
    said, _, then = d.document.headline.sentences
    assert said.startswith(first) and said.endswith("GPU memory grew until the training ran out of it.")
    assert then.startswith("Look for tensors that outlive their step")
    assert not any("take a smaller batch" in one.text for one in d.recommendations)


@pytest.mark.slow
@pytest.mark.parametrize(("used_of", "grew"), [(stays, False), (grows_a_little, True)])
def test_one_step_that_does_not_fit_keeps_its_advice(
    tmp_path: Path, used_of: Callable[[np.ndarray], np.ndarray], grew: bool
) -> None:
    d = diagnosed(tmp_path, used_of, OOM, 0.0)
    end = d.findings["training-failed"]
    assert end.caused_by is None and "take a smaller batch" in end.remedy
    assert ("memory-leak" in {v.rule for v in d.findings}) == grew
    assert d.document.headline.sentences[2].startswith("The GPU's memory did not suffice: take a smaller batch")


@pytest.mark.slow
def test_another_error_is_not_laid_to_memory_that_grew(tmp_path: Path) -> None:
    d = diagnosed(tmp_path, grows, "ValueError: shapes (3,4) and (5,) differ\n", 0.0)
    assert d.findings["training-failed"].caused_by is None
    assert d.findings["memory-leak"].severity.value == "warning"
