"""``tegrastats`` of Jetson boards: one line a tick; memory is the board's, shared by CPU and GPU.

``05-08-2026 12:01:41 RAM 3331/30588MB (lfb 4x4MB) ... CPU [5%@729,off] EMC_FREQ 1%@2133 GR3D_FREQ 37%@[611,0] ...
GPU@44.2C ... VDD_GPU_SOC 3205mW/3205mW``. Releases differ in what they print, so that each value is told by its label.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl

from gpudiag.readers._delimited.grid import split_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.finish import finish, nothing_usable
from gpudiag.readers._shape.ticks import apart, relative_note, relative_time
from gpudiag.readers._shape.timestamp_forms import TimestampForm, tell_form
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "tegrastats"
TORN = "torn row"
OTHER = "line that is no sample"

_LINE = r"\bRAM \d+/\d+MB .*(?:\bCPU \[.*\]|\bGR3D(?:_FREQ)? \d+%)"
"""A board whose GPU is switched off prints no GR3D: its utilization is unknown then."""
_STATED = r"^(?P<time>.*?)\s*RAM \d"
_OWN_TIME = TimestampForm("text", "%m-%d-%Y %H:%M:%S%.f")
"""What releases from 35 on print themselves: month first."""

_GPU = {
    "util_pct": (r"\bGR3D(?:_FREQ)? (\d+)%", 1.0),
    "sm_clock_mhz": (r"\bGR3D(?:_FREQ)? \d+%@\[?(\d+)", 1.0),
    "mem_util_pct": (r"\bEMC(?:_FREQ)? (\d+)%", 1.0),
    "mem_clock_mhz": (r"\bEMC(?:_FREQ)? \d+%@(\d+)", 1.0),
    "temp_c": (r"(?i)\bgpu@(\d+(?:\.\d+)?)C", 1.0),
    "power_w": (r"\b(?:VDD_GPU|VDD_SYS_GPU|POM_5V_GPU|GPU) (\d+)(?:mW)?/\d", 0.001),
}
"""Column: pattern and factor. Rails that feed more than the GPU (VDD_GPU_SOC, VDD_CPU_GPU_CV) are not its power; the
temperature of a sensor that is off, -256C, is none."""

_RAM = {"ram_used_mib": r"\bRAM (\d+)/", "ram_total_mib": r"\bRAM \d+/(\d+)MB"}
SHARED = (
    "Memory of this board is shared by CPU and GPU: it stands in the host's table, and what the GPU holds is unknown."
)


def recognises(source: Source) -> bool:
    if source.is_dir or source.is_binary or "GR3D" not in source.text:
        return False
    lines = pl.Series([line for line in source.lines if line.strip()])
    return bool(2 * lines.str.contains(_LINE).sum() >= len(lines))


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    parts = [_rows(block.data, block.first_line, log) for block in source.blocks()]
    rows = pl.concat(parts) if parts else pl.DataFrame()
    if rows.is_empty():
        raise nothing_usable(source, NAME, log)
    text = rows["text"]
    values = {name: _number(text, form) * factor for name, (form, factor) in _GPU.items()}
    time, notes = _time(rows, options)
    time, coarse = apart(time, np.zeros(len(rows), dtype=np.int8), values)
    gpu = {"time": time, "line": rows["line"].to_numpy(), "gpu": np.repeat("0", len(rows)).astype(object)}
    gpu |= values
    host = {"time": time} | {name: _number(text, form) for name, form in _RAM.items()} | _cores(text)
    return finish(
        source, NAME, options, log, gpu=pd.DataFrame(gpu), host=pd.DataFrame(host), notes=[SHARED, *notes, *coarse]
    )


def _rows(data: bytes, first_line: int, log: ProblemLog) -> pl.DataFrame:
    """Number and text of the lines that are samples; others are counted."""
    lines = split_lines(data)
    table = pl.DataFrame({"line": np.arange(first_line, first_line + len(lines)), "text": lines})
    table = table.filter((pl.col("text").str.strip_chars() != "").fill_null(False))
    good = table["text"].str.contains(_LINE)
    begun = table["text"].str.contains(r"\bRAM \d|GR3D")
    for kind, which in ((TORN, ~good & begun), (OTHER, ~good & ~begun)):
        bad = table.filter(which)
        if len(bad):
            log.add(kind, len(bad), line=bad["line"][0], example=bad["text"][0], lost=kind == TORN)
    return table.filter(good)


def _time(rows: pl.DataFrame, options: ReadOptions) -> tuple[pd.Series, list[str]]:
    """What stands before RAM: tegrastats' own date, somebody's, or nothing."""
    stated = rows["text"].str.extract(_STATED).str.strip_chars("[]() ,;|")
    own = stated.str.contains(r"^\d\d-\d\d-\d{4} \d\d:\d\d:\d\d")
    known = stated.filter(stated != "").head(100).to_list()
    form = _OWN_TIME if own.any() else tell_form(known)
    if form is None or form.kind not in ("text", "epoch"):
        return pd.Series(relative_time(np.arange(len(rows)), options.period_s)), [relative_note(options.period_s)]
    time = pd.Series(form.read(stated).to_numpy().astype("datetime64[us]"))
    return time.dt.tz_localize("UTC") if form.zoned else time, []


def _number(text: pl.Series, form: str) -> np.ndarray:
    return text.str.extract(form).cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()


def _cores(text: pl.Series) -> dict[str, np.ndarray]:
    """Mean and highest load of the cores that are on: one that is off is none."""
    loads = text.str.extract(r"\bCPU \[([^\]]*)\]").str.extract_all(r"(\d+)%")
    shares = loads.list.eval(pl.element().str.strip_suffix("%").cast(pl.Float64))
    return {
        "cpu_pct": shares.list.mean().fill_null(float("nan")).to_numpy(),
        "cpu_max_core_pct": shares.list.max().fill_null(float("nan")).to_numpy(),
    }


READER = Reader(NAME, recognises, read)
