"""The callback in a training with the real Keras on PyTorch, against what it did."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from trainingtruth import EVALUATION_S, WORK_S, Slow, judged

os.environ.setdefault("KERAS_BACKEND", "torch")
torch = pytest.importorskip("torch")
keras = pytest.importorskip("keras")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Batches(Slow, keras.utils.PyDataset):  # type: ignore[misc]
    def __init__(self) -> None:
        Slow.__init__(self)
        keras.utils.PyDataset.__init__(self)

    def __getitem__(self, index: int) -> Any:
        self.wait()
        return torch.ones(1, 4), torch.ones(1, 1)


class Model(keras.Model):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = keras.layers.Dense(1)

    def call(self, x: Any, training: bool = False) -> Any:
        return self.layer(x)

    def train_step(self, data: Any) -> Any:
        time.sleep(WORK_S)
        return super().train_step(data)

    def test_step(self, data: Any) -> Any:
        time.sleep(EVALUATION_S)
        return super().test_step(data)


def test_waits_and_validations(tmp_path: Path) -> None:
    from gpudiag.integrations.keras import GpudiagCallback

    data, model = Batches(), Model()
    model.compile(optimizer="sgd", loss="mse")
    one = (torch.ones(1, 4), torch.ones(1, 1))
    callback = GpudiagCallback(tmp_path / "run" / "metrics.csv", interval_s=0.1)
    model.fit(data, epochs=2, validation_data=one, verbose=0, callbacks=[callback])
    model.evaluate(*one, verbose=0, callbacks=[callback])
    judged(tmp_path / "run", data, n_epochs=2, n_evaluations=2)
