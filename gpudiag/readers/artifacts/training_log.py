"""The text log of a training or of its workers: failures, loader timing, epochs and GPUs given, as events."""

from __future__ import annotations

import re
from collections import Counter

import pandas as pd

from gpudiag.readers._batches.line_timestamps import line_timestamp
from gpudiag.readers._batches.log_lines import gpu_of, is_progress, kind_of, trial_of, worker_of
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._studies.timestamps import to_utc
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.schema import EVENTS, conform, empty, text_dtype

NAME = "training-log"

_DETAIL_CHARACTERS = 300
_ENOUGH_PROGRESS = 3
_NO_LOG = re.compile(r'\s*(?:[{<]|\[\s*[{"\]]|#!|# )|(?s:.*\n)?(?:```|(?:import|from|def|class) \w)')
"""JSON, XML, a script, Markdown, Python: they may quote an error, but nothing of it happened."""


def recognises(source: Source) -> bool:
    """True if the head tells of an event or of three stamped steps of a training; other formats quote such lines."""
    if source.is_binary or not source.head or _NO_LOG.match(source.text):
        return False
    return any(kind_of(line) for line in source.lines) or _trains(source)


def _trains(source: Source) -> bool:
    steps = 0
    for line in source.lines:
        steps += is_progress(line) and bool(line_timestamp(line))
        if steps == _ENOUGH_PROGRESS:
            return True
    return False


def read(source: Source, options: ReadOptions) -> Trials:
    """One event a line, in the order of the lines; a failure that was printed twice is two rows.

    ``time`` is the line's own timestamp, NaT where it has none. ``trial`` is the number the line names, ``gpu``
    the one it says the trial was given, ``worker`` the one it says took it.
    """
    problems = ProblemLog()
    rows = []
    for number, line in numbered_lines(source, problems):
        kind = kind_of(line)
        if kind is not None:
            gpu = gpu_of(line) if kind == "gpu_assigned" else None
            worker = worker_of(line) if kind in ("worker", "gpu_assigned") else None
            text = line.strip()[:_DETAIL_CHARACTERS]
            rows.append((line_timestamp(line), kind, text, gpu, trial_of(line), worker, number))
    name = as_text(source.path.name)
    if not rows:
        note = f"{name}: a training log without a line about failures, loader timing, epoch times or GPUs."
        return Trials(problems=problems.all, notes=(note,), reader=NAME)
    timestamps, kinds, details, gpus, trials, workers, numbers = zip(*rows, strict=True)
    times = to_utc(timestamps, options.timezone)
    problems.add("timestamp that is no date", times.bad, example=times.example)
    text = text_dtype()
    events = pd.DataFrame({"time": times.time, "kind": pd.Series(kinds, dtype=text), "line": numbers})
    events["detail"] = pd.Series(details, dtype=text)
    events["gpu"] = pd.Series(gpus, dtype=text)
    events["trial"] = pd.Series(trials, dtype="Int64")
    events["worker"] = pd.Series(workers, dtype=text)
    events["path"] = as_text(source.path)
    notes = [f"{name}: " + ", ".join(f"{count} x {kind}" for kind, count in Counter(kinds).most_common()) + "."]
    if times.clock in ("local", "mixed"):
        notes.append(f"{name}: timestamps without a zone read as local time of {options.timezone}.")
    return Trials(
        events=conform(events, EVENTS) if len(events) else empty(EVENTS),
        problems=problems.all,
        notes=tuple(notes),
        reader=NAME,
    )


READER: Reader[Trials] = Reader(NAME, recognises, read)
