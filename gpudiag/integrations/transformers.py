"""``Trainer(callbacks=[GpudiagCallback("runs/a/metrics.csv")])`` records a training with Hugging Face."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from gpudiag.errors import PackageMissing
from gpudiag.record.training import TrainingRecord, harmless

try:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
except ModuleNotFoundError:
    raise PackageMissing(
        "gpudiag.integrations.transformers needs Hugging Face's Trainer: pip install 'transformers[torch]'."
    ) from None


@harmless
class GpudiagCallback(TrainerCallback):  # type: ignore[misc]  # transformers may be absent
    """Records GPUs, host, steps, waits for data, evaluations and checkpoints of ``Trainer.train``.

    A step is one of ``state.global_step``. The wait for data is what passes from the end of a step, of an evaluation
    or of a checkpoint to the start of the next step: the Trainer gets all batches of a step in that time.

    Args:
        path: as of :class:`gpudiag.Recorder`; ranks but 0 write beside it.
        recorder: further arguments of it.
    """

    def __init__(self, path: str | Path = "metrics.csv", **recorder: Any) -> None:
        self.record = TrainingRecord(path, recorder)

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.record.begin(
            state.global_step,
            rank=args.process_index,
            local_rank=args.local_process_index,
            world_size=args.world_size,
        )

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.record.batch_begins()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.record.batch_ended(state.global_step, _epoch_of(state))

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.record.other_work("evaluation")

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.record.other_work("checkpoint")

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.record.epoch_ended(_epoch_of(state))

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.record.end()


def _epoch_of(state: TrainerState) -> int:
    """The epoch that a step has ended in, from 0: ``state.epoch`` is 1.0 at the end of the first."""
    return max(math.ceil(state.epoch or 0) - 1, 0)
