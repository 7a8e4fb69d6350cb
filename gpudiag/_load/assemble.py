"""One run on one clock from everything that was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from gpudiag._load.added import without_added
from gpudiag._load.elsewhere import without_jobs_elsewhere
from gpudiag._load.intake import Intake, read_again
from gpudiag._load.log_dates import with_log_dates
from gpudiag._load.logged_failures import with_logged_failures
from gpudiag._load.marked import without_ends_after_silence
from gpudiag._load.other_studies import marked_apart, with_others, without_others
from gpudiag._load.passwords import passwords_hidden
from gpudiag._load.recorded_settings import with_host, with_recorded
from gpudiag._run.directions import with_directions
from gpudiag._run.other_days import without_logs_of_other_days
from gpudiag.alignment import logs_in_one_zone, on_one_clock, with_dates
from gpudiag.alignment.other_zone import InOneZone, in_one_zone, in_same_zone
from gpudiag.alignment.undated import Dated
from gpudiag.manifest import GpuOverride, Manifest
from gpudiag.readers._io.freed_memory import give_back_freed_memory
from gpudiag.readers._shape.merge_telemetry import merge as merge_telemetry
from gpudiag.readers._studies.merge_trials import merge as merge_trials
from gpudiag.readers.base import ReadOptions, Telemetry, Trials
from gpudiag.run import Run, RunInfo
from gpudiag.schema import STUDIES, TRIALS, conform

MANY_SAMPLES = 500_000


class OnOneClock(NamedTuple):
    """The inputs, dated and put into one zone; ``trials`` are those of all of them."""

    intakes: list[Intake]
    trials: Trials
    dated: Dated
    placed: InOneZone


def assemble(
    intakes: list[Intake], manifest: Manifest, name: str, options: ReadOptions, folder: Path | None = None
) -> Run:
    """One run on one clock from everything that was read; ``folder``: where run.toml lies."""
    intakes, trials, dated, placed = _in_one_zone(with_log_dates(intakes), manifest, options)
    telemetry = merge_telemetry(placed.logs, _paths(intakes))
    if len(telemetry.gpu) >= MANY_SAMPLES:
        give_back_freed_memory()
    info = _info(intakes, telemetry, manifest, name, options, folder)
    run = Run(
        gpu=telemetry.gpu,
        gpus=_overridden(telemetry.gpus, manifest),
        processes=telemetry.processes,
        host=telemetry.host,
        trials=conform(trials.trials, TRIALS),
        reports=trials.reports,
        studies=conform(trials.studies, STUDIES),
        events=pd.concat([telemetry.events, trials.events], ignore_index=True)
        if len(telemetry.events) and len(trials.events)
        else (telemetry.events if len(telemetry.events) else trials.events),
        steps=trials.steps,
        profiled=trials.profiled,
        collectives=trials.collectives,
        info=replace(info, notes=(*manifest.notes, *placed.notes, *telemetry.notes, *trials.notes)),
    )
    run = with_directions(run, manifest.direction)
    n_chosen = len(run.studies)
    run = without_added(without_jobs_elsewhere(passwords_hidden(with_others(run, trials.beside))))
    chosen = run.studies["study"].tolist()[:n_chosen]
    run = without_ends_after_silence(on_one_clock(marked_apart(run, chosen), dated))
    return with_logged_failures(without_logs_of_other_days(without_others(run, chosen)))


def _in_one_zone(intakes: list[Intake], manifest: Manifest, options: ReadOptions) -> OnOneClock:
    """Logs without a date get that of the others; what states no zone is put into that of what does."""
    trials = merge_trials(_trials(intakes))
    logs = [intake.data for intake in intakes if isinstance(intake.data, Telemetry)]
    dated = with_dates(logs, trials, options.timezone, manifest.clock_offset_s)
    intakes = read_again(intakes, dated.logs)
    placed = in_one_zone(dated.logs, _paths(intakes), given=bool(manifest.timezone))
    if placed.moved_us:
        moved = [in_same_zone(some, placed.moved_us) for some in _trials(intakes)]
        intakes, trials = read_again(intakes, placed.logs, moved), merge_trials(moved)
    told = _trials(intakes)
    in_zone = logs_in_one_zone(told, local_gpus=bool(placed.logs) and all(log.clock == "local" for log in placed.logs))
    if any(after is not before for before, after in zip(told, in_zone, strict=True)):
        intakes, trials = read_again(intakes, placed.logs, in_zone), merge_trials(in_zone)
    return OnOneClock(intakes, trials, dated, placed)


def _trials(intakes: Sequence[Intake]) -> list[Trials]:
    return [intake.data for intake in intakes if isinstance(intake.data, Trials)]


def _paths(intakes: Sequence[Intake]) -> list[str]:
    """Where the logs of GPU metrics lie."""
    return [intake.record.path for intake in intakes if isinstance(intake.data, Telemetry)]


def _info(
    intakes: Sequence[Intake],
    telemetry: Telemetry,
    manifest: Manifest,
    name: str,
    options: ReadOptions,
    folder: Path | None,
) -> RunInfo:
    """What is known of the run beside its tables."""
    return RunInfo(
        name=name,
        timezone=str(options.timezone),
        timezone_assumed=not manifest.timezone,
        settings=with_host(manifest.settings, telemetry.host, telemetry.gpus),
        dataloader=with_recorded(manifest.dataloader, telemetry.events),
        training=manifest.training,
        inputs=tuple(intake.record for intake in intakes),
        stated=dict(manifest.stated),
        thresholds={rule: dict(values) for rule, values in manifest.rules.items()},
        show_attrs=manifest.show_attrs,
        gpu_overrides=dict(manifest.gpus),
        given_offset_s=manifest.clock_offset_s,
        rule_modules=manifest.rule_modules,
        folder=folder,
        user=manifest.user,
        project=manifest.project,
        host=manifest.host,
        taking_turns=telemetry.taking_turns,
    )


def _overridden(gpus: pd.DataFrame, manifest: Manifest) -> pd.DataFrame:
    """``gpus`` with run.toml's name and sizes in place of the log's."""
    out = gpus.copy()
    for index, override in manifest.gpus.items():
        rows = out["gpu"] == index
        for column in GpuOverride.model_fields:
            value = getattr(override, column)
            if value is not None:
                if column not in out:
                    out[column] = None
                out.loc[rows, column] = value
    return out
