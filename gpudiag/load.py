"""From a folder, a run.toml or single inputs to a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from pathlib import Path

import pandas as pd

from gpudiag.alignment import apply_clock, establish_clock
from gpudiag.clock import parse_zone
from gpudiag.errors import ConfigError, InputError, InputNotFound, UnknownInput
from gpudiag.intake import Intake, take, take_trials, try_take
from gpudiag.manifest import GpuOverride, Manifest, read_manifest
from gpudiag.naming import name_of
from gpudiag.readers import trials as trial_readers
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.url import shown
from gpudiag.readers._shape.merge import merge as merge_telemetry
from gpudiag.readers._studies.merge import merge as merge_trials
from gpudiag.readers.base import ReadOptions, Telemetry, Trials
from gpudiag.readers.identify import EXPECTED, identify
from gpudiag.run import Run, RunInfo
from gpudiag.schema import STUDIES, TRIALS, conform

MANIFEST = "run.toml"
MAX_FILES = 20_000


def load_run(
    path: str | Path = "",
    *,
    telemetry: Sequence[str | Path] | str | Path = (),
    trials: object = "",
    artifacts: Sequence[str | Path] | str | Path = (),
    study: str | None = None,
    timezone: str | tzinfo | None = None,
    columns: Sequence[str] = (),
    period_s: float | None = None,
) -> Run:
    """Load a run from its folder or its run.toml, or from the inputs named as :meth:`Run.from_files` does.

    A folder with a run.toml is read as that file says; a folder without one is searched by content.
    An empty argument counts as not given.

    Args:
        path: the folder, or the run.toml; empty where the inputs are named.
        telemetry: logs of GPU metrics; text may name several, with commas between them.
        trials: a study's file or storage URL, a trial table, or an ``optuna.Study``.
        artifacts: task logs, training logs and result files.
        study: the one study to keep; default: run.toml's, else every study found.
        timezone: IANA name of the zone of stamps that carry none; default: run.toml's, else this machine's.
        columns: names of the columns of telemetry without a header; default: run.toml's.
        period_s: seconds between samples of telemetry without stamps; default: run.toml's, else 1 s is assumed.

    Raises:
        InputNotFound: nothing is at ``path``.
        ConfigError: run.toml has an unknown key or an illegal value, or both a path and inputs are given.
        InputError: an input that was named cannot be read, or there is no input at all.
    """
    given = None if isinstance(trials, str) and not trials else trials
    named = bool(telemetry) or given is not None or bool(artifacts)
    told = {"columns": tuple(columns) or None, "period_s": period_s}
    told = {name: value for name, value in told.items() if value is not None}
    if not path:
        manifest = Manifest().model_copy(update=told)
        return from_files(telemetry, given, artifacts=artifacts, study=study, timezone=timezone, manifest=manifest)
    if named:
        raise ConfigError(f"got the run {path} and single inputs as well; give one or the other.")
    path = Path(path)
    if not path.exists():
        raise InputNotFound.run(shown(path))
    if path.is_file():
        if not _is_manifest(path):
            raise InputError(
                f"{path}: is a file; expected a run folder or a run.toml. For single files use "
                "--telemetry FILE and --trials FILE (Run.from_files in Python)."
            )
        return _from_manifest(read_manifest(path).model_copy(update=told), path.parent, study, timezone)
    if (path / MANIFEST).is_file():
        return _from_manifest(read_manifest(path / MANIFEST).model_copy(update=told), path, study, timezone)
    _refuse_several_runs(path)
    return _from_manifest(Manifest().model_copy(update=told), path, study, timezone)


def _refuse_several_runs(folder: Path) -> None:
    """A folder of runs is not a run: mixing them would give numbers of neither."""
    below = sorted(str(found.parent.relative_to(folder)) for found in folder.glob(f"*/{MANIFEST}"))
    if below:
        what = f"holds {len(below)} runs" if len(below) > 1 else "holds a run"
        raise InputError(f"{folder}: {what}, each with its own {MANIFEST} ({_some(below)}); name one of them.")


def from_files(
    telemetry: Sequence[str | Path] | str | Path = (),
    trials: object = None,
    *,
    artifacts: Sequence[str | Path] | str | Path = (),
    study: str | None = None,
    timezone: str | tzinfo | None = None,
    name: str | None = None,
    manifest: Manifest | None = None,
) -> Run:
    """Load a run from the inputs named; see :meth:`gpudiag.run.Run.from_files`."""
    manifest = manifest or Manifest()
    options = _options(manifest, study, timezone)
    paths, artifacts = _listed(telemetry), _listed(artifacts)
    intakes = [_expect(take(p, options), Telemetry, p, "telemetry") for p in paths]
    if trials is not None:
        intakes.append(_expect(take_trials(trials, options), Trials, trials, "trials"))
    intakes += [take(p, options) for p in artifacts]
    if not intakes:
        raise InputError("a run needs at least one input; give telemetry files, trials, or both.")
    named = [*paths, *([] if trials is None else [trials]), *artifacts]
    return _assemble(intakes, manifest, name or manifest.name or name_of(named, study), options)


def _listed(paths: Sequence[str | Path] | str | Path) -> list[str | Path]:
    """One path or several; text with commas names several, unless it is the name of a file."""
    if isinstance(paths, str) and "," in paths and not Path(paths).exists():
        return [part.strip() for part in paths.split(",") if part.strip()]
    return [paths] if isinstance(paths, str | Path) else list(paths)


def _expect(intake: Intake, kind: type, path: object, role: str) -> Intake:
    if not isinstance(intake.data, kind):
        raise InputError(f"{path}: was given as {role}, but it holds {intake.record.kind} ({intake.record.reader}).")
    return intake


def _from_manifest(manifest: Manifest, folder: Path, study: str | None, timezone: str | tzinfo | None) -> Run:
    options = _options(manifest, study, timezone)
    named = [*manifest.telemetry, *([manifest.trials] if manifest.trials else []), *manifest.artifacts]
    if named:
        intakes = [take(locate(name, folder), options, shown_as=name) for name in named]
    else:
        intakes, skipped = _search(folder, options)
        manifest = manifest.model_copy(update={"notes": (*manifest.notes, *skipped)})
    return _assemble(intakes, manifest, manifest.name or folder.resolve().name, options)


def locate(name: str, folder: Path) -> str | Path:
    """What run.toml in ``folder`` names: a path, or a storage URL whose relative SQLite file is taken from there."""
    if not trial_readers.is_url(name):
        return folder / name
    if name.startswith("sqlite:///") and not name.startswith("sqlite:////"):
        return "sqlite:///" + str(folder / name.removeprefix("sqlite:///"))
    return name


def _options(manifest: Manifest, study: str | None, timezone: str | tzinfo | None) -> ReadOptions:
    zone = parse_zone(timezone or manifest.timezone)
    return ReadOptions(zone, manifest.columns, manifest.period_s, study or manifest.study)


def _search(folder: Path, options: ReadOptions) -> tuple[list[Intake], list[str]]:
    """Every input below the folder that some reader recognises by content, and a note on the other files."""
    intakes: list[Intake] = []
    others: list[str] = []
    for source, recognised in walk(folder):
        name = str(source.path.relative_to(folder)) if source.path != folder else folder.name
        if recognised:
            intakes.append(try_take(source, options, shown_as=name))
        else:
            others.append(name)
    if not any(intake.data is not None for intake in intakes):
        raise _nothing(folder, others, intakes)
    if not others:
        return intakes, []
    return intakes, [f"{len(others)} other files in the folder are none of the kinds read: {_some(others)}."]


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _nothing(folder: Path, others: list[str], intakes: list[Intake]) -> InputError:
    if intakes:
        return InputError("; ".join(str(intake.record.error) for intake in intakes[:3]))
    held = "its one file is" if len(others) == 1 else f"its {len(others)} files are"
    what = f"{held} none of these ({_some(others)})" if others else "it is empty"
    return UnknownInput(f"{folder}: no data found; expected {EXPECTED} by content, but {what}.")


def walk(folder: Path) -> Iterator[tuple[Source, bool]]:
    """Files, and folders that a reader takes whole, in a fixed order, and whether a reader recognises them."""
    whole = Source.open(folder)
    found = identify(whole)
    if found is not None:
        yield whole, True
        if not found[1].descends:
            return
    pending = [(folder, found and found[1])]
    count = 0
    while pending:
        here, above = pending.pop(0)
        for path in sorted(here.iterdir()):
            if path.name.startswith(".") or path.name in ("__pycache__", "node_modules", "report_files"):
                continue
            if path.is_symlink() and path.resolve().is_relative_to(folder.resolve()):
                continue  # such as W&B's latest-run: what it points to is met anyway
            if not (path.is_file() or path.is_dir()):
                continue  # a link to nowhere, a pipe, a socket
            count += 1
            if count > MAX_FILES:
                raise InputError(f"{folder}: holds more than {MAX_FILES} files; name the inputs in a run.toml.")
            source = Source.open(path)
            found = identify(source)
            reader = found[1] if found is not None and (found[1] is not above or path.is_file()) else None
            if path.is_dir() and (reader is None or reader.descends):
                pending.append((path, reader or above))
            if reader is not None or path.is_file():
                yield source, reader is not None


def _assemble(intakes: list[Intake], manifest: Manifest, name: str, options: ReadOptions) -> Run:
    """One run on one clock from everything that was read."""
    telemetry = merge_telemetry([i.data for i in intakes if isinstance(i.data, Telemetry)])
    trials = merge_trials([i.data for i in intakes if isinstance(i.data, Trials)])
    info = RunInfo(
        name=name,
        timezone=str(options.timezone),
        settings=manifest.settings,
        dataloader=manifest.dataloader,
        inputs=tuple(intake.record for intake in intakes),
        stated=dict(manifest.stated),
        thresholds={rule: dict(values) for rule, values in manifest.rules.items()},
        show_attrs=manifest.show_attrs,
        gpu_overrides=dict(manifest.gpus),
        given_offset_s=manifest.clock_offset_s,
        notes=(*manifest.notes, *telemetry.notes, *trials.notes),
    )
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
        info=info,
    )
    return apply_clock(run, establish_clock(run))


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


def _is_manifest(path: Path) -> bool:
    return path.suffix == ".toml"
