"""The laws of co-location against pairs of trainings measured on one real GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpudiag.forecast.parallelism.colocation import BUSY_LAWS, DEFAULT_LAW, SPEED_LAWS


@pytest.fixture(scope="module")
def pairs(corpus: Path) -> pd.DataFrame:
    """One row a pair: busy shares alone, speeds beside each other, busy share of both together."""
    folder = corpus / "traces"
    alone = {
        (row.model, row.dataset, row.batchsize, row.amp): row.gpu_util / 100
        for row in pd.read_csv(folder / "single_data.csv").itertuples()
    }
    table = pd.read_csv(folder / "colocate_info.csv")
    rows = [
        (alone[r.model1, r.dataset1, r.batchsize1, r.amp1], alone[r.model2, r.dataset2, r.batchsize2, r.amp2],
         r.speed1 + r.speed2, r.gpu_util / 100)
        for r in table.itertuples()
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["u1", "u2", "total", "busy"])


def speed_error(pairs: pd.DataFrame, law: str) -> float:
    predicted = 2 * SPEED_LAWS[law](pairs[["u1", "u2"]].to_numpy())
    return float(np.median(np.abs(predicted / pairs["total"] - 1)))


def test_the_default_law_is_the_nearest_to_measured_speeds(pairs: pd.DataFrame) -> None:
    errors = {law: speed_error(pairs, law) for law in SPEED_LAWS}
    assert min(errors, key=lambda law: errors[law]) == DEFAULT_LAW
    assert errors[DEFAULT_LAW] == pytest.approx(0.056, abs=0.002)
    assert errors["overlapping"] == pytest.approx(0.130, abs=0.002)
    assert errors["sliced"] > 0.4


def test_where_the_gpu_is_too_small_for_both_no_disturbance_is_wrong_and_the_default_is_better(
    pairs: pd.DataFrame,
) -> None:
    crowded = pairs[pairs["u1"] + pairs["u2"] > 1]
    assert len(crowded) > 500
    assert speed_error(crowded, DEFAULT_LAW) < speed_error(crowded, "undisturbed")


def test_utilization_together_is_nearest_to_independent_overlap(pairs: pd.DataFrame) -> None:
    alone = pairs[["u1", "u2"]].to_numpy()
    errors = {law: float(np.median(np.abs(busy(alone) - pairs["busy"]))) for law, busy in BUSY_LAWS.items()}
    assert errors["overlapping"] < 0.05 < errors["saturating"]
