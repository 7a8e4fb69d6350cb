"""Which column of a home-made table names the GPU, told by its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from gpudiag.patterns import late
from gpudiag.readers._delimited.grid import Field, Layout
from gpudiag.readers._delimited.unnamed_cells import MOST_GPUS
from gpudiag.readers._fields.aliases import Meaning, meaning_of, words_of
from gpudiag.readers._shape.gpu_text import is_product

NUMBER = late(r"-?\d*[.,]?\d+(?:[eE][+-]?\d+)?")
"""A number without a unit, its decimals behind a point or a comma."""
_MOST_ROWS = 15
"""What counts on beyond this, or is another text in each of more rows than this, numbers the rows. Numbers beyond it,
one at a time and without those before them, are per cents, but for few that come in rounds.
"""
_MOST_OF_A_JOB = 8


def field_of_gpu(name: str, cells: Sequence[str], *, of_gpu: bool, shared: bool) -> Field:
    """A column that names the GPU, by any texts; one that counts rows, or measures something, is not used.

    ``of_gpu``: its name says GPU. ``shared``: rows of one instant differ in it.
    """
    if all(map(NUMBER.fullmatch, cells)):
        return Field(name, "index", "text") if _numbers_gpus(cells, of_gpu and shared) else Field(name)
    numbers_rows = not of_gpu and len(set(cells)) == len(cells) > _MOST_ROWS
    if numbers_rows or any(cell.endswith("%") for cell in cells):
        return Field(name)
    return Field(name, "name" if all(map(is_product, cells)) else "index", "text")


def _numbers_gpus(cells: Sequence[str], sure: bool) -> bool:
    """True for numbers that can be those of GPUs; large ones may as well be measured, or count rows."""
    values = [float(cell.replace(",", ".")) for cell in cells]
    counting = len(values) > 3 and all(b == a + 1 for a, b in pairwise(values)) and max(values) > _MOST_ROWS
    whole = bool(values) and all(value.is_integer() and value >= 0 for value in values)
    few = max(values, default=0) <= _MOST_ROWS or {*values} == {*range(min(len({*values}), MOST_GPUS))}
    return whole and (sure or (not counting and (few or _in_rounds(values))))


def _in_rounds(values: Sequence[float]) -> bool:
    """True for few numbers that take turns, as those of the GPUs of a job do (16, 17, 16, 17), or one."""
    several = len({*values})
    if several > _MOST_OF_A_JOB or max(values) >= MOST_GPUS:
        return False
    turns = [len({*values[at : at + several]}) == several for at in range(len(values) - several + 1)]
    return len(turns) > several and 10 * sum(turns) >= 9 * len(turns)


def differ_at_once(timestamps: Sequence[str], cells: Sequence[str]) -> bool:
    """True if several rows have one timestamp, and those of each differ in these cells."""
    pairs = set(zip(timestamps, cells, strict=True))
    return len(pairs) == len(cells) > len(set(timestamps))


def with_boards(fields: Sequence[Field], meanings: Sequence[Meaning], known: Sequence[Sequence[str]]) -> list[Field]:
    """Where nothing else tells the GPU, the name of its board does, as far as boards differ.

    A column called name or model alone may be that of a run.
    """
    if any(field.target in ("index", "uuid", "bus_id") for field in fields):
        return list(fields)
    return [
        replace(field, target="board") if field.target == "name" and cells and _of_gpu(meaning) else field
        for field, meaning, cells in zip(fields, meanings, known, strict=True)
    ]


def _of_gpu(meaning: Meaning) -> bool:
    return meaning.gpu or meaning.target == "index"


def without_processes(fields: Sequence[Field], rows: Sequence[Sequence[str]], times: Sequence[int]) -> list[Field]:
    """Where a GPU has several processes at one instant, memory in use is theirs."""
    pids = _pids([field.name for field in fields])
    whose = [at for at, field in enumerate(fields) if field.target in ("index", "uuid", "bus_id", "host")]
    instants = {tuple(row[at] for at in (*times, *whose)) for row in rows}
    if not pids or len({tuple(row[at] for at in (*times, *whose, *pids)) for row in rows}) == len(instants):
        return list(fields)
    return [Field(field.name) if field.target == "mem_used_mib" else field for field in fields]


def _pids(names: Sequence[str]) -> list[int]:
    return [at for at, name in enumerate(names) if "pid" in words_of(name)]


def unused(names: Sequence[str], layout: Layout) -> list[str]:
    """A sentence on memory of processes, and on a column called GPU that names none, where no other does."""
    if _pids(names) and not any(target.startswith("mem_used_mib") for target in layout.targets):
        sizes = [name for name in names if meaning_of(name).target == "mem_used_mib"]
        if sizes:
            return [f"Column {sizes[0]} is of processes, of which a GPU has several at once: it was left out."]
    if {"index", "uuid", "bus_id"} & set(layout.targets):
        return []
    used = {field.name for field in layout.fields if field.target}
    found = [name for name in names if (m := meaning_of(name)).target == "index" and m.gpu and not m.device]
    return [
        f"Column {name} holds no index or name of a GPU that could be used, and was left out."
        for name in found
        if name not in used
    ]
