"""A lasting drop in utilization is told apart from trials that need less and happened to come last."""

from __future__ import annotations

import numpy as np
import pytest
from small_profiles import verdict
from smallruns import gpu, run, trials

from gpudiag.measures.shift import measure_shift
from gpudiag.rules.shift import gpu_level_shift


@pytest.mark.parametrize(
    ("n_trials", "n_low", "status"),
    [
        (6, 2, "not_assessed"),  # the two lowest of six come last in one order of 15
        (1, 0, "found"),  # a trial that began before fell by itself
        (24, 8, "found"),
    ],
)
def test_few_trials_that_need_less_are_no_lasting_drop(n_trials: int, n_low: int, status: str) -> None:
    """An hour at 90 %, of which the last third is at 50 %."""
    seconds, length_s = np.arange(0.0, 3600.0, 5.0), 3600 / n_trials
    begun = [length_s * i for i in range(n_trials)]
    assert sum(start >= 2399 for start in begun) == n_low
    used = gpu(seconds, util_pct=np.where(seconds < 2400, 90.0, 50.0))
    lived = trials([("COMPLETE", start, start + length_s - 1) for start in begun])
    one = verdict(gpu_level_shift, measure_shift(run(gpu=used, trials=lived)))
    assert one.status.value == status
    assert one.reason.startswith("GPU 0 fell by 40 points, in so few trials") == (status == "not_assessed")
