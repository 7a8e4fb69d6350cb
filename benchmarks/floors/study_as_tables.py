"""What a study of 10,000 trials costs at least once it is to stand in pandas, each part in a process of its own.

    python benchmarks/floors/study_as_tables.py

``pandas``: the import alone, with what it imports itself (Arrow among it). ``cells``: that, and SQLite hands out each
cell of parameters and intermediate values once, in blocks that are dropped: no table, no copy, no lock.
``gpudiag``: the tables. ``rustuna``: its objects, where it is installed, with no value looked at.
Prints processor seconds and seconds of whole processes, and peak memory: medians of five.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
from large_study import Shape, filled

CELLS = """
import pandas, pyarrow
from adbc_driver_manager import AdbcConnection, AdbcStatement
from adbc_driver_sqlite import connect
with connect(f"file:{sys.argv[1]}?mode=ro&immutable=1") as database, AdbcConnection(database) as connection:
    for sql in ("SELECT trial_id, param_name, param_value, distribution_json FROM trial_params",
                "SELECT trial_id, step, intermediate_value FROM trial_intermediate_values"):
        with AdbcStatement(connection) as statement:
            statement.set_options(**{"adbc.sqlite.query.batch_rows": "8192"})
            statement.set_sql_query(sql)
            for _ in pyarrow.RecordBatchReader.from_stream(statement.execute_query()[0]):
                pass
"""
RUSTUNA = """
import rustuna
storage = rustuna.storages.SQLite3Storage(sys.argv[1], create_database=False)
trials = rustuna.load_study(study_name="bench", storage=storage).trials
"""
PARTS = {
    "nothing": "",
    "pandas": "import pandas",
    "cells": CELLS,
    "gpudiag": "import gpudiag; tables = gpudiag.read_trials(sys.argv[1], timezone='UTC')",
} | ({"rustuna": RUSTUNA} if find_spec("rustuna") else {})
PEAK = 'import time; print(time.process_time(), open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])'


def main() -> None:
    with filled("sqlite", Shape(10_000, reports=10, finite=True)) as (where, _):
        runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in PARTS}
        for _ in range(5):
            for name, code in PARTS.items():
                began = time.perf_counter()
                out = subprocess.check_output([sys.executable, "-c", f"import sys\n{code}\n{PEAK}", where], text=True)
                cpu, kib = map(float, out.split())
                runs[name].append((cpu, time.perf_counter() - began, kib / 1024))
    print("| | CPU seconds | seconds | peak MiB |\n|---|--:|--:|--:|")
    for name, found in runs.items():
        cpu, wall, mib = map(statistics.median, zip(*found, strict=True))
        print(f"| {name} | {cpu:.2f} | {wall:.2f} | {mib:.0f} |")


if __name__ == "__main__":
    main()
