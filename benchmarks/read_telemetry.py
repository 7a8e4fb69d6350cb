"""Time and memory of reading a week of nvidia-smi CSV: gpudiag against its peers, each in a process of its own.

    python benchmarks/read_telemetry.py              8 GPUs x 1 Hz x 7 days, 4.8 M rows with units, 470 MB
    python benchmarks/read_telemetry.py --days 0.5   a smaller one
    python benchmarks/read_telemetry.py --dirt 0.01  the same with 1 % of its rows torn
    python benchmarks/read_telemetry.py --ways       what the short way for regular rows buys

The file lies in a temporary folder and in the page cache. Peers: the usual pandas idiom (``read_csv``, units
stripped by a regular expression, ``to_datetime``), the same idea in streaming polars, counting lines, and
counting newline bytes. Only gpudiag checks every cell, drops what is torn, sorts by GPU, and converts to UTC.
Imports are not in the seconds, but are in the memory.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

GPUS = 8
HEADER = (
    "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], "
    "power.draw [W], temperature.gpu\n"
)
START = datetime(2026, 2, 15, 6, 12, 48)
WITHOUT = "gpudiag without the short way"

MEASURE = """
import json, resource, sys, time
{imports}
began, began_cpu = time.perf_counter(), time.process_time()
{read}
seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
# Linux counts in KiB, macOS in bytes.
mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024 ** 2)
print(json.dumps([seconds, cpu, mib, rows]))
"""
SIDES = {
    "gpudiag": (
        "from gpudiag.readers.telemetry import read_telemetry",
        'rows = len(read_telemetry(sys.argv[1], timezone="Europe/Berlin").gpu)',
    ),
    "pandas idiom": (
        "import pandas as pd",
        """
frame = pd.read_csv(sys.argv[1], skipinitialspace=True, on_bad_lines="skip")
for name in [name for name in frame if "[" in name]:
    frame[name] = pd.to_numeric(frame[name].astype(str).str.replace(r"[^0-9.]", "", regex=True), errors="coerce")
frame["timestamp"] = pd.to_datetime(frame["timestamp"], format="%Y/%m/%d %H:%M:%S.%f", errors="coerce")
rows = len(frame)
""",
    ),
    "polars, streaming": (
        "import polars as pl",
        """
table = pl.scan_csv(sys.argv[1], infer_schema=False, truncate_ragged_lines=True)
names = table.collect_schema().names()
timestamp = pl.col(names[0]).str.to_datetime("%Y/%m/%d %H:%M:%S%.f", strict=False)
numbers = [pl.col(n).str.strip_chars(" %MiBW").cast(pl.Float64, strict=False) for n in names[1:] if "name" not in n]
rows = len(table.select(timestamp, *numbers).collect(engine="streaming"))
""",
    ),
    WITHOUT: (
        """
from gpudiag.readers._delimited import fast_rows
from gpudiag.readers.telemetry import read_telemetry
fast_rows.takes = lambda layout: False
""",
        'rows = len(read_telemetry(sys.argv[1], timezone="Europe/Berlin").gpu)',
    ),
    "iterating over lines": ("", 'with open(sys.argv[1], "rb") as log: rows = sum(1 for _ in log)'),
    "counting newline bytes": (
        "",
        """
rows = 0
with open(sys.argv[1], "rb") as log:
    while block := log.read(1 << 20): rows += block.count(b"\\n")
""",
    ),
}


def write(path: Path, days: float, dirt: float) -> None:
    """A log whose cells vary as real ones do; a share of its rows is cut short."""
    rng = random.Random(0)
    pool = [
        f"NVIDIA H100 80GB HBM3, {rng.randrange(101)} %, {rng.randrange(80)} %, {rng.randrange(500, 81000)} MiB, "
        f"81559 MiB, {rng.uniform(60, 700):.2f} W, {rng.randrange(25, 85)}\n"
        for _ in range(4096)
    ]
    with path.open("w", encoding="utf-8") as log:
        log.write(HEADER)
        for second in range(int(days * 86_400)):
            timestamp = (START + timedelta(seconds=second)).strftime("%Y/%m/%d %H:%M:%S")
            rows = [f"{timestamp}.{7 * second % 990 + gpu:03d}, {gpu}, {rng.choice(pool)}" for gpu in range(GPUS)]
            if dirt:
                rows = [row if rng.random() >= dirt else row[: rng.randrange(len(row))] + "\n" for row in rows]
            log.writelines(rows)


def measure(side: str, path: Path) -> tuple[float, float, float, int]:
    """Seconds, CPU seconds, peak MiB and rows of one side in a fresh process."""
    imports, read = SIDES[side]
    code = MEASURE.format(imports=imports, read=read)
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    seconds, cpu, mib, rows = json.loads(done.stdout.splitlines()[-1])
    return seconds, cpu, mib, rows


def main() -> None:
    """Write the log, measure each side in turn, print ratios of the best rounds."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--days", type=float, default=7.0)
    arguments.add_argument("--dirt", type=float, default=0.0, help="share of rows that are torn")
    arguments.add_argument("--rounds", type=int, default=3, help="rounds over all sides; the best of each counts")
    arguments.add_argument("--ways", action="store_true", help="gpudiag with and without its short way, and polars")
    given = arguments.parse_args()
    sides = ["gpudiag", WITHOUT, "polars, streaming"] if given.ways else [side for side in SIDES if side != WITHOUT]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gpu.csv"
        write(path, given.days, given.dirt)
        print(f"{path.stat().st_size / 1e6:.0f} MB\n")
        found = {side: [] for side in sides}
        for _ in range(given.rounds):
            for side in sides:
                found[side].append(measure(side, path))
    if given.ways:  # single runs vary: the medians of pairs taken in turn
        found = {side: [tuple(map(statistics.median, zip(*rounds, strict=True)))] for side, rounds in found.items()}
    best = {side: min(rounds) for side, rounds in found.items()}
    ours = best["gpudiag"][0]
    print("| | seconds | CPU seconds | peak MiB | rows | gpudiag takes |\n|---|--:|--:|--:|--:|--:|")
    for side, (seconds, cpu, mib, rows) in best.items():
        ratio = "" if side == "gpudiag" else f"1/{seconds / ours:.1f}" if seconds > ours else f"{ours / seconds:.1f} x"
        print(f"| {side} | {seconds:.2f} | {cpu:.2f} | {mib:,.0f} | {rows:,} | {ratio} |")


if __name__ == "__main__":
    main()
