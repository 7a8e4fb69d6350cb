"""``gpudiag diagnose``: what is wrong with a run, on the terminal or for a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpudiag.cli._arguments import as_level, check_output, one_of, rule_modules, run_inputs, suppression_file
from gpudiag.cli._console import console_for, no_color, spinner
from gpudiag.cli._faults import telling
from gpudiag.cli._options import (
    Artifacts,
    Columns,
    Debug,
    Period,
    Preset,
    RuleModules,
    RunPath,
    SetThreshold,
    Strict,
    Study,
    Suppress,
    Telemetry,
    Timezone,
    Trials,
)

if TYPE_CHECKING:
    from gpudiag.diagnosis import Diagnosis

FORMATS = ("text", "json", "md", "junit", "github")


def diagnose(
    run: RunPath = None,
    format_: Annotated[str, typer.Option("--format", help="text, json, md, junit or github")] = "text",
    fail_on: Annotated[str, typer.Option("--fail-on", help="critical, warning, note or never")] = "never",
    plan_out: Annotated[
        Path | None, typer.Option("--plan-out", metavar="FILE", help="write plan.json: what is advised and predicted")
    ] = None,
    telemetry: Telemetry = None,
    trials: Trials = None,
    artifacts: Artifacts = None,
    study: Study = None,
    timezone: Timezone = None,
    columns: Columns = "",
    period: Period = None,
    preset: Preset = "",
    threshold: SetThreshold = None,
    suppress: Suppress = None,
    rules: RuleModules = None,
    strict: Strict = False,
    debug: Debug = False,
) -> None:
    """Print what is wrong with a run and what to do about it."""
    from gpudiag.diagnosis import diagnose as run_diagnosis
    from gpudiag.load import load_run

    one_of("--format", format_, FORMATS)
    fail_on = as_level(fail_on)
    inputs = run_inputs(run, telemetry, trials, artifacts, study, timezone, columns, period)
    if plan_out is not None:
        check_output(plan_out.parent)
    with telling(debug=debug, strict=strict):
        with spinner(console_for(stderr=True), "reading the run"):
            diagnosis = run_diagnosis(
                load_run(**inputs),
                rules=rule_modules(rules),
                thresholds=", ".join(threshold or []),
                preset=preset,
                suppress=suppression_file(suppress, run),
            )
        typer.echo(_rendered(diagnosis, format_, fail_on), nl=False)
        if plan_out is not None:
            typer.echo(f"plan: {diagnosis.save_plan(plan_out)}", err=True)
        if diagnosis.fails(fail_on):
            raise typer.Exit(1)


def _rendered(diagnosis: Diagnosis, format_: str, fail_on: str) -> str:
    from gpudiag.report.github import github_annotations
    from gpudiag.report.junit import junit_xml
    from gpudiag.report.text import render

    match format_:
        case "json":
            return diagnosis.to_json()
        case "md":
            return diagnosis.to_markdown()
        case "junit":
            return junit_xml(diagnosis.document, fail_on)
        case "github":
            return github_annotations(diagnosis.document)
    console = console_for()
    return render(diagnosis.document, width=console.width, color=console.is_terminal and not no_color())
