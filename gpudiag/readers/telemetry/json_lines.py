"""JSON and JSON Lines of samples: flat objects, or objects that hold a list of GPUs, under any understandable names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpudiag.readers._delimited.gpu_columns import unused
from gpudiag.readers._delimited.sweep import Sweep
from gpudiag.readers._delimited.sweep_tables import assemble
from gpudiag.readers._delimited.table_layout import layout_of, names_columns, unitless
from gpudiag.readers._io.json_documents import documents
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import LineBlock, Source
from gpudiag.readers._shape.finish import nothing_usable
from gpudiag.readers._shape.moments import Moment
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "json-samples"
_SEPARATOR = "\t"
_LISTS = ("gpus", "gpu", "devices", "cards", "samples", "records", "data")
_SAMPLE_ROWS = 100


def recognises(source: Source) -> bool:
    """An object near the top whose keys are understood as those of a sample."""
    if source.is_dir or source.is_binary or source.text.lstrip("\ufeff \r\n\t")[:1] not in ("{", "["):
        return False
    row = next(_rows(_first_object(source.text)), None)
    return row is not None and names_columns(list(row))


def _first_object(text: str) -> dict[str, Any]:
    match = re.search(r"\{", text)
    try:
        value, _ = json.JSONDecoder().raw_decode(text, match.start() if match else 0)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _rows(value: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """One row per GPU of an object: its own plain values, with those of each member of a list of objects."""
    plain = {key: _text(item) for key, item in value.items() if not isinstance(item, dict | list)}
    inner = next((key for key in _LISTS if isinstance(value.get(key), list | dict)), None)
    if inner is None:
        yield plain
        return
    items = value[inner]
    members = items if isinstance(items, list) else [items]
    spoken = "gpu_" if inner in ("gpus", "gpu", "devices", "cards") else ""
    for member in members:
        if isinstance(member, dict):
            for row in _rows(member):
                yield plain | {key if key.startswith("gpu") else spoken + key: text for key, text in row.items()}


def _text(item: Any) -> str:
    if item is None:
        return ""
    return re.sub(r"[\t\r\n]+", " ", str(item))


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every object; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    log = ProblemLog()
    rows: list[tuple[int, dict[str, str]]] = []
    for line, value in documents(source.read_text(), log):
        if not isinstance(value, Moment):
            rows += [(line, row) for row in _rows(value)]
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    if not rows or not names_columns(names):
        raise nothing_usable(source, NAME, log)
    cells = [[row.get(name, "") for name in names] for _, row in rows]
    layout = layout_of(names, cells[:_SAMPLE_ROWS], _SEPARATOR)
    sweep = Sweep(layout, lambda line, below: None, log)
    sweep.run(iter([LineBlock("\n".join(map(_SEPARATOR.join, cells)).encode("utf-8", "replace"), 1)]))
    return assemble(source, NAME, options, sweep, unused(names, layout), unitless=unitless(layout))


READER = Reader(NAME, recognises, read)
