"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._arguments import existing_runs

Parameters = Annotated[
    list[str] | None, typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="notebook parameter; repeatable")
]
RunPath = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN",
        help="a run folder, a run.toml, or files and storage URLs of one run",
        show_default=False,
        callback=existing_runs,
    ),
]
Telemetry = Annotated[list[str] | None, typer.Option("--telemetry", metavar="FILE...", help="logs of GPU metrics")]
Trials = Annotated[str | None, typer.Option("--trials", metavar="URL|FILE", help="study or trial table")]
Artifacts = Annotated[list[str] | None, typer.Option("--artifacts", metavar="FILE...", help="task and training logs")]
Study = Annotated[str | None, typer.Option("--study", help="the one study to read")]
Timezone = Annotated[
    str | None, typer.Option("--timezone", help="zone of timestamps that carry none, e.g. Asia/Taipei")
]
Columns = Annotated[str, typer.Option("--columns", metavar="NAMES", help="names for a file without header")]
Period = Annotated[float | None, typer.Option("--period", help="seconds between samples without timestamps")]
SetThreshold = Annotated[
    list[str] | None, typer.Option("--set", metavar="RULE.THRESHOLD=VALUE", help="override a threshold; repeatable")
]
Preset = Annotated[
    str, typer.Option("--preset", metavar="NAME", help="thresholds of another tool: jobstats, sagemaker or traceml")
]
Suppress = Annotated[
    Path | None,
    typer.Option(
        "--suppress",
        metavar="FILE",
        help="findings not to be told; default: gpudiag.toml beside run.toml, else in this folder",
        show_default=False,
    ),
]
RuleModules = Annotated[
    list[str] | None,
    typer.Option("--rules", metavar="MODULE", help="rules of your own: an import path or a .py file; repeatable"),
]
Debug = Annotated[bool, typer.Option("--debug", help="print the traceback of a fault of gpudiag itself")]
Strict = Annotated[bool, typer.Option("--strict", help="exit with 3 where gpudiag itself failed in any part")]
