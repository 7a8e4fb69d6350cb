"""From which step on do values of trials tell the final ones?"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from gpudiag.measures.agreement import measure_agreement
from gpudiag.run import Run
from gpudiag.schema import REPORTS, conform
from tests.smallruns import run, trials


def searched(noise: list[float], n: int = 40) -> tuple[Run, np.ndarray]:
    """COMPLETE trials whose value at step k is the final one and noise[k - 1] of it, and one pruned at step 1."""
    rng = np.random.default_rng(5)
    final = rng.normal(size=n)
    values = np.stack([final + share * rng.normal(size=n) for share in noise], axis=1)
    rows = [(trial, step + 1, values[trial, step]) for trial in range(n) for step in range(len(noise))]
    states = [("COMPLETE", 10 * k, 10 * k + 9) for k in range(n)] + [("PRUNED", 10 * n, 10 * n + 1)]
    table = pd.DataFrame([*rows, (n, 1, 0.0)], columns=["trial", "step", "value"]).assign(study="s")
    return run(trials=trials(states), reports=conform(table, REPORTS)), values


def test_the_first_step_that_tells_is_where_the_ranks_agree() -> None:
    made, values = searched([9.0, 9.0, 3.0, 0.5, 0.1, 0.0])
    agrees = [float(spearmanr(values[:, step], values[:, -1]).statistic) for step in range(6)]
    assert [rho >= 0.7 for rho in agrees] == [False, False, False, True, True, True]
    found = measure_agreement(made)
    assert (found.cut_step, found.safe_step) == (1, 4)


@pytest.mark.parametrize("noise", [[9.0, 9.0, 9.0, 0.0], [9.0, 0.0]])
def test_where_only_the_last_value_tells_there_is_no_such_step(noise: list[float]) -> None:
    assert math.isnan(measure_agreement(searched(noise)[0]).safe_step)


def test_few_trials_show_none() -> None:
    assert math.isnan(measure_agreement(searched([9.0, 0.1, 0.0], n=14)[0]).safe_step)
