"""What a batch leaves behind: task logs and result files, as trials or events. One file a format."""

from __future__ import annotations

from gpudiag.readers.artifacts import (
    hydra_multirun,
    lightning_csv,
    ray_tune,
    slurm_sacct,
    task_csv,
    task_jsonl,
    training_log,
    wandb_run,
)
from gpudiag.readers.base import Reader, Trials

READERS: tuple[Reader[Trials], ...] = (
    task_jsonl.READER,
    task_csv.READER,
    slurm_sacct.READER,
    lightning_csv.READER,
    ray_tune.READER,
    wandb_run.READER,
    hydra_multirun.READER,
    training_log.READER,
)
