"""``model.fit(..., callbacks=[GpudiagCallback("runs/a/metrics.csv")])`` records a training with Keras 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpudiag.errors import PackageMissing
from gpudiag.record.training import TrainingRecord, harmless

try:
    import keras
except ModuleNotFoundError:
    raise PackageMissing("gpudiag.integrations.keras needs Keras 3: pip install keras.") from None


@harmless
class GpudiagCallback(keras.callbacks.Callback):  # type: ignore[misc]  # Keras may be absent
    """Records GPUs, host, steps, waits for data and evaluations of ``fit``.

    A step is a batch. The wait for data is what passes between the end of a batch and the start of the next, on the
    backend torch; on TensorFlow and JAX it is unknown, since they get the batch within the step. A checkpoint is not
    seen: one that ``ModelCheckpoint`` writes at the end of an epoch counts as neither, one amid an epoch as a wait.

    Args:
        path: as of :class:`gpudiag.Recorder`.
        recorder: further arguments of it.
    """

    def __init__(self, path: str | Path = "metrics.csv", **recorder: Any) -> None:
        super().__init__()
        self.record = TrainingRecord(path, recorder)
        self._waits_are_seen = keras.backend.backend() == "torch"
        self._before = self._done = self._epoch = 0

    def on_train_begin(self, logs: object = None) -> None:
        self._before = self._done = 0
        self.record.begin()

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self._epoch = epoch
        self._done = 0
        self.record.leave_out()

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        if not self._waits_are_seen:
            self.record.wait_is_unknown()
        self.record.batch_begins()

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        self._done = batch + 1
        self.record.batch_ended(self._before + self._done, self._epoch)

    def on_test_end(self, logs: object = None) -> None:
        self.record.other_work("evaluation")

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        self._before += self._done
        self.record.epoch_ended(epoch)

    def on_train_end(self, logs: object = None) -> None:
        self.record.end()
