"""The one door: from a folder, a run.toml, files, URLs or objects to a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pandas as pd

from gpudiag._load.assemble import assemble
from gpudiag._load.folder import beside, left, not_used, refuse_several_runs, search
from gpudiag._load.folder_of_runs import SeveralRuns, runs_apart, taken_together
from gpudiag._load.intake import Intake, are_rows, as_pandas, is_other_frame, logged_beside, take
from gpudiag._load.logged_trials import trials_once
from gpudiag._load.sessions import refuse_sessions_apart, within_session, without_undated
from gpudiag._load.sources import as_runs, is_whole, name_of
from gpudiag._run.selection import Span, span_of
from gpudiag._run.sound import sound
from gpudiag.errors import ConfigError, InputError, InputNotFound, expected
from gpudiag.manifest import Manifest, manifest_if_any, place_of
from gpudiag.readers._io.url import is_address, is_url, shown, without_passwords
from gpudiag.readers.base import ReadOptions, Telemetry, Trials, check_columns
from gpudiag.run import Run
from gpudiag.timezones import Zone, parse_zone

if TYPE_CHECKING:
    from optuna import Study

Paths: TypeAlias = Sequence[str | Path] | str | Path


class OfRun(Protocol):
    """What was made of a run and knows it: its diagnosis, a simulation."""

    @property
    def run(self) -> Run: ...


RunLike: TypeAlias = "Run | OfRun | Paths | pd.DataFrame | Study"
"""A run, or what is read as one."""
INPUT = "a path, a storage URL, a list of them, a DataFrame or an Optuna study"


def as_run(given: RunLike) -> Run:
    """The run that is meant: the run itself, that of a diagnosis, or what :func:`load_run` reads.

    Of a run put together by hand, what no table can hold is unknown, see :func:`gpudiag._run.sound.sound`.
    Raises ConfigError for anything else, and what load_run raises.
    """
    if isinstance(given, Run):
        return sound(given)
    if isinstance(run := getattr(given, "run", None), Run):
        return sound(run)
    if given is None:
        raise expected(f"a run, {INPUT}", given)
    _check_input(given, f"a run, {INPUT}")
    return load_run(given)


def _check_input(given: object, what: str = INPUT) -> None:
    """Raise ConfigError unless this, or each member of a list, is of a kind that is read."""
    if are_rows(given):
        return
    for one in given if isinstance(given, list | tuple) else (given,):
        known = isinstance(one, str | Path | pd.DataFrame) or hasattr(one, "get_trials") or is_other_frame(one)
        if not known and not (one is not given and hasattr(one, "intermediate_values")):
            raise expected(what, one)


def load_run(
    source: object = "",
    *,
    telemetry: Paths = (),
    trials: object = "",
    artifacts: Paths = (),
    study: str | None = None,
    timezone: Zone = None,
    columns: Sequence[str] = (),
    period_s: float | None = None,
    name: str | None = None,
    between: Span = "",
    gpus: Sequence[str | int] | str | int = "",
) -> Run:
    """Load a run from whatever it is in: the one door.

    A folder with a run.toml is read as that file says; a folder without one is searched by content. Files and URLs
    are told from their content and together are one run. An empty argument counts as not given.

    >>> run = gd.load_run("data/samples/hpo-aggressive-pruning")
    >>> len(run.trials), list(run.gpus["gpu"])
    (200, ['0'])

    Args:
        source: a folder, a run.toml, a file, a storage URL, a tracker's run such as ``mlflow:RUN_ID``, a list of
            files and URLs, an ``optuna.Study``, or a DataFrame (pandas, polars) or rows as dictionaries of samples or
            of trials; empty where the inputs are named by kind.
        telemetry: logs of GPU metrics; text may name several, with commas between them.
        trials: a study's file or storage URL, a trial table, or an ``optuna.Study``.
        artifacts: task logs, training logs and result files.
        study: the one study to keep; default: run.toml's, else every study found.
        timezone: IANA name of the zone of timestamps that carry none; default: run.toml's, else this machine's.
        columns: names of the columns of telemetry without a header; default: run.toml's.
        period_s: seconds between samples of telemetry without timestamps; default: run.toml's, else 1 s is assumed.
        name: what to call it in reports; default: run.toml's, else by its file, folder or storage.
        between: the span of it to keep, as :meth:`gpudiag.Run.between` takes it: start and end, or text with a comma
            between them; either may be left out.
        gpus: the GPUs to keep, as :meth:`gpudiag.Run.gpus_only` takes them: a list, or text with commas.

    Raises:
        InputNotFound: nothing is at one of the paths.
        ConfigError: run.toml has an unknown key or an illegal value, or both a source and inputs by kind are given,
            or several runs, or an option is of a wrong type, or the run has no such GPU.
        InputError: an input that was named cannot be read, or there is no input at all.
        StudyNotFound: the storage has no study of that name.
        NotMeasurable: nothing lies in the span.
    """
    if not isinstance(name, str | None):
        raise expected("the name of the run", name)
    check_columns(columns)
    span_of(between)  # raises for what is none
    ReadOptions(parse_zone(timezone or None), tuple(columns), period_s or None, study)  # raises for a wrong type
    given = {"study": study, "timezone": timezone, "columns": tuple(columns), "period_s": period_s, "name": name}
    stated = {key: value for key, value in given.items() if value}
    for one in (source, telemetry, trials, artifacts):
        if one is not None:
            _check_input(one)
    by_kind = [
        *((one, "telemetry") for one in _listed(telemetry)),
        *((one, "trials") for one in (_listed(trials) if isinstance(trials, list | tuple) else _one(trials))),
        *((one, "") for one in _listed(artifacts)),
    ]
    sources = _listed(source)
    if sources and by_kind:
        raise ConfigError(f"got the run {_all_shown(sources)} and single inputs as well; give one or the other.")
    runs = as_runs(sources)
    if len(runs) > 1:
        raise ConfigError(
            f"got {len(runs)} runs ({_all_shown(sources)}); give one. "
            "`gpudiag report` takes several, `gpudiag compare` two."
        )
    if runs and is_whole(runs[0][0]):
        return _cut(_of_folder(Path(str(runs[0][0])), stated), between, gpus)
    inputs = by_kind or [(one, "") for one in sources]
    if not inputs:
        raise InputError("a run needs at least one input; give telemetry files, trials, or both.")
    return _cut(_of_inputs(inputs, stated), between, gpus)


def _of_inputs(inputs: Sequence[tuple[object, str]], stated: Mapping[str, Any]) -> Run:
    """One run from inputs, each with the kind that it was given as, or ''; ``stated``: as run.toml would say it."""
    sources = [one for one, _ in inputs]
    if sum(is_address(one) for one in sources) > 1:
        raise ConfigError(f"got several runs of trackers ({_all_shown(sources)}); load them one by one.")
    manifest = Manifest().model_copy(update=stated)
    options = _options(manifest)
    intakes: list[Intake] = []
    tracked = None
    for one, role in inputs:
        if is_address(one) and not role:
            from gpudiag._load.tracked.intakes import take_tracked

            tracked = take_tracked(one, options)
            manifest = Manifest.model_validate(tracked.stated).model_copy(update=stated)
        else:
            intakes.append(_expect(take(one, options), one, role))
            intakes += logged_beside(one, intakes[-1], options)
    if tracked is not None:
        intakes, notes = tracked.beside(intakes)
        manifest = manifest.model_copy(update={"notes": (*manifest.notes, *notes)})
    intakes = trials_once(intakes)
    refuse_sessions_apart(intakes, _all_shown(sources))
    return assemble(intakes, manifest, manifest.name or name_of(sources, manifest.study), options)


def _cut(run: Run, between: Span, gpus: Sequence[str | int] | str | int) -> Run:
    start, end = span_of(between)
    run = run if start is None and end is None else run.between(start, end)
    return run if gpus == "" or gpus == () or gpus == [] else run.gpus_only(gpus)


def load_part(folder: Path, files: Sequence[str], timezone: Zone = None, *, since: str = "", before: str = "") -> Run:
    """The run that some files of a folder are, by themselves and with all that its run.toml says beside their names;
    of studies the trials that began from ``since`` to before ``before`` (ISO 8601).
    """
    stated = {"telemetry": tuple(files), "trials": None, "artifacts": ()}
    return _of_folder(folder, {**stated, **({"timezone": timezone} if timezone else {})}, (since, before))


def _of_folder(path: Path, stated: Mapping[str, Any], span: tuple[str, str] = ("", "")) -> Run:
    """The run of a folder, or of a run.toml; of a ``span`` of it."""
    if not path.exists():
        raise InputNotFound.run(path)
    folder, file = place_of(path)
    if not file.is_file():
        refuse_several_runs(folder)
    manifest = manifest_if_any(file).model_copy(update=stated)
    options = _options(manifest)
    others: list[str] = []
    if manifest.inputs:
        places = [locate(name, folder) for name in manifest.inputs]
        named = [take(place, options, shown_as=name) for place, name in zip(places, manifest.inputs, strict=True)]
        found, out = beside(folder, manifest, options, named, places)
        manifest = manifest.model_copy(update={"notes": (*manifest.notes, *([not_used(out)] if out else []))})
    else:
        named = []
        found, others = search(folder, options, file.name)
        manifest = manifest.model_copy(update={"notes": (*manifest.notes, *([left(others)] if others else []))})
    every = trials_once([*named, *without_undated(found)])
    named, found = every[: len(named)], every[len(named) :]
    if not file.is_file():
        if several := runs_apart(found, folder):
            raise SeveralRuns(folder, several)
        notes = taken_together(found, folder)
        manifest = manifest.model_copy(update={"notes": (*manifest.notes, *notes)})
    refuse_sessions_apart(found, str(folder))
    intakes = [*named, *found]
    if any(span):
        intakes = within_session(intakes, *span)
    run = assemble(intakes, manifest, manifest.name or name_of([folder]), options, folder)
    return replace(run, info=replace(run.info, not_recognized=tuple(map(without_passwords, others))))


def _not_given(value: object) -> bool:
    return value is None or (isinstance(value, str | list | tuple) and not value)


def _all_shown(sources: Sequence[object]) -> str:
    return ", ".join(shown(one) if isinstance(one, str | Path) else f"<{type(one).__name__}>" for one in sources)


def _one(given: object) -> list[object]:
    return [] if _not_given(given) else [given]


def _listed(given: object) -> list[object]:
    """One input or several; text with commas names several, unless it is the name of a file or a URL."""
    if _not_given(given):
        return []
    if are_rows(given):
        return [as_pandas(given)]
    if isinstance(given, str) and "," in given and not is_url(given) and not Path(given).exists():
        return [part.strip() for part in given.split(",") if part.strip()]
    if isinstance(given, list | tuple) and not any(hasattr(one, "intermediate_values") for one in given):
        return list(given)
    return [given]


def _expect(intake: Intake, given: object, role: str) -> Intake:
    kind = {"telemetry": Telemetry, "trials": Trials}.get(role)
    if kind is not None and not isinstance(intake.data, kind):
        held = f"{intake.record.kind} ({intake.record.reader})"
        raise InputError(f"{_all_shown([given])}: was given as {role}, but it holds {held}.")
    return intake


def locate(name: str, folder: Path) -> str | Path:
    """What run.toml in ``folder`` names: a path, or a storage URL whose relative SQLite file is taken from there."""
    if not is_url(name):
        return folder / name
    if name.startswith("sqlite:///") and not name.startswith("sqlite:////"):
        return "sqlite:///" + str(folder / name.removeprefix("sqlite:///"))
    return name


def _options(manifest: Manifest) -> ReadOptions:
    return ReadOptions(
        parse_zone(manifest.timezone),
        manifest.columns,
        manifest.period_s,
        manifest.study,
        beside=True,
        parallel=manifest.settings.parallel,
    )
