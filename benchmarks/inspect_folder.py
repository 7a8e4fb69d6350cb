"""Milliseconds a file that `gpudiag inspect FOLDER` takes for many small logs, after import."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from gpudiag._load.inspection import inspect

HEADER = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"


def write_logs(folder: Path, count: int) -> None:
    """Logs of one GPU over one minute, a sample a second."""
    for number in range(count):
        rows = [
            f"2026/03/01 10:00:{second:02d}.000, 0, NVIDIA H200, {7 * second % 101} %, {900 + number} MiB, 143771 MiB\n"
            for second in range(60)
        ]
        (folder / f"{number:05d}.csv").write_text(HEADER + "".join(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_logs(folder, arguments.files)
        next(iter(inspect([folder / "00000.csv"], timezone="UTC")))
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        count = sum(record.error is None for record in inspect([folder], timezone="UTC"))
        wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    print(f"{count} files: {1000 * wall_s / count:.1f} ms wall, {1000 * cpu_s / count:.1f} ms CPU a file")


if __name__ == "__main__":
    main()
