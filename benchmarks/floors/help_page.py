"""What a page of help costs where there is nothing to say: Typer with the options of ours, and a command without any.

    python benchmarks/floors/help_page.py --help

Importing ``typer`` and ``rich.table`` is half of it: for its first page Typer imports ``rich.markdown`` and more.
"""

from __future__ import annotations

import typer

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
)


@app.command()
def nothing() -> None:
    """Do nothing."""


@app.callback()
def _root() -> None:
    """Nothing to do."""


if __name__ == "__main__":
    app()
