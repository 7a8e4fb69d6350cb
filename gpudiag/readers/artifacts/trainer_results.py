"""``train_results.json``, ``eval_results.json`` and ``all_results.json`` of Hugging Face's Trainer (``save_metrics``);
recognized in order to say what holds more.
"""

from __future__ import annotations

import re

from gpudiag.readers._io.json_values import json_object
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.source import Source
from gpudiag.readers._steps.written_numbers import number
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.report.format import duration

NAME = "trainer-results"
_SPEED = re.compile(r'"(train|eval|test|predict)(?:_\w{1,80})?_runtime"\s*:\s*([\d.]{1,20})')
_MOST = 64 * 1024


def recognises(source: Source) -> bool:
    """One JSON object of numbers with a ``train_runtime`` or the like and what it counts a second."""
    text = source.text.strip()
    if source.is_binary or len(text) > _MOST or not text.startswith("{") or "_per_second" not in text:
        return False
    if not _SPEED.search(text):
        return False
    found = json_object(text)
    if found is None or "step" in found:
        return False
    return not any(isinstance(value, dict | list) for value in found.values())


def read(source: Source, options: ReadOptions) -> Trials:
    """No row: a time without what it holds tells no share of it."""
    said = [f"{name} {duration(number(seconds))}" for name, seconds in _SPEED.findall(source.text)]
    note = (
        f"{as_text(source.path.name)}: states only how long all of it took ({', '.join(said)}), and is not used; "
        "trainer_state.json beside it, or what the Trainer printed, tells of the evaluations in that time."
    )
    return Trials(notes=(note,), reader=NAME)


READER: Reader[Trials] = Reader(NAME, recognises, read, refuses=True)
