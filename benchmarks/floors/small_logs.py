"""What many small logs cost at least: each opened, its lines split, and one frame with the columns of the schema.

    python benchmarks/floors/small_logs.py FOLDER      of logs as benchmarks/inspect_folder.py writes them

Plain Python splits: of sixty lines polars makes as much in four times that, and pandas in five. What the columns are is
known; no reader is asked whether it knows the file, and nothing is checked, hashed or described.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

UNITS = {"util_pct": " %", "mem_used_mib": " MiB", "mem_total_mib": " MiB"}


def frame_of(path: Path) -> pd.DataFrame:
    """One log as a table of samples."""
    lines = path.read_bytes().decode().split("\n")[1:-1]
    times, gpus, _, *numbers = zip(*(line.split(", ") for line in lines), strict=True)
    iso = [text.replace("/", "-").replace(" ", "T") for text in times]
    columns: dict[str, object] = {"time": pd.DatetimeIndex(np.array(iso, dtype="datetime64[us]"), tz="UTC")}
    columns["gpu"] = pd.array(np.array(gpus, dtype=object), dtype="str")
    for (name, unit), cells in zip(UNITS.items(), numbers, strict=True):
        columns[name] = np.array([float(cell[: -len(unit)]) for cell in cells])
    return pd.DataFrame(columns, copy=False)


imported_s = time.process_time()
logs = sorted(Path(sys.argv[1]).iterdir())
rows = sum(len(frame_of(path)) for path in logs)
read_s = time.process_time() - imported_s
print(f"{rows:,} samples with {pd.__name__} and {pl.__name__} loaded: imports {imported_s:.2f} s of CPU")
print(f"{1000 * read_s / len(logs):.2f} ms a log")
