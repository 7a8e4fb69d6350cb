"""``nvidia-smi pmon``: one line per process, GPU and tick; a GPU without a process prints a line of ``-``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl

from gpudiag.readers._delimited.column_text import TORN, holds, read_rows, timestamp_rows
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.finish import finish, nothing_usable
from gpudiag.readers._shape.ticks import process_ticks
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "nvidia-smi pmon"
IDLE = "row of a GPU without a process"


def recognises(source: Source) -> bool:
    return holds(source, "pmon")


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    rows = read_rows(source, log, "pmon", ("sm", "fb"))
    if rows.is_empty():
        raise nothing_usable(source, NAME, log)
    idle = (rows["pid"] == "-").to_numpy()
    pid = rows["pid"].cast(pl.UInt32, strict=False)
    tick = process_ticks(rows["gpu"].cast(pl.Int64).to_list(), pid.to_list())
    time, notes = timestamp_rows(rows, tick, options.period_s)
    torn = pid.is_null().to_numpy() & ~idle
    if torn.any():
        log.add(TORN, int(torn.sum()), line=int(rows["line"][int(np.argmax(torn))]), lost=True)
    busy = ~torn & ~idle
    if not busy.any():
        log.add(IDLE, int(idle.sum()))
    table = pd.DataFrame({"time": time, "line": rows["line"].to_numpy(), "gpu": rows["gpu"].to_list()})
    table["pid"] = pid.cast(pl.Float64).to_numpy()
    for name, target in (("sm", "sm_pct"), ("fb", "mem_used_mib")):
        if name in rows.columns:
            table[target] = rows[name].to_numpy()
    if "command" in rows.columns:
        table["name"] = rows["command"].str.strip_chars().replace("-", None).to_list()
    return finish(source, NAME, options, log, processes=table[busy].reset_index(drop=True), notes=notes)


READER = Reader(NAME, recognises, read)
