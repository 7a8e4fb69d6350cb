"""What ``optuna trials -f json`` and ``-f yaml`` print: a list of trials, flattened or not; what ``to_json`` of
``study.trials_dataframe()`` writes; and JSON Lines with a trial each.

The JSON is Python's: infinities and NaN stand bare, which no other parser accepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from gpudiag.errors import InputError
from gpudiag.readers._io import plain_yaml
from gpudiag.readers._io.json_values import DECODER, json_object
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.surrogates import without_halves
from gpudiag.readers._studies.flat import from_columns
from gpudiag.readers._studies.trial_columns import (
    LOOKED_AT,
    are_lines_of_trials,
    flattened,
    is_own_header,
    is_own_table,
    is_trial,
)
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "optuna-cli-json"
YAML_NAME = "optuna-cli-yaml"

_OF_FRAME = re.compile(r'\{\s*"(?:number"\s*:\s*\{|columns"\s*:\s*\[\s*"number")')
"""How ``DataFrame.to_json`` begins: by columns, which is its default, or with ``orient="split"``."""
_NEXT_ITEM = re.compile(r"\n(?=- )")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
"""Text of YAML in which escapes are meant as in JSON."""


def recognises(source: Source) -> bool:
    """A JSON list, or JSON Lines, whose first object has the keys of a trial; or a table of trials by columns."""
    text = source.text.lstrip()
    if source.is_binary or not text.startswith("["):
        return not source.is_binary and (bool(_OF_FRAME.match(text)) or are_lines_of_trials(source.lines))
    return _are_trials(_objects(text, ProblemLog()))


def _are_trials(found: Iterator[Mapping[str, Any]]) -> bool:
    first = next(found, None)
    if first is None or is_trial(first):
        return first is not None
    own = [flattened(first)]
    return is_own_header(list(own[0])) and is_own_table([*own, *map(flattened, islice(found, LOOKED_AT))])


def recognises_yaml(source: Source) -> bool:
    """A YAML list whose first item has the keys of a trial."""
    if source.is_binary or not source.text.startswith("- "):
        return False
    return _are_trials(_items(source.text, ProblemLog()))


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial per object; the study is called as the options say, else like the file."""
    problems, text = ProblemLog(), source.read_text().lstrip()
    if text.startswith("["):
        found = _objects(text, problems)
    else:
        found = _rows_of_frame(text, source) if _OF_FRAME.match(text) else _of_lines(text, problems)
    return _table(found, source, options, NAME, problems)


def read_yaml(source: Source, options: ReadOptions) -> Trials:
    """One trial per item; the study is called as the options say, else like the file."""
    problems = ProblemLog()
    return _table(_items(source.read_text(), problems), source, options, YAML_NAME, problems)


def _table(
    found: Iterator[Mapping[str, Any]], source: Source, options: ReadOptions, reader: str, problems: ProblemLog
) -> Trials:
    records = [flattened(item) for item in found]
    if not records:
        raise InputError(f"{source.path}: holds no complete trial; check that the export was not cut.")
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: [record.get(name) for record in records] for name in names}
    return from_columns(columns, source, options, reader, problems)


def _rows_of_frame(text: str, source: Source) -> Iterator[Mapping[str, Any]]:
    """The rows of a table that was written by columns, or as names and rows apart. Raises InputError where it is cut:
    the rest of each column is missing then.
    """
    try:
        found = DECODER.decode(without_halves(text))
        if "columns" in found:
            rows = [dict(zip(found["columns"], row, strict=True)) for row in found["data"]]
        else:
            rows = [{name: cells[at] for name, cells in found.items()} for at in found["number"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        advice = 'write the table again, with orient="records", of which a part can be read'
        raise InputError(f"{source.path}: is no whole table; {advice}.") from None
    return iter(rows)


def _objects(text: str, problems: ProblemLog) -> Iterator[Mapping[str, Any]]:
    """The objects of a list, one by one, so that a cut list keeps its good part."""
    text, decoder = without_halves(text), DECODER
    at = text.find("[") + 1
    while True:
        at = next((i for i in range(at, len(text)) if text[i] not in " \t\r\n,"), len(text))
        if text[at : at + 1] == "]":
            return
        try:
            found, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            problems.add("incomplete: the list is cut", lost=True)
            return
        if isinstance(found, dict):
            yield found
        else:
            problems.add("entry that is not a trial", lost=True)


def _of_lines(text: str, problems: ProblemLog) -> Iterator[Mapping[str, Any]]:
    """The objects of JSON Lines; a line that was torn costs itself alone."""
    for number, line in enumerate(text.split("\n"), start=1):
        if (found := json_object(line)) is not None:
            yield found
        elif line.strip():
            problems.add("line that is not a JSON object", line=number, lost=True)


def _items(text: str, problems: ProblemLog) -> Iterator[Mapping[str, Any]]:
    """The items of a list, parsed one by one."""
    import yaml

    for part in _NEXT_ITEM.split(text.strip()):
        try:
            found = plain_yaml.load(_QUOTED.sub(lambda quoted: without_halves(quoted[0]), part))
        except (yaml.YAMLError, ValueError, RecursionError):
            found = None
        if isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict):
            yield found[0]
        else:
            problems.add("entry that is not a trial", lost=True)


READER: Reader[Trials] = Reader(NAME, recognises, read)
YAML: Reader[Trials] = Reader(YAML_NAME, recognises_yaml, read_yaml)
