"""``%load_ext gpudiag``: a cell of a notebook that begins with ``%%gpu`` is recorded while it runs.

The line is taken out before IPython runs the cell, which then runs as any other: its errors, its displays and its
``await`` are IPython's own. The recording begins and ends at IPython's events of the cell.
"""

from __future__ import annotations

import shlex
import time
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from gpudiag.errors import ConfigError, GpudiagError
from gpudiag.record.readings import Adapter
from gpudiag.record.recorder import Recorder
from gpudiag.record.worker import say
from gpudiag.scratch import scratch

LINE = "%%gpu"
INTERVAL_S = 0.5
"""NVML averages utilization over up to a second; cells are short."""


class _Options(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{LINE}: {message}; expected {LINE} [-o FILE] [--interval SECONDS].")


class Cells:
    """Records the cells of one IPython that begin with ``%%gpu``. ``adapter``: where readings come from, for tests."""

    def __init__(self, adapter: Adapter | None = None) -> None:
        self._adapter = adapter
        self._cell: object = None
        self._open = ExitStack()
        self._recorder: Recorder | None = None
        self._began, self._clock = datetime.now(UTC), 0.0

    def register(self, shell: Any) -> None:
        """Take part in what an IPython runs."""
        shell.input_transformers_cleanup.append(without_line)
        shell.events.register("pre_run_cell", self.begin)
        shell.events.register("post_run_cell", self.end)

    def begin(self, info: Any) -> None:
        """Start to record if the cell asks for it. What forbids it is one sentence, and the cell runs."""
        found = _line_of(str(info.raw_cell).splitlines(keepends=True))
        if found is None or self._recorder is not None:  # a cell that a recorded one runs
            return
        try:
            options = _options(found[1])
            path = Path(options.output or self._open.enter_context(scratch()) / "cell.csv")
            recorder = Recorder(
                path, interval_s=options.interval, processes=False, host=False, warn=False, adapter=self._adapter
            )
            self._began, self._clock = datetime.now(UTC), time.monotonic()
            self._recorder = recorder.start()
        except (GpudiagError, OSError) as error:
            self._open.close()
            say(f"{str(error).rstrip('.')}. The cell is not recorded.")
            return
        self._cell = info

    def end(self, result: Any) -> None:
        """Stop, and print a line for each GPU that the cell used."""
        if self._recorder is None or result.info is not self._cell:
            return
        took_s = time.monotonic() - self._clock
        recorder, self._recorder = self._recorder, None
        with self._open.pop_all():
            recorder.stop()
            from gpudiag.report.cell import cell_lines

            try:
                print(*cell_lines(recorder.path, self._began, took_s), sep="\n")
            except (GpudiagError, OSError) as error:
                say(str(error))


def without_line(lines: list[str]) -> list[str]:
    """The lines of a cell with an empty one in place of ``%%gpu``, so that tracebacks name the right line; nothing
    above another cell magic, which must be the first line.
    """
    found = _line_of(lines)
    if found is None:
        return lines
    after = lines[found[0] + 1 :]
    code = next((place for place, line in enumerate(after) if line.strip()), 0)
    return after[code:] if after and after[code].startswith("%%") else [*lines[: found[0]], "\n", *after]


def _line_of(lines: list[str]) -> tuple[int, str] | None:
    """Where the line stands, the first that is not empty, and what follows ``%%gpu`` in it."""
    for place, line in enumerate(lines):
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            return (place, rest) if name == LINE else None
    return None


def _options(text: str) -> Namespace:
    options = _Options(prog=LINE, add_help=False, allow_abbrev=False)
    options.add_argument("-o", "--output", metavar="FILE", default="")
    options.add_argument("--interval", type=float, metavar="SECONDS", default=INTERVAL_S)
    try:
        words = shlex.split(text)
    except ValueError as error:  # a quote that nothing closes
        raise ConfigError(f"{LINE}: {error}; expected {LINE} [-o FILE] [--interval SECONDS].") from error
    return options.parse_args(words)


_CELLS = Cells()


def load(shell: Any) -> None:
    """Record the cells of this IPython; once, however often the extension is loaded."""
    if without_line not in shell.input_transformers_cleanup:
        _CELLS.register(shell)
