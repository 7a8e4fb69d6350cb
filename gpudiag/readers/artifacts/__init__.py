"""What a batch leaves behind: task logs and result files, as trials or events. One file a format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudiag.errors import InputError, expected
from gpudiag.readers import telemetry, trials
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import (
    flight_recorder,
    flight_recorder_pickle,
    gpudiag_export,
    hydra_multirun,
    jobstats_table,
    lightning_csv,
    metrics_csv,
    mlflow_metrics,
    nextflow_trace,
    nsight_systems,
    ray_tune,
    ray_tune_table,
    slurm_json,
    slurm_sacct,
    slurm_scontrol,
    slurm_seff,
    step_jsonl,
    task_csv,
    task_jsonl,
    tensorboard_events,
    torch_memory,
    torch_profiler,
    trainer_results,
    trainer_state,
    training_log,
    wandb_run,
    xla_profiler,
)
from gpudiag.readers.base import Reader, ReadOptions, Trials

if TYPE_CHECKING:
    import pandas as pd

_FORMATS: tuple[Reader[Trials], ...] = (
    task_jsonl.READER,
    task_csv.READER,
    slurm_sacct.READER,
    slurm_json.READER,
    slurm_scontrol.READER,
    nextflow_trace.READER,
    lightning_csv.READER,
    ray_tune.READER,
    ray_tune_table.READER,
    wandb_run.READER,
    mlflow_metrics.READER,
    hydra_multirun.READER,
    torch_profiler.READER,
    nsight_systems.READER,
    torch_memory.READER,
    xla_profiler.READER,
    flight_recorder.READER,
    flight_recorder_pickle.READER,
    gpudiag_export.READER,
    jobstats_table.READER,
    trainer_state.READER,
    trainer_results.READER,
    slurm_seff.READER,
    tensorboard_events.READER,
)


_OF_STEPS = (step_jsonl.READER, metrics_csv.READER)


def tells_of_steps(source: Source) -> bool:
    """Whether its rows are of a training, whoever else reads them."""
    return any(reader.recognises(source) for reader in _OF_STEPS)


def _is_of_another(source: Source) -> bool:
    formats: tuple[Sequence[Reader[Any]], ...] = (telemetry.READERS, trials.READERS, _FORMATS)
    return any(reader.recognises(source) for readers in formats for reader in readers)


def _of_no_other(reader: Reader[Trials]) -> Reader[Trials]:
    """The reader for what no reader of any registry knows as its own."""
    return replace(reader, recognises=lambda source: reader.recognises(source) and not _is_of_another(source))


def _is_only_a_log(source: Source) -> bool:
    """True for a training log that is no table of metrics: logs of tools quote errors too."""
    if telemetry.is_of_a_tool(source):  # known already, where its lines would be looked through for a training
        return False
    return training_log.READER.recognises(source) and not tells_of_steps(source)


READERS = (
    *_FORMATS,
    *map(_of_no_other, _OF_STEPS),
    _of_no_other(replace(training_log.READER, recognises=_is_only_a_log)),
)
"""Formats first; rows of metrics and a training log are what no other reader knows."""


def read_steps(source: str | Path, *, timezone: str | tzinfo | None = None) -> pd.DataFrame:
    """The lines of a training's log that say how far it is: table ``steps`` of :mod:`gpudiag.schema`, a row a line.

    >>> gd.read_steps("data/samples/starved-input-pipeline/before/train.log")["step_s"].round().tolist()[:3]
    [678.0, 696.0, 702.0]

    Args:
        source: the log, compressed or not.
        timezone: IANA name of the zone of timestamps that carry none; default: this machine's.

    Raises:
        InputNotFound: nothing is there.
        InputError: it has no line about a step.
    """
    from gpudiag.timezones import parse_zone

    if not isinstance(source, str | Path):
        raise expected("the path of a training log", source)
    opened = Source.open(Path(source))
    steps = training_log.read(opened, ReadOptions(parse_zone(timezone))).steps
    if steps.empty:
        raise InputError(
            f"{opened.path}: no line of it says how far a training is; expected lines such as 'step 120 loss 0.5' with "
            "a timestamp, or a progress bar with its times."
        )
    return steps
