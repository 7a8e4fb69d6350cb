"""``gpudiag compare``: an experiment, or several, against a baseline; and a plan against what happened."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gpudiag.cli._arguments import check_output, existing_run, existing_runs, folder_name
from gpudiag.cli._console import console_for, show, spinner
from gpudiag.cli._faults import telling
from gpudiag.cli._options import OnFault, choice


def compare(
    baseline: Annotated[
        str,
        typer.Argument(metavar="A", help="baseline: run folder, run.toml, file or storage URL", callback=existing_run),
    ],
    experiments: Annotated[
        list[str],
        typer.Argument(metavar="B [C ...]", help="experiments against that baseline", callback=existing_runs),
    ],
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="plan.json of the baseline: check its predictions")
    ] = None,
    format_: Annotated[
        str,
        choice(
            *("--format", "text", "json", "md", "summary"),
            help="text, json, md, or summary (short enough for a pull request)",
        ),
    ] = "text",
    fail_on: Annotated[
        str,
        choice(
            *("--fail-on", "regression", "invalid", "never"),
            help="regression (slower, more failures, 10 % more time in all), invalid (that, or not comparable), never",
        ),
    ] = "never",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="also write HTML, Markdown, notebook and JSON there"),
    ] = None,
    *,
    all_: Annotated[bool, typer.Option("--all", help="every check and quantity, GPU time and settings")] = False,
    fault: OnFault,
) -> None:
    """Compare runs: first whether that may be done, then the numbers with their intervals."""
    from gpudiag.comparison.compare import Comparisons
    from gpudiag.comparison.compare import compare as run_comparison
    from gpudiag.report._notebook.parameters import Given
    from gpudiag.report.comparison import screen, text

    if output is not None:
        check_output(output)
    with telling(debug=fault.debug, strict=fault.strict):
        with spinner(console_for(stderr=True), "reading the runs"):
            held = run_comparison(baseline, experiments[0] if len(experiments) == 1 else experiments, plan=plan)
        pairs = list(held) if isinstance(held, Comparisons) else [held]
        if format_ == "text":
            show(block for pair in pairs for block in (text if all_ else screen)(pair.document))
        else:
            typer.echo(_rendered(held, format_))
        if output is not None:
            for place, (pair, folder) in enumerate(zip(pairs, _folders(pairs, output), strict=True)):
                parameters: dict[str, Given] = {
                    "baseline_path": baseline,
                    "experiment_path": experiments[place],
                    "plan_path": plan or "",
                }
                parameters |= {"among": experiments, "place": place} if len(pairs) > 1 else {}
                for path in pair.save_report(folder, parameters):
                    typer.echo(f"  {path}", err=True)
        if held.fails(fail_on):
            raise typer.Exit(1)


def _rendered(held: Any, format_: str) -> str:
    """The comparison, or all of them, as text of that format."""
    if format_ == "json":
        return str(held.to_json()).rstrip("\n")
    if format_ == "md":
        return str(held.to_markdown())
    return str(held.summary())


def _folders(pairs: list[Any], output: Path) -> list[Path]:
    """A folder for each pair: the output itself, or one below it by the experiment's name, no two alike in any case."""
    if len(pairs) == 1:
        return [output]
    from gpudiag.report.batch import distinct_names

    return [output / name for name in distinct_names(folder_name(pair.experiment.name) for pair in pairs)]
