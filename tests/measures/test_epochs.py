"""Trials that are the epochs of one training, by the names that their task log gives them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.errors import NotMeasurable
from gpudiag.measures._trials.epochs import n_epochs


@pytest.mark.parametrize(
    ("names", "n"),
    [
        (["epoch 1", "epoch 2", "Epoch_3"], 3),
        (["epoch 1", "epoch 1"], 0),
        (["epoch 1", "eval"], 0),
        (["epoch 1", None], 0),
        (["epochs-sweep lr 1", "epoch 2"], 0),
    ],
)
def test_epochs_are_known_by_their_names(names: list[str | None], n: int) -> None:
    assert n_epochs(pd.DataFrame({"name": names})) == n
    assert n_epochs(pd.DataFrame({"state": names})) == 0


@pytest.mark.slow
def test_no_more_epochs_at_once_are_forecast(samples: Path) -> None:
    with pytest.raises(NotMeasurable, match="7 trials are epochs of one training"):
        gd.what_if(samples / "starved-input-pipeline/before")
    said = gd.diagnose(samples / "starved-input-pipeline/before").to_markdown()
    assert "epochs of one training" in said and "Back-test" not in said and "with 1 trials" not in said
