"""``Trainer(callbacks=[GpudiagCallback("runs/a/metrics.csv")])`` records a training with Lightning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpudiag.errors import PackageMissing
from gpudiag.record.failure import failure
from gpudiag.record.training import TrainingRecord, harmless

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ModuleNotFoundError:
    try:
        from pytorch_lightning import Callback, LightningModule, Trainer
    except ModuleNotFoundError:
        raise PackageMissing("gpudiag.integrations.lightning needs Lightning: pip install lightning.") from None


@harmless
class GpudiagCallback(Callback):  # type: ignore[misc]  # Lightning may be absent
    """Records GPUs, host, steps, waits for data, validation and checkpoints of ``Trainer.fit``.

    A step is one of ``trainer.global_step``. The wait for data is what passes between the end of a batch and the
    start of the next, validation left out. What callbacks behind this one, and the module's ``on_train_batch_end``, do
    in that time counts as well: put this one last. Behind a checkpoint the wait is unknown, since Lightning does not
    say when it is written; the one at the very end of a training is not seen.

    Args:
        path: as of :class:`gpudiag.Recorder`; ranks but 0 write beside it.
        recorder: further arguments of it.
    """

    def __init__(self, path: str | Path = "metrics.csv", **recorder: Any) -> None:
        self.record = TrainingRecord(path, recorder)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.record.begin(
            trainer.global_step,
            rank=trainer.global_rank,
            local_rank=trainer.local_rank,
            world_size=trainer.world_size,
        )

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.record.leave_out()

    def on_train_batch_start(self, trainer: Trainer, *_: Any) -> None:
        self.record.batch_begins()

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        self.record.batch_ended(trainer.global_step, trainer.current_epoch)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.record.other_work("evaluation")

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        self.record.other_work("checkpoint", goes_on=True)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.record.epoch_ended(trainer.current_epoch)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.record.end()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self.record.end(failure(exception))
