"""A diagnosis for other tools. A new format is one file here and one name in FORMATS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag.errors import ConfigError, nearest
from gpudiag.export import openmetrics, perfetto, tables

if TYPE_CHECKING:
    from gpudiag.diagnosis import Diagnosis

Write = Callable[["Diagnosis", Path], list[Path]]

FORMATS: dict[str, tuple[str, Write]] = {
    "perfetto": (".perfetto.json", perfetto.write),
    "parquet": ("-parquet", tables.write_parquet),
    "csv": ("-csv", tables.write_csv),
    "openmetrics": (".openmetrics.txt", openmetrics.write),
}
"""By name: what follows the run's name in the name of the output, and the function that writes it."""


def export(diagnosis: Diagnosis, to: str, path: str | Path) -> list[Path]:
    """Write a diagnosis and its run for another tool, and say which files were written.

    Args:
        diagnosis: what :func:`gpudiag.diagnose` gave.
        to: ``perfetto`` (a trace for ui.perfetto.dev or chrome://tracing), ``parquet`` or ``csv`` (a folder of tables),
            ``openmetrics`` (text for a Prometheus push gateway or text-file collector).
        path: the file, or the folder for the tables; made where it does not exist.

    Raises:
        ConfigError: no such format.
    """
    if to not in FORMATS:
        raise ConfigError(f"there is no format '{to}'; {nearest(to, FORMATS)}")
    return FORMATS[to][1](diagnosis, Path(path))
