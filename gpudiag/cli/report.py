"""``gpudiag report``: an executed notebook, a self-contained HTML report and a Markdown report; of one run or many."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpudiag.cli._arguments import (
    assignments,
    check_given,
    check_output,
    existing_runs,
    folder_name,
    given_inputs,
    suppression_file,
)
from gpudiag.cli._console import console_for, say, show, spinner
from gpudiag.cli._faults import telling
from gpudiag.cli._options import LEVELS, FailOn, Inputs, Judging, OnFault, Parameters, ReadingOptions, as_typed
from gpudiag.errors import ConfigError

if TYPE_CHECKING:
    from gpudiag.report.batch import Job
    from gpudiag.trackers import Publish

RUN_REPORT = "run_report"
INPUTS = ("run_path", "telemetry", "trials", "artifacts")
"""Parameters of notebooks by which ``-p`` names inputs."""


def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...",
            help="run folders or run.toml, each a run, a folder of runs all of them; or files and URLs of one run",
            callback=existing_runs,
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="default: reports/NAME")] = None,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", help="of several runs, so many at once")] = 1,
    fail_on: FailOn = "never",
    notebook: Annotated[str, typer.Option("--notebook", help="notebook to execute, by name or path")] = RUN_REPORT,
    direct: Annotated[
        bool, typer.Option("--no-notebook", help="the same pages without a notebook and its kernel: sooner")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="no section of the Markdown report is folded")] = False,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="TRACKER:RUN", help="put it onto a run of MLflow (mlflow:RUN_ID), W&B or trackio"),
    ] = None,
    write_study: Annotated[
        bool, typer.Option("--write-study", help="write verdict and first finding to the run's Optuna study")
    ] = False,
    parameter: Parameters = None,
    *,
    inputs: Inputs,
    layout: ReadingOptions,
    judging: Judging,
    fault: OnFault,
) -> None:
    """Write an executed notebook, a self-contained HTML report and a Markdown report; of several runs, an index too."""
    parameters = assignments(parameter or [])
    check_given(runs, inputs.any, *(parameters.get(name) for name in INPUTS))
    if direct and notebook != RUN_REPORT:
        raise ConfigError(f"got --no-notebook and --notebook {notebook}; give one or the other.")
    publish = _publishers(to)
    from gpudiag._load.sources import as_runs, is_whole
    from gpudiag.report._notebook.told_faults import errors_of
    from gpudiag.report.batch import plan_jobs

    with telling(debug=fault.debug, strict=fault.strict) as faults:
        whole = [Path(str(one[0])) for one in as_runs(runs or []) if is_whole(one[0])]
        planned = plan_jobs(whole)
        if len(planned) > 1:
            _check_several(len(planned), inputs, "--to" if publish else "--write-study" if write_study else "")
            _say_left_out(whole, planned)
            options = [
                "--no-notebook" if direct else f"--notebook={notebook}",
                *(["--full"] if full else []),
                *as_typed(inputs, layout, judging),
                *(f"--parameter={name}={value}" for name, value in parameters.items()),
            ]
            folder = output or Path("reports")
            level = _report_many(planned, folder, options, jobs)
            for job in planned:
                faults += [replace(one, part=f"{job.folder}: {one.part}") for one in errors_of(folder / job.folder)]
        else:
            run = [str(planned[0].run)] if planned else runs or []
            given = _parameters(notebook, run, inputs, layout, judging, parameters)
            if write_study:
                publish.append(_study_writer(given))
            folder = output or Path("reports") / _name(given)
            level = _report_one(folder, notebook, given, full=full, direct=direct, publish=publish)
            faults += errors_of(folder)
        if level == "failed":
            raise typer.Exit(2)
        if fail_on != "never" and level in LEVELS[: LEVELS.index(fail_on) + 1]:
            raise typer.Exit(1)


def _check_several(n: int, inputs: Inputs, of_one: str) -> None:
    """Raise ConfigError for what goes with one run only, such as an option ``of_one``."""
    if inputs.any:
        raise ConfigError("got several runs and single inputs as well; give one or the other.")
    if of_one:
        raise ConfigError(f"{of_one} takes the report of one run, but got {n}.")


def _say_left_out(whole: list[Path], planned: list[Job]) -> None:
    from gpudiag.report.batch import left_out

    runs_themselves = {job.run for job in planned}
    unread = [str(path) for run in whole if run not in runs_themselves for path in left_out(run)]
    if unread:
        say(f"Left out, since no reader recognizes a file in them: {', '.join(unread)}", err=True)


def _report_one(
    folder: Path, notebook: str, parameters: dict[str, Any], *, full: bool, direct: bool, publish: list[Publish]
) -> str:
    """Make one report; returns the level of its verdict."""
    from gpudiag.report._notebook.locate import find_notebook
    from gpudiag.report._notebook.parameters import check_parameters
    from gpudiag.report._notebook.runner import DOCUMENT, run_notebook
    from gpudiag.report.document import read_document
    from gpudiag.report.text import headline

    console = console_for(stderr=True)
    check_parameters(find_notebook(notebook), parameters)
    check_output(folder)
    with spinner(console, "reading the run"):
        if direct:
            from gpudiag.cli._direct import report_directly

            files = report_directly(notebook, folder, parameters, full=full)
        else:
            files = run_notebook(notebook, folder, parameters, full=full)
    document = folder / DOCUMENT
    made = read_document(document) if document.is_file() else None
    if made is not None:
        show(headline(made))
    for path in filter(None, files):
        say(f"  {path}")
    for one in publish:
        if made is None:
            raise ConfigError(f"--to and --write-study need a diagnosis, and notebook {notebook} leaves none.")
        beside = folder / f"{files.md.stem}_files"
        with spinner(console, "handing it over"):
            where = one([*filter(None, files), document, *([beside] if beside.is_dir() else [])], made)
        say(f"  {where}")
    return made.headline.level if made is not None else ""


def _publishers(to: str | None) -> list[Publish]:
    """What hands a report to a tracker; a wrong address, or a package that is missing, is refused before the work."""
    if to is None:
        return []
    from gpudiag.trackers import publisher

    return [publisher(to)]


def _study_writer(given: dict[str, Any]) -> Publish:
    """What writes to the study of the run; a run without the one study that is meant is refused before the work."""
    from gpudiag.trackers.study import study_writer

    return study_writer(_inputs(given), given.get("study"))


def _parameters(
    notebook: str, run: list[str], inputs: Inputs, layout: ReadingOptions, judging: Judging, typed: dict[str, str]
) -> dict[str, Any]:
    """All that was given as parameters of the notebook: options, then those of -p, then the inputs."""
    from gpudiag.report._notebook.locate import find_notebook
    from gpudiag.report._notebook.parameters import has_parameter

    path = find_notebook(notebook)
    known = suppression_file(judging.suppress, run)
    out: dict[str, Any] = {"run_path": ""} if has_parameter(path, "run_path") else {}
    if known and (judging.suppress or has_parameter(path, "suppress")):
        out["suppress"] = known
    out |= {name: value for name, value in judging.without_file().items() if value}
    return out | typed | _input_parameters(inputs.arguments(run, layout), path)


def _input_parameters(inputs: dict[str, Any], notebook: Path) -> dict[str, Any]:
    """The inputs as parameters of the notebook: one without ``run_path`` gets those files of the run that it names."""
    from gpudiag.report._notebook.parameters import has_parameter

    source = inputs.pop("source")
    if not source:
        return inputs
    if has_parameter(notebook, "run_path"):
        return {"run_path": source} | inputs
    if inputs.keys() & {"telemetry", "trials", "artifacts"}:
        raise ConfigError("got a run and single inputs as well; give one or the other.")
    from gpudiag.report._notebook.copies import inputs_by_kind

    kept = {name: value for name, value in inputs_by_kind(source).items() if value and has_parameter(notebook, name)}
    if not kept.keys() & set(INPUTS):
        raise ConfigError(f"the run holds nothing that notebook {notebook.stem} takes; give it with -p NAME=VALUE.")
    return kept | inputs


def _name(parameters: dict[str, Any]) -> str:
    """The folder of a report that was given none: as the run is called."""
    from gpudiag._load.sources import is_whole, name_of
    from gpudiag.manifest import manifest_if_any, place_of

    run = parameters.get("run_path") or ""
    if is_whole(run):
        folder, manifest = place_of(Path(run))
        return folder_name(manifest_if_any(manifest).name or name_of([folder]))
    return folder_name(name_of(_inputs(parameters), parameters.get("study")))


def _inputs(parameters: dict[str, Any]) -> list[Any]:
    """What is read, whatever names it."""
    return given_inputs(parameters.get(name) for name in INPUTS)


def _report_many(planned: list[Job], output: Path, options: list[str], jobs: int) -> str:
    """Make every report and the index over them; returns the worst level."""
    from gpudiag.report.batch import report_all

    check_output(output)
    console = console_for(stderr=True)
    done = 0
    with spinner(console, f"{len(planned)} runs") as status:

        def row_done(row: Any) -> None:
            nonlocal done
            done += 1
            if console.is_terminal:
                status.update(f"{done} of {len(planned)} runs done ...")

        index = report_all(planned, output, options, workers=jobs, progress=row_done)
    typer.echo(repr(index))
    for path in (output / "index.html", output / "index.md"):
        say(f"  {path}")
    return index.level
