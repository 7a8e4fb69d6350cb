"""``gpudiag diagnose``: what is wrong with a run, on the terminal or for a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpudiag.cli._arguments import check_file
from gpudiag.cli._console import console_for, show, spinner
from gpudiag.cli._faults import telling
from gpudiag.cli._options import FailOn, Inputs, Judging, OnFault, ReadingOptions, RunPath, choice
from gpudiag.cli._step_summary import append_step_summary

if TYPE_CHECKING:
    from gpudiag.diagnosis import Diagnosis


def diagnose(
    run: RunPath = None,
    format_: Annotated[str, choice("--format", "text", "json", "md", "junit", "github", "gitlab", "sarif")] = "text",
    all_: Annotated[bool, typer.Option("--all", help="every finding and every check, not one screen")] = False,
    fail_on: FailOn = "never",
    plan_out: Annotated[
        Path | None, typer.Option("--plan-out", metavar="FILE", help="write plan.json: what is advised and predicted")
    ] = None,
    *,
    inputs: Inputs,
    layout: ReadingOptions,
    judging: Judging,
    fault: OnFault,
) -> None:
    """Print what is wrong with a run and what to do about it."""
    from gpudiag.diagnosis import diagnose as run_diagnosis
    from gpudiag.load import load_run
    from gpudiag.report.text import screen, whole

    given = inputs.checked(run, layout)
    if plan_out is not None:
        check_file(plan_out)
    with telling(debug=fault.debug, strict=fault.strict):
        with spinner(console_for(stderr=True), "reading the run"):
            diagnosis = run_diagnosis(load_run(**given), **judging.arguments(run))
        if format_ == "text":
            show(whole(diagnosis.document) if all_ else screen(diagnosis.document))
        else:
            typer.echo(_rendered(diagnosis, format_, fail_on), nl=False)
        if format_ == "github":
            append_step_summary(lambda: diagnosis.to_markdown(full=False))
        if plan_out is not None:
            typer.echo(f"plan: {diagnosis.save_plan(plan_out)}", err=True)
        if diagnosis.fails(fail_on):
            raise typer.Exit(1)


def _rendered(diagnosis: Diagnosis, format_: str, fail_on: str) -> str:
    from gpudiag.report.github import github_annotations
    from gpudiag.report.gitlab import gitlab_issues
    from gpudiag.report.junit import junit_xml
    from gpudiag.report.location import location
    from gpudiag.report.sarif import sarif_log

    document = diagnosis.document
    match format_:
        case "json":
            return diagnosis.to_json()
        case "md":
            return diagnosis.to_markdown(full=False)
        case "junit":
            return junit_xml(document, fail_on)
        case "github":
            return github_annotations(document)
    path = location(document.inputs, diagnosis.run.info.folder, Path.cwd())
    return sarif_log(document, path) if format_ == "sarif" else gitlab_issues(document, path)
