"""What telling the torn rows of a log by line takes at least: polars' own scan, which leaves missing cells unknown.

    python benchmarks/floors/torn_rows.py LOG       as benchmarks/read_telemetry.py --dirt writes it

Told is the line of each row with too few cells. No cell is read, so that what is torn within its last cell is not met,
and there is no table.
"""

from __future__ import annotations

import sys
import time

import polars as pl

imported_s = time.process_time()
table = pl.scan_csv(sys.argv[1], infer_schema=False, truncate_ragged_lines=True)
last = table.collect_schema().names()[-1]
torn = table.with_row_index("line", 2).filter(pl.col(last).is_null()).select("line").collect(engine="streaming")["line"]
print(f"{len(torn):,} rows are torn, the first at line {torn.min()}, the last at line {torn.max()}")
print(f"imports {imported_s:.2f} s of CPU, the rest {time.process_time() - imported_s:.2f} s")
