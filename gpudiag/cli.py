"""The command line: arguments, one library call, print. Exit 0 fine, 1 --fail-on met, 2 bad input or usage."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpudiag import __version__
from gpudiag.errors import ConfigError, GpudiagError, nearest

if TYPE_CHECKING:
    from rich.console import Console


app = typer.Typer(
    name="gpudiag",
    help="Where did my GPU time go, what is wrong, what should I change, and what will that give me?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
rules_app = typer.Typer(help="The questions that gpudiag asks of a run.", no_args_is_help=True)
app.add_typer(rules_app, name="rules")

RunPath = Annotated[Path | None, typer.Argument(metavar="RUN", help="run folder or run.toml", show_default=False)]
Telemetry = Annotated[list[str] | None, typer.Option("--telemetry", metavar="FILE...", help="logs of GPU metrics")]
Trials = Annotated[str | None, typer.Option("--trials", metavar="URL|FILE", help="study or trial table")]
Artifacts = Annotated[list[str] | None, typer.Option("--artifacts", metavar="FILE...", help="task and training logs")]
Study = Annotated[str | None, typer.Option("--study", help="the one study to read")]
Timezone = Annotated[str | None, typer.Option("--timezone", help="zone of stamps that carry none, e.g. Asia/Taipei")]
Columns = Annotated[str, typer.Option("--columns", metavar="NAMES", help="names for a file without header")]
Period = Annotated[float | None, typer.Option("--period", help="seconds between samples without stamps")]
SetThreshold = Annotated[
    list[str] | None, typer.Option("--set", metavar="RULE.THRESHOLD=VALUE", help="override a threshold; repeatable")
]
MANY = ("--telemetry", "--artifacts")


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="print the version and exit")] = False) -> None:
    if version:
        typer.echo(f"gpudiag {__version__}")
        raise typer.Exit


@app.command()
def report(
    run: RunPath = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="default: reports/NAME")] = None,
    notebook: Annotated[str, typer.Option("--notebook", help="notebook to execute, by name or path")] = "run_report",
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="notebook parameter; repeatable")
    ] = None,
    telemetry: Telemetry = None,
    trials: Trials = None,
    artifacts: Artifacts = None,
    study: Study = None,
    timezone: Timezone = None,
    threshold: SetThreshold = None,
) -> None:
    """Write an executed notebook, a self-contained HTML report and a Markdown report."""
    from gpudiag.diagnosis import diagnose as run_diagnosis
    from gpudiag.load import load_run
    from gpudiag.report.notebooks import check_parameters, find_notebook, run_notebook
    from gpudiag.report.text import headline

    console = _console(stderr=True)
    inputs = _inputs(run, telemetry, trials, artifacts, study, timezone)
    limits = ", ".join(threshold or [])
    parameters: dict[str, Any] = {("run_path" if name == "path" else name): value for name, value in inputs.items()}
    parameters |= ({"thresholds": limits} if limits else {}) | _assignments(parameter or [])
    check_parameters(find_notebook(notebook), parameters)
    with _status(console, "reading the run"):
        diagnosis = run_diagnosis(load_run(**inputs), thresholds=limits)
    folder = output or Path("reports") / _folder_name(diagnosis.run.info.name)
    _check_output(folder)
    files = run_notebook(notebook, folder, parameters, progress=console.is_terminal)
    typer.echo(headline(diagnosis.to_dict(), width=_console().width))
    for path in files:
        typer.echo(f"  {path}")


@app.command()
def diagnose(
    run: RunPath = None,
    format_: Annotated[str, typer.Option("--format", help="text, json or md")] = "text",
    fail_on: Annotated[str, typer.Option("--fail-on", help="critical, warning, info or never")] = "never",
    telemetry: Telemetry = None,
    trials: Trials = None,
    artifacts: Artifacts = None,
    study: Study = None,
    timezone: Timezone = None,
    threshold: SetThreshold = None,
) -> None:
    """Print what is wrong with a run and what to do about it."""
    from gpudiag.diagnosis import diagnose as run_diagnosis
    from gpudiag.load import load_run
    from gpudiag.report import text

    _one_of("--format", format_, ("text", "json", "md"))
    _one_of("--fail-on", fail_on, ("critical", "warning", "info", "never"))
    inputs = _inputs(run, telemetry, trials, artifacts, study, timezone)
    with _status(_console(stderr=True), "reading the run"):
        diagnosis = run_diagnosis(load_run(**inputs), thresholds=", ".join(threshold or []))
    if format_ == "json":
        typer.echo(diagnosis.to_json())
    elif format_ == "md":
        typer.echo(diagnosis.to_markdown())
    else:
        console = _console()
        typer.echo(text.render(diagnosis.to_dict(), width=console.width, color=console.is_terminal and not _no_color()))
    if diagnosis.fails(fail_on):
        raise typer.Exit(1)


@app.command()
def inspect(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="files, folders or storage URLs")],
    format_: Annotated[str, typer.Option("--format", help="text or json")] = "text",
    timezone: Timezone = None,
    study: Study = None,
    columns: Columns = "",
    period: Period = None,
) -> None:
    """Say how each input was read, and nothing more."""
    import json

    from gpudiag.inspection import inspect as inspect_paths
    from gpudiag.inspection import to_json
    from gpudiag.report.inspection import lines

    _one_of("--format", format_, ("text", "json"))
    options: dict[str, Any] = {"timezone": timezone, "study": study, "columns": _names(columns), "period_s": period}
    with _reading(_console(stderr=True)) as progress:  # takes standard output on a terminal: printed is afterwards
        entries = [to_json(record) for record in inspect_paths(paths, **options, progress=progress)]
    if format_ == "json":
        typer.echo(json.dumps(entries, indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(line for entry in entries for line in lines(entry)))
    if not any(entry["error"] is None for entry in entries) or _named_failed(paths, entries):
        raise typer.Exit(2)


@app.command()
def convert(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="logs of GPU metrics, of one run")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="NAME.parquet")],
    timezone: Timezone = None,
    columns: Columns = "",
    period: Period = None,
) -> None:
    """Write logs of GPU metrics, read as one, into a Parquet file that is read as an input like any other."""
    from gpudiag.convert import convert as convert_files

    with _reading(_console(stderr=True)) as progress:
        data = convert_files(
            files, output, timezone=timezone, columns=_names(columns), period_s=period, progress=progress
        )
    typer.echo(f"{output}: {data.rows} rows of {len(data.gpus)} GPUs written.")


@app.command()
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
    from gpudiag.record.session import record_command, record_until_interrupt

    recorder = Recorder(
        output,
        interval_s=interval,
        gpus=_names(gpus),
        processes=processes,
        host=host,
        rotate_mb=rotate_mb,
        warn=not command,
    )
    if command:
        raise typer.Exit(record_command(recorder, command))
    record_until_interrupt(recorder, interval, sys.stderr if sys.stderr.isatty() else None)


@rules_app.command("list")
def rules_list(format_: Annotated[str, typer.Option("--format", help="text, json or md")] = "text") -> None:
    """List every rule with its thresholds."""
    from gpudiag.report.rules import rules_json, rules_markdown, rules_text
    from gpudiag.rules import RULES

    _one_of("--format", format_, ("text", "json", "md"))
    render = {"text": rules_text, "json": rules_json, "md": rules_markdown}[format_]
    typer.echo(render(RULES))


@rules_app.command("explain")
def rules_explain(rule_id: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Explain one rule: why it matters, its thresholds and their source."""
    from gpudiag.report.rules import rule_text
    from gpudiag.rules import RULES

    by_id = {rule.id: rule for rule in RULES}
    if rule_id not in by_id:
        raise ConfigError(f"there is no rule '{rule_id}'; {nearest(rule_id, by_id)}")
    typer.echo(rule_text(by_id[rule_id]))


@app.command()
def demo(
    case: Annotated[str, typer.Option("--case", help="name of the simulated case")] = "hpo-aggressive-pruning",
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="default: ./NAME")] = None,
    list_: Annotated[bool, typer.Option("--list", help="list the cases and exit")] = False,
) -> None:
    """Write a simulated run whose truth is known, to try gpudiag on."""
    from gpudiag.simulation.cases import CASES, write_case

    if list_:
        typer.echo("\n".join(CASES))
        return
    if case not in CASES:
        raise ConfigError(f"there is no case '{case}'; {nearest(case, CASES)}")
    folder = output or Path(case)
    write_case(case, folder)
    typer.echo(f"{folder}: written. Next: gpudiag report {folder}")


def _folder_name(name: str) -> str:
    """A run's name as the name of one folder, whatever characters it has."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"


def _check_output(folder: Path) -> None:
    """Raise ConfigError before any work is done if nothing can be written there."""
    there = next(part for part in (folder, *folder.absolute().parents) if part.exists())
    if not there.is_dir():
        raise ConfigError(f"{folder}: cannot be written to, because {there} is not a folder; choose another -o.")
    if not os.access(there, os.W_OK):
        raise ConfigError(f"{folder}: cannot be written to, because {there} is read-only; choose another -o.")


def _inputs(
    run: Path | None,
    telemetry: list[str] | None,
    trials: str | None,
    artifacts: list[str] | None,
    study: str | None,
    timezone: str | None,
) -> dict[str, Any]:
    """The choice of inputs as arguments of load_run."""
    if run is None and not (telemetry or trials or artifacts):
        raise ConfigError("no run given; expected a run folder, a run.toml, or --telemetry FILE and --trials FILE.")
    given = {"telemetry": telemetry, "trials": trials, "artifacts": artifacts, "study": study, "timezone": timezone}
    return {"path": str(run or ""), **{name: value for name, value in given.items() if value}}


def _assignments(items: list[str]) -> dict[str, str]:
    """``name=value`` items of -p; the notebook's own defaults say which type a value has."""
    out: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"-p {item}: expected NAME=VALUE.")
        out[name.strip()] = value.strip()
    return out


def _one_of(option: str, value: str, legal: tuple[str, ...]) -> None:
    if value not in legal:
        raise ConfigError(f"{option} must be one of {', '.join(legal)}, but got '{value}'; {nearest(value, legal)}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _named_failed(paths: list[str], entries: list[dict[str, Any]]) -> bool:
    """True if a path that was named itself, not found in a folder, could not be read."""
    return any(entry["error"] is not None and entry["path"] in paths for entry in entries)


def _no_color() -> bool:
    return bool(os.environ.get("NO_COLOR"))


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, no_color=_no_color(), highlight=False)


def _status(console: Console, what: str) -> Any:
    """A spinner on a terminal; nothing in a pipe or batch run."""
    from contextlib import nullcontext

    return console.status(f"{what} ...") if console.is_terminal else nullcontext()


@contextmanager
def _reading(console: Console) -> Iterator[Callable[[str], None]]:
    """What to call with each path before it is read: a terminal shows it, a pipe stays quiet."""
    if not console.is_terminal:
        yield lambda path: None
        return
    from rich.markup import escape

    with console.status("reading ...") as status:
        yield lambda path: status.update(f"reading {escape(path)} ...")


def expand(arguments: list[str]) -> list[str]:
    """``--telemetry a b`` as ``--telemetry a --telemetry b``, so that shell globs work; a command after -- is left."""
    out: list[str] = []
    current = ""
    taken = 0
    end = arguments.index("--") if "--" in arguments else len(arguments)
    for argument in arguments[:end]:
        if argument.startswith("-") and argument != "-":
            current, taken = (argument if argument in MANY else ""), 0
            out.append(argument)
        elif current:
            out += [argument] if taken == 0 else [current, argument]
            taken += 1
        else:
            out.append(argument)
    return out + arguments[end:]


def main() -> None:
    """Entry point: every deliberate failure is one sentence on stderr and exit 2."""
    try:
        app(expand(sys.argv[1:]))
    except GpudiagError as error:
        sys.stderr.write(f"gpudiag: {error}\n")
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"gpudiag: {where}{error.strerror or error}; check the path and the room on the disk.\n")
        sys.exit(2)
