"""``gpudiag record``: sample GPUs while a command runs, or until Ctrl-C."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._arguments import names


def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", help="run this and record till it ends")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help=".csv or .parquet")] = Path(
        "metrics.csv"
    ),
    interval: Annotated[float, typer.Option("--interval", help="seconds between samples")] = 1.0,
    gpus: Annotated[str, typer.Option("--gpus", metavar="0,1|UUID", help="default: all")] = "",
    processes: Annotated[bool, typer.Option("--processes", help="the processes on each GPU as well")] = False,
    host: Annotated[bool, typer.Option("--host", help="processors, memory and disks as well")] = False,
    rotate_mb: Annotated[float | None, typer.Option("--rotate-mb", help="begin a new file after so many MB")] = None,
) -> None:
    """Record GPU metrics while a command runs, or until Ctrl-C; exit with the command's code."""
    from gpudiag.record.recorder import Recorder
    from gpudiag.record.session import afterwards, record_command, record_until_interrupt

    recorder = Recorder(
        output,
        interval_s=interval,
        gpus=names(gpus),
        processes=processes,
        host=host,
        rotate_mb=rotate_mb,
        warn=not command,
    )
    screen = sys.stderr if sys.stderr.isatty() else None
    if command:
        code = record_command(recorder, command)
        if screen is not None:
            screen.write(f"{afterwards(recorder)}\n")
        raise typer.Exit(code)
    record_until_interrupt(recorder, interval, screen)
