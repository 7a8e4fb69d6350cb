"""A table of Ray Tune's results: ``results.get_dataframe().to_csv()`` or one trial's ``progress.csv``.

Each row is a result; the rows of one trial belong together, the last is what it came to.
"""

from __future__ import annotations

import re
from typing import Any

from gpudiag.errors import InputError
from gpudiag.readers._io.csv_records import cells_of, header_and_rows
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import ray_tune
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "ray-tune-table"

_NEEDED = frozenset({"training_iteration", "time_total_s", "timestamp"})
_ONE_TRIAL = ("trial_id", "logdir", "experiment_tag")


def recognises(source: Source) -> bool:
    """True if the header names what Ray writes into every result."""
    return not source.is_binary and bool(source.lines) and set(cells_of(source.lines[0], ",")) >= _NEEDED


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial per ``trial_id``, numbered in the order of the file; a trial that Ray did not end stays open."""
    problems = ProblemLog()
    header, rows = header_and_rows(source.read_text(), ",", problems, source.path)
    trials: dict[str, list[dict[str, Any]]] = {}
    for line, cells in rows:
        if len(cells) != len(header):
            problems.add("torn row", line=line, example=",".join(cells), lost=True)
            continue
        result = {name: ray_tune.typed(cell) for name, cell in zip(header, cells, strict=True) if cell}
        trials.setdefault(next((str(result[name]) for name in _ONE_TRIAL if name in result), ""), []).append(result)
    if not trials:
        raise InputError(f"{source.path}: holds no result of Ray Tune below its header.")
    found = []
    for trial, results in trials.items():
        last = results[-1]
        params = {name.removeprefix(ray_tune.PARAMS): last[name] for name in last if name.startswith(ray_tune.PARAMS)}
        folder = re.split(r"[\\/]", str(last.get("logdir", trial)))[-1]
        found.append((ray_tune.trial_row(folder, params, results, {}), results))
    return ray_tune.experiment(found, as_text(source.path.stem), source, options, problems)


READER: Reader[Trials] = Reader(NAME, recognises, read)
