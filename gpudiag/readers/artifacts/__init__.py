"""What a batch leaves behind: task logs and result files, as trials or events. One file a format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpudiag.readers import telemetry, trials
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import (
    hydra_multirun,
    lightning_csv,
    ray_tune,
    ray_tune_table,
    slurm_sacct,
    task_csv,
    task_jsonl,
    training_log,
    wandb_run,
)
from gpudiag.readers.base import Reader, Trials

_FORMATS: tuple[Reader[Trials], ...] = (
    task_jsonl.READER,
    task_csv.READER,
    slurm_sacct.READER,
    lightning_csv.READER,
    ray_tune.READER,
    ray_tune_table.READER,
    wandb_run.READER,
    hydra_multirun.READER,
)


def _no_format_of_any_kind(source: Source) -> bool:
    """True for a training log that no reader of any registry knows as its own: logs of tools quote errors too."""
    formats: tuple[Sequence[Reader[Any]], ...] = (telemetry.READERS, trials.READERS, _FORMATS)
    return training_log.READER.recognises(source) and not any(
        reader.recognises(source) for readers in formats for reader in readers
    )


READERS = (*_FORMATS, replace(training_log.READER, recognises=_no_format_of_any_kind))
"""Formats first; a training log is what no other reader knows."""
