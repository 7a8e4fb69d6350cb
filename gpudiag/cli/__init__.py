"""The command line: arguments, one library call, print.

Exit 0 fine, 1 --fail-on met, 2 bad input or usage, 3 a fault of gpudiag itself (in a part of it, or in a rule of
somebody's own, only with --strict); 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from gpudiag import __version__
from gpudiag.cli._arguments import expand
from gpudiag.cli._console import say, write_any_text
from gpudiag.cli._faults import last_resort
from gpudiag.cli._home import without_home
from gpudiag.cli._options import taking_groups
from gpudiag.cli._signals import Interrupted, as_interrupt
from gpudiag.cli._stderr import Commands, complain
from gpudiag.cli._welcome import welcome
from gpudiag.cli.bug_report import bug_report
from gpudiag.cli.compare import compare
from gpudiag.cli.convert import convert
from gpudiag.cli.demo import demo
from gpudiag.cli.diagnose import diagnose
from gpudiag.cli.export import export
from gpudiag.cli.fetch import fetch_app
from gpudiag.cli.fleet import fleet
from gpudiag.cli.history import history
from gpudiag.cli.inspect import inspect
from gpudiag.cli.lab import lab
from gpudiag.cli.mcp import mcp
from gpudiag.cli.notebooks import notebooks_app
from gpudiag.cli.plans import plans
from gpudiag.cli.record import record
from gpudiag.cli.report import report
from gpudiag.cli.rules import rules_app
from gpudiag.cli.skill import skill
from gpudiag.cli.slurm_template import slurm_template
from gpudiag.cli.trace import trace
from gpudiag.cli.whatif import whatif
from gpudiag.errors import GpudiagError
from gpudiag.interpreter import COLLECT_AFTER
from gpudiag.report.format import safe

app = typer.Typer(
    name="gpudiag",
    cls=Commands,
    help="Where did my GPU time go, what is wrong, what should I change, and what will that give me?",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    report,
    diagnose,
    inspect,
    compare,
    fleet,
    history,
    plans,
    whatif,
    trace,
    convert,
    export,
    record,
    slurm_template,
    lab,
    mcp,
    skill,
    demo,
    bug_report,
):
    app.command()(taking_groups(command))
app.add_typer(rules_app, name="rules")
app.add_typer(notebooks_app, name="notebooks")
app.add_typer(fetch_app, name="fetch")

NEEDLESS = ("rfc3987_syntax",)
"""jsonschema, which nbformat needs, compiles its grammars of international addresses at import, in about a second.
It does without where the module is not installed; no notebook holds such an address."""


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="print the version and exit")] = False,
) -> None:
    if version:
        typer.echo(f"gpudiag {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        if lines := welcome(Path()):
            say(*lines)
        else:
            typer.echo(context.get_help())


def main() -> None:
    """Entry point: every deliberate failure is one sentence on stderr and exit 2, any other one sentence and exit 3."""
    with as_interrupt() as ended:
        try:
            with without_home():
                _run()
        except (KeyboardInterrupt, Interrupted):
            complain(f"gpudiag: {ended}\n")
            sys.exit(ended.code)


def _run() -> None:
    for module in NEEDLESS:
        sys.modules.setdefault(module, None)  # type: ignore[arg-type]
    gc.set_threshold(*COLLECT_AFTER)
    atexit.register(gc.freeze)  # else Python looks through all objects again to end: an eighth of a small diagnosis
    write_any_text()
    logging.getLogger("asyncio").disabled = True  # interrupted, it says which tasks of Jupyter nobody waited for
    try:
        app(expand(sys.argv[1:]))
    except GpudiagError as error:
        complain(f"gpudiag: {safe(error)}\n")
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        complain(f"gpudiag: {_said(error)}\n")
        sys.exit(2)
    except Exception as error:  # whatever nobody thought of: with 1 it would look like --fail-on
        given = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
        sys.exit(last_resort(error, debug="--debug" in given))


def _said(error: OSError) -> str:
    try:
        Path.cwd()
    except FileNotFoundError:
        return "the folder that you are in was deleted; go to another one and run the command again."
    where = f"{error.filename}: " if error.filename else ""
    return f"{safe(where)}{error.strerror or error}; check the path and the room on the disk."
