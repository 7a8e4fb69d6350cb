"""The terminal: its width, its colours, and signs of life while something is read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from gpudiag.report.format import inert_lines, safe

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID
    from rich.status import Status

    from gpudiag.report._render.blocks import Block

BAR_AFTER_S = 2.0


def no_color() -> bool:
    return bool(os.environ.get("NO_COLOR"))


def console_for(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, no_color=no_color(), highlight=False)


def say(*lines: object, err: bool = False) -> None:
    """Print lines that may quote names of files and texts of inputs, each as one line without control characters."""
    typer.echo(inert_lines("\n".join(map(safe, lines))), err=err)


def show(blocks: Iterable[Block]) -> None:
    """Print them: as wide as the terminal is, 80 columns in a pipe, and on a terminal in colors."""
    from gpudiag.report._render.terminal import render

    console = console_for()
    color = console.color_system is not None and not no_color()
    typer.echo(render(blocks, console.width, color=color), color=color or None)


@contextmanager
def spinner(console: Console, what: str) -> Iterator[Any]:
    """A spinner on a terminal, and a bar for a log that takes longer to read; nothing in a pipe or batch run."""
    if not console.is_terminal:
        yield None
        return
    from gpudiag.readers._io.source import listening

    with console.status(f"{what} ...") as status, _Bar(console, status) as bar, listening(bar.show):
        yield status


@contextmanager
def reading(console: Console) -> Iterator[Callable[[str], None]]:
    """What to call with each path before it is read: a terminal shows it, a pipe stays quiet."""
    from rich.markup import escape

    with spinner(console, "reading") as status:
        yield lambda path: status.update(f"reading {escape(safe(path))} ...") if status else None


class _Bar:
    """A bar in place of the spinner, from two seconds after a log was begun until it has been read."""

    def __init__(self, console: Console, status: Status) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, transient=True)
        self._status = status
        self._path, self._began = "", 0.0
        self._task: TaskID | None = None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def show(self, path: str, share: float) -> None:
        """The share of a log that has been read."""
        from rich.markup import escape

        if path != self._path:
            self._path, self._began = path, time.monotonic()
        if self._task is None and share < 1 and time.monotonic() - self._began > BAR_AFTER_S:
            self._status.stop()
            self._task = self._progress.add_task(f"reading {escape(safe(path))}", total=1.0)
            self._progress.start()
        if self._task is not None:
            self._progress.update(self._task, completed=share)
            if share >= 1:
                self._progress.remove_task(self._task)
                self._task = None
                self._progress.stop()
                self._status.start()
