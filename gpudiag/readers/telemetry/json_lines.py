"""JSON and JSON Lines of samples: flat objects, objects that hold a list of GPUs, or a list for each column, under any
understandable names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from gpudiag.readers._delimited.bursts import MOST_GPUS, REGULAR
from gpudiag.readers._delimited.gpu_columns import unused
from gpudiag.readers._delimited.grid import is_missing
from gpudiag.readers._delimited.sweep import Sweep
from gpudiag.readers._delimited.sweep_tables import assemble
from gpudiag.readers._delimited.table_layout import layout_of, names_columns, unitless
from gpudiag.readers._delimited.unnamed_cells import is_quantity
from gpudiag.readers._fields.aliases import meaning_of
from gpudiag.readers._io.json_documents import arrays_and_documents, first_object
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import HEAD_BYTES, LineBlock, Source
from gpudiag.readers._shape.finish import nothing_usable
from gpudiag.readers._shape.moments import Moment, read_moment
from gpudiag.readers._shape.row_objects import counts_rows, is_time, row_objects
from gpudiag.readers._shape.wide import is_wide, long, with_bare_columns
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "json-samples"
_SEPARATOR = "\t"
_LISTS = ("gpus", "gpu", "devices", "cards", "samples", "records", "data")
_SAMPLE_ROWS = 100
_PLACE = "GPU index"
"""Key of the place of a GPU in a list of all of them."""
_IDENTIFIES = ("index", "uuid", "bus_id", "host")
_NVTOP = frozenset(["device_name", "gpu_clock", "mem_clock", "fan_speed", "power_draw", "gpu_util", "mem_util"])
"""Keys of ``nvtop --snapshot``. Its ``mem_util`` is the share of memory in use, in all but one of its drivers."""

Row = dict[str, str]


def recognises(source: Source) -> bool:
    """An object near the top whose keys are understood as those of a sample."""
    if source.is_dir or source.is_binary or not _begins_with_json(source.text):
        return False
    first: Mapping[str, Any] = first_object(source)
    if len(source.head) >= HEAD_BYTES and _has_a_list(first):
        first = _whole(source)  # what else it has, and how long that is, stands below the head
    row = next(_rows(row_objects(first)[0]), None)
    return row is not None and names_columns(list(row))


def _has_a_list(value: Mapping[str, Any]) -> bool:
    """Whether plain values stand in a list under a name that is understood, its own or that of a group and its own."""
    groups = [(key, item) for key, item in value.items() if isinstance(item, dict)]
    grouped = [(f"{key}_{name}", cells) for key, item in groups for name, cells in item.items()]
    by_row = [(key, [*item.values()]) for key, item in groups if counts_rows(item)]
    lists = [(name, cells) for name, cells in (*value.items(), *grouped, *by_row) if isinstance(cells, list) and cells]
    return any(meaning_of(name).target and not isinstance(cells[0], list | dict) for name, cells in lists)


def _begins_with_json(text: str) -> bool:
    """True if a bracket comes first, or below a line that states a time."""
    top = text.lstrip("\ufeff \r\n\t")
    if top[:1] not in ("{", "[") and read_moment(top.partition("\n")[0]):
        top = top.partition("\n")[2].lstrip()
    return top[:1] in ("{", "[")


def _metrics(names: Iterable[str]) -> bool:
    return any(meaning_of(name).metric for name in names)


def _whole(source: Source) -> Mapping[str, Any]:
    values = (value for _, value in arrays_and_documents(source.read_text(), ProblemLog()))
    return next((value for value in values if isinstance(value, dict)), {})


def _columns(value: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The lists of plain values that an object holds, all equally long and with one time for all at most: below their
    names, below those of groups, or by numbers or times of rows; none of any other object. What else it holds under
    names that mean nothing here (``loadavg``, ``meta``) is left alone.
    """
    lists: dict[str, list[Any]] = {}
    rows: set[tuple[str, ...]] = set()
    for key, item in value.items():
        if isinstance(item, dict) and item and all(isinstance(cells, list) for cells in item.values()):
            named = {f"{key}_{name}": cells for name, cells in item.items()}
            lists |= {name: cells for name, cells in named.items() if meaning_of(name).target}
        elif isinstance(item, dict) and meaning_of(key).target:
            lists[key] = list(item.values())
            rows.add(tuple(item))
        elif isinstance(item, list) and meaning_of(key).target:
            lists[key] = item
    if len(rows) > 1 or not all(map(counts_rows, rows)):
        return {}
    timed = any(meaning_of(name).target == "time" for name in value if name not in lists)
    places = list(next(iter(rows))) if rows else [*range(max(map(len, lists.values()), default=0))]
    if rows and places and is_time(str(places[0])):
        lists["time"] = places
    elif timed:  # one time is of all: they are GPUs, and else rows
        lists[_PLACE] = places
    plain = not any(isinstance(cell, list | dict) for cells in lists.values() for cell in cells)
    times = sum(meaning_of(name).target == "time" for name in lists)
    return lists if plain and times < 2 and len({*map(len, lists.values())}) == 1 else {}


def _rows(value: Mapping[str, Any]) -> Iterator[Row]:
    """One row per GPU of an object: its own plain values, with those of each member of a list of objects. Or one for
    each place in its columns.
    """
    shared = {key: item for key, item in value.items() if not isinstance(item, dict | list)}
    if _metrics(columns := _columns(value)) and not _metrics(shared):
        for cells in zip(*columns.values(), strict=True):
            yield from _rows(shared | dict(zip(columns, cells, strict=True)))
        return
    own = {f"{key}_{name}": item for key in value if _is_gpu(key) for name, item in _members(value[key]).items()}
    plain = {key: _text(item) for key, item in {**value, **own}.items() if not isinstance(item, dict | list)}
    if plain.keys() >= _NVTOP:
        del plain["mem_util"]
    inner = next((key for key in _LISTS if isinstance(value.get(key), list | dict)), None)
    if inner is None:
        yield plain
        return
    items = value[inner]
    members = items if isinstance(items, list) else [items]
    if isinstance(items, dict) and all(key.isdecimal() and isinstance(item, dict) for key, item in items.items()):
        members = [{"index": key, **item} for key, item in items.items()]
    spoken = "gpu_" if inner in ("gpus", "gpu", "devices", "cards") else ""
    times = {key: item for key, item in value.items() if isinstance(item, list) and meaning_of(key).target == "time"}
    for member in members:
        if isinstance(member, dict):
            for row in _rows(times | _flat(member)):
                yield plain | {key if key.startswith("gpu") else spoken + key: text for key, text in row.items()}


def _is_gpu(key: str) -> bool:
    """Whether it names a GPU by its number, and nothing of it."""
    meaning = meaning_of(key)
    return meaning.target == "index" and bool(meaning.device)


def _members(item: Any) -> dict[str, Any]:
    return _flat(item) if isinstance(item, dict) else {}


def _flat(gpu: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of a GPU, with the groups of plain values in it under their names: ``memory: {used_mb: 1}``."""
    out: dict[str, Any] = {}
    for key, item in gpu.items():
        if isinstance(item, dict) and key not in _LISTS and not _is_gpu(key) and _is_group(item):
            out |= {f"{key}_{name}": cell for name, cell in item.items()}
        else:
            out[key] = item
    return out


def _is_group(item: Mapping[str, Any]) -> bool:
    """Whether it holds plain values by name, not by numbers of rows or GPUs."""
    return not any(name.isdecimal() or isinstance(cell, dict | list) for name, cell in item.items())


def _text(item: Any) -> str:
    if item is None:
        return ""
    if isinstance(item, float) and "e" in repr(item):  # 1e-05, which would be 1 in a unit
        return np.format_float_positional(item, trim="-")
    return re.sub(r"[\t\r\n]+", " ", str(item))


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every object; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    log = ProblemLog()
    snapshots, moments = _snapshots(source, log)
    rows = _numbered(snapshots)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not rows or not names_columns(names):
        raise nothing_usable(source, NAME, log)
    cells = _measured(names, [[row.get(name, "") for name in names] for row in rows], log)
    layout = layout_of(names, cells[:_SAMPLE_ROWS], _SEPARATOR)
    layout, notes = with_bare_columns(source, names, layout, cells[:_SAMPLE_ROWS])
    sweep = Sweep(layout, lambda line, below: None, log, moments=moments)
    sweep.run(iter([LineBlock("\n".join(map(_SEPARATOR.join, cells)).encode("utf-8", "replace"), 1)]))
    if is_wide(layout):
        sweep.pieces = [long(piece) for piece in sweep.pieces]
    return assemble(source, NAME, options, sweep, [*notes, *unused(names, layout)], unitless=unitless(layout))


def _snapshots(source: Source, log: ProblemLog) -> tuple[list[list[Row]], list[tuple[int, Moment]]]:
    """The rows of each object; those of each array, if there are several. And the times between, by rows above them."""
    values = list(arrays_and_documents(source.read_text(), log))
    several = sum(isinstance(value, list) for _, value in values) > 1
    out: list[list[Row]] = []
    moments: list[tuple[int, Moment]] = []
    count = 0
    for _, value in values:
        if isinstance(value, Moment):
            moments.append((count, value))
            continue
        rows = [list(_rows(item)) for item in (value if isinstance(value, list) else row_objects(value))]
        out += [list(chain.from_iterable(rows))] if several else rows
        count += sum(map(len, rows))
    placed = Counter(len(snapshot) for snapshot in out if snapshot and _PLACE in snapshot[0])
    if placed and len(out) == 1:  # they may as well be of one GPU, at times that nothing tells
        log.add("lists beside one time", lost=True)
        return [], []
    if len(placed) > 1:  # whose value is missing in the shorter lists is not known
        most = placed.most_common(1)[0][0]
        kept = [one for one in out if not one or _PLACE not in one[0] or len(one) == most]
        log.add("object with lists of another length", len(out) - len(kept), lost=True)
        return kept, []
    return out, moments


def _numbered(snapshots: Sequence[Sequence[Row]]) -> list[Row]:
    """All rows. Where nothing tells their GPU, and snapshots have equally many, their place in a snapshot does."""
    rows = [row for snapshot in snapshots for row in snapshot]
    names = dict.fromkeys(name for row in rows for name in row)
    meanings = {name: meaning_of(name) for name in names}
    timed = [name for name, meaning in meanings.items() if meaning.target in ("time", "date", "elapsed")]
    common, count = Counter(map(len, snapshots)).most_common(1)[0] if rows else (0, 0)
    if (
        any(meaning.target in _IDENTIFIES for meaning in meanings.values())
        or not 2 <= common <= MOST_GPUS
        or count < REGULAR * len(snapshots)
        or any(row.get(name) != snapshot[0].get(name) for snapshot in snapshots for row in snapshot for name in timed)
    ):
        return rows
    return [{_PLACE: str(place), **row} for snapshot in snapshots for place, row in enumerate(snapshot)]


def _measured(names: Sequence[str], cells: list[list[str]], log: ProblemLog) -> list[list[str]]:
    """The cells with those made unknown that are no quantity of their column: a text for a speed, in another unit."""
    bad: list[str] = []
    for place, name in enumerate(names):
        if not (meaning := meaning_of(name)).metric or meaning.target == "pstate":
            continue
        texts = {row[place] for row in cells}
        wrong = {text for text in texts if not is_missing(text) and not is_quantity(meaning.target, text)}
        for row in cells if wrong else ():
            if row[place] in wrong:
                bad.append(row[place])
                row[place] = ""
    log.add("value that is no number, or in an unknown unit", len(bad), example=bad[0] if bad else "")
    return cells


READER = Reader(NAME, recognises, read)
