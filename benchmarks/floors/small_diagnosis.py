"""What any diagnosis of a small run cannot go below: the libraries that it needs, and its files read by them alone.

    python benchmarks/floors/small_diagnosis.py FOLDER      with gpu.csv and optuna.db in it

pandas holds the tables, polars reads logs, scipy.special has the quantiles of intervals, pydantic checks run.toml,
and Typer with Rich is the command line. Nothing is measured or judged.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import Path

import pandas as pd
import polars as pl
import pydantic
import rich.console
import scipy.special
import typer

imported_s = time.process_time()
folder = Path(sys.argv[1])
gpu = pd.read_csv(folder / "gpu.csv", skipinitialspace=True)
gpu["timestamp"] = pd.to_datetime(gpu["timestamp"], format="%Y/%m/%d %H:%M:%S.%f")
with sqlite3.connect(f"file:{folder / 'optuna.db'}?mode=ro", uri=True) as study:
    trials = pd.read_sql("SELECT * FROM trials", study)
used = (pd, pl, pydantic.BaseModel, rich.console, scipy.special, typer)
print(f"{len(gpu):,} samples, {len(trials)} trials by {len(used)} libraries")
print(f"start and imports {imported_s:.2f} s of CPU, reading {time.process_time() - imported_s:.2f} s")
