"""``nvidia-smi --query-compute-apps=... --format=csv``: one line per process and tick, memory of the process alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import polars as pl

from gpudiag.readers._delimited.grid import missing, split_lines
from gpudiag.readers._delimited.guess import TIMESTAMP
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.finish import finish, nothing_usable
from gpudiag.readers._shape.identity import BUS_ID, UUID, GpuIdentity, resolve
from gpudiag.readers._shape.ticks import process_ticks, relative_note, relative_time
from gpudiag.readers._shape.timestamp_forms import NVIDIA
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "nvidia-smi-compute-apps"
TORN = "torn row"
OTHER = "line that is no sample"
NUMBERED = "It names GPUs by uuid or bus id only: they were numbered as they appear."

_SNIFFED_LINES = 100
_TARGETS = {
    "timestamp": "time",
    "gpu_name": "gpu_name",
    "gpu_bus_id": "bus_id",
    "gpu_serial": "",
    "gpu_uuid": "uuid",
    "pid": "pid",
    "process_name": "name",
    "name": "name",
    "used_gpu_memory": "mem_used_mib",
    "used_memory": "mem_used_mib",
}
"""What its fields mean, under all the names of nvidia-smi --help-query-compute-apps."""

_CELLS = (
    ("timestamp", TIMESTAMP),
    ("gpu_uuid", UUID),
    ("gpu_bus_id", BUS_ID),
    ("pid", re.compile(r"\d{1,10}")),
)
_SIZE = r"\d+ MiB|\[[^\]]+\]"
_SIZED = re.compile(rf", (?:{_SIZE})\s*$")


def recognises(source: Source) -> bool:
    """A header of --query-compute-apps near the top, or rows of it without one."""
    return not (source.is_dir or source.is_binary) and bool(_columns(source))


def _columns(source: Source) -> list[str]:
    """The names of its columns, of the header or as the first row shows them; empty if it is another file."""
    lines = source.lines[:_SNIFFED_LINES]
    for line in lines:
        if names := _header(line):
            return names
    first = next((line for line in lines if _SIZED.search(line)), "")
    return _guessed([cell.strip() for cell in first.split(",")]) if first else []


def _header(line: str) -> list[str]:
    if "pid" not in line:
        return []
    names = [re.sub(r" ?\[\w+\]$", "", cell.strip()) for cell in line.split(",")]
    own = {"pid", "used_gpu_memory"} & set(names), {"pid", "used_memory"} & set(names), {"process_name"} & set(names)
    sure = len(own[0]) == 2 or len(own[1]) == 2 or (own[2] and "pid" in names)
    return names if sure and all(name in _TARGETS for name in names) and len(set(names)) == len(names) else []


def _guessed(cells: Sequence[str]) -> list[str]:
    """Names for the cells of a row without a header, if it ends in the path of a program and its size."""
    names: list[str] = []
    for at, cell in enumerate(cells[:-1]):
        found = next((name for name, form in _CELLS if name not in names and form.fullmatch(cell)), "")
        if not found:
            program = ", ".join(cells[at:-1])  # it may hold commas
            sure = names[-1:] == ["pid"] and re.fullmatch(r"(?:[A-Z]:)?[/\\.][^\[\]]+|python[\d.]*(?:\.exe)?", program)
            return [*names, "process_name", "used_gpu_memory"] if sure else []
        names.append(found)
    return []


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    names = _columns(source)
    rows = _rows(source, names, log)
    if rows.is_empty():
        raise nothing_usable(source, NAME, log)
    labels, gpus = _labels(rows)
    memory = rows["mem_used_mib"] if "mem_used_mib" in rows.columns else pl.Series([None] * len(rows), dtype=pl.String)
    table = pd.DataFrame({"line": rows["line"].to_numpy(), "gpu": labels, "pid": rows["pid"].to_numpy()})
    table["mem_used_mib"] = memory.str.strip_suffix(" MiB").cast(pl.Float64, strict=False).to_numpy()
    if "name" in rows.columns:
        table["name"] = rows["name"].to_list()
    notes = [NUMBERED] if len(gpus) > 1 else []
    if "time" in rows.columns:
        table["time"] = rows["time"].to_numpy()
    else:
        table["time"] = relative_time(process_ticks([*map(int, labels)], rows["pid"].to_list()), options.period_s)
        notes.append(relative_note(options.period_s))
    return finish(source, NAME, options, log, processes=table, gpus=gpus, notes=notes)


def _rows(source: Source, names: Sequence[str], log: ProblemLog) -> pl.DataFrame:
    """The cells of the rows by what they mean, with their line. A process name may hold commas, other cells none."""
    form = _form(names)
    unit = _unit(source, form)
    parts = []
    for block in source.blocks():
        log.add("run of NUL bytes", int(block.nul_bytes > 0), line=block.first_line)
        lines = split_lines(block.data)
        numbers = np.arange(block.first_line, block.first_line + len(lines))
        part = pl.DataFrame({"line": numbers, "text": lines}).filter(pl.col("text").str.strip_chars() != "")
        header = part["text"].map_elements(lambda text: bool(_header(text)), return_dtype=pl.Boolean)
        part = part.filter(~header).with_columns(pl.col("text").str.extract_groups(form).alias("c"))
        part = part.unnest("c").with_columns(pl.exclude("line", "text").str.strip_chars())
        parts.append(_checked(part, unit, log))
    return pl.concat(parts) if parts else pl.DataFrame()


def _form(names: Sequence[str]) -> str:
    """The pattern of a row: a group for each cell that means something, in the order of the header."""
    targets = [_TARGETS[name] for name in names]
    cells = [f"(?P<{target}>{'.*' if target == 'name' else '[^,]*'})" if target else "[^,]*" for target in targets]
    return f"^{', ?'.join(cells)}$"


def _unit(source: Source, form: str) -> str:
    """What follows the number in cells of memory, wherever their column stands."""
    rows = (re.match(form, line.strip()) for line in source.lines)
    sizes = (row.groupdict().get("mem_used_mib") or "" for row in rows if row)
    return " MiB" if any(re.fullmatch(r"\d+ MiB", size.strip()) for size in sizes) else ""


def _checked(part: pl.DataFrame, unit: str, log: ProblemLog) -> pl.DataFrame:
    """The whole rows with their process and time; every other line is counted."""
    part = part.with_columns(pl.col("pid").cast(pl.UInt32, strict=False))
    if "time" in part.columns:
        part = part.with_columns(NVIDIA.read(part["time"]).alias("time"))
    good = pl.all_horizontal(pl.col(name).is_not_null() for name in ("pid", "time") if name in part.columns)
    if "mem_used_mib" in part.columns:
        size = pl.col("mem_used_mib")
        good &= size.str.contains(rf"^\d+{unit}$") | (missing(size) & (size != ""))
    bad = part.filter(~good.fill_null(False))
    like = pl.col("text").str.contains(r"\d,|, ")
    for kind, lines in ((TORN, bad.filter(like)), (OTHER, bad.filter(~like))):
        if len(lines):
            log.add(kind, len(lines), line=lines["line"][0], example=lines["text"][0], lost=kind == TORN)
    return part.filter(good.fill_null(False)).drop("text")


def _labels(rows: pl.DataFrame) -> tuple[list[str], list[dict[str, str]]]:
    """The GPU of each row and what is known of each; without uuid and bus id it is the only one."""
    keys = {"uuid": "uuid", "bus_id": "bus_id", "gpu_name": "name"}
    known = [name for name in keys if name in rows.columns]
    if not {"uuid", "bus_id"} & set(known):
        return ["0"] * len(rows), []
    faces = [{keys[name]: text or "" for name, text in zip(known, row, strict=True)} for row in rows[known].iter_rows()]
    distinct = list(dict.fromkeys(GpuIdentity(**face) for face in faces))
    labels = dict(zip(distinct, resolve(distinct)[0], strict=True))
    gpus = {label: {"gpu": label} for label in labels.values()}
    for face, label in labels.items():
        gpus[label] |= {name: getattr(face, name) for name in keys.values() if getattr(face, name)}
    return [labels[GpuIdentity(**face)] for face in faces], list(gpus.values())


READER = Reader(NAME, recognises, read)
