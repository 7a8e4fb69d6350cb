"""``gpudiag bug-report``: what a bug report needs, without names and values, to read before it is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._arguments import check_file, given_inputs
from gpudiag.cli._console import console_for, say, spinner
from gpudiag.cli._options import Inputs, ReadingOptions, RunPath


def bug_report(
    run: RunPath = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="write it there")] = None,
    *,
    inputs: Inputs,
    layout: ReadingOptions,
) -> None:
    """Print what a bug report needs: versions, how a run was read, and what failed. Nothing is sent anywhere."""
    from gpudiag.bug_report.text import Asked, bug_report
    from gpudiag.files import write

    if output is not None:
        check_file(output)
    given = given_inputs((run, inputs.telemetry, inputs.trials, inputs.artifacts))
    asked = None
    if given:
        asked = Asked(given, inputs.arguments(run, layout), layout.arguments() | {"study": inputs.study})
    with spinner(console_for(stderr=True), "reading the run"):
        text = bug_report(asked)
    if output is None:
        say(*text.splitlines())
        return
    write(output, text)
    say(f"bug report: {output}", "Nothing was sent. Read it before you attach it to a report.")
