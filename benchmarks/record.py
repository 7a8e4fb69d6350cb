"""What the recorder costs: processor time per tick of 8 replayed GPUs, as a share of one core at 1 Hz.

    python benchmarks/record.py               ticks back to back, then 20 s in real time beside an idle process

NVML is replayed (its own cost is the driver's), everything else is real: the host through psutil, the
rows, the file. The limit is 0.5 % of a core.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gpudiag.record.host import Host
from gpudiag.record.readings import Device, Values
from gpudiag.record.recorder import Recorder
from gpudiag.record.sampler import Options, Sampler
from gpudiag.record.sink import CsvSink
from gpudiag.record.status import Board

GPUS = 8
LIMIT_PCT = 0.5
READING: Values = {
    "util_pct": 85, "mem_util_pct": 40, "mem_used_mib": 12595.2, "mem_total_mib": 24576.0, "mem_reserved_mib": 450.5,
    "power_w": 410.123, "power_average_w": 409.9, "power_instant_w": 431.2, "power_limit_w": 700.0,
    "energy_j": 123456789.125, "temp_c": 61, "mem_temp_c": 72, "sm_clock_mhz": 1755, "mem_clock_mhz": 3201,
    "throttle_reasons": 4, "pstate": 0, "pcie_rx_mib_s": 812.5, "pcie_tx_mib_s": 90.25, "enc_pct": 0, "dec_pct": 0,
}  # fmt: skip


class Replay:
    """Eight GPUs with two processes each, all readings known."""

    def open(self) -> tuple[str, Sequence[Device]]:
        return "570.86.15", [Device(str(gpu), f"GPU-{gpu}", "NVIDIA H200") for gpu in range(GPUS)]

    def read(self, device: Device, *, pcie: bool) -> Values:
        return READING

    def processes(self, device: Device) -> list[Values]:
        return [{"pid": pid, "mem_used_mib": 6000.5, "sm_pct": 40} for pid in (1, 2)]

    def close(self) -> None:
        pass


def back_to_back(folder: Path, ticks: int, *, processes: bool, host: bool) -> tuple[float, float]:
    """Milliseconds of processor time and bytes of file per tick. The host is read once a second, as at 1 Hz."""
    path = folder / f"ticks-{processes}-{host}.csv"
    board = Board(print)
    options = Options(processes=processes)
    sampler = Sampler(CsvSink(path, print), Replay(), Host() if host else None, options, heard=board.update)
    sampler.open()
    sampler.tick()
    before, size = time.process_time(), path.stat().st_size
    for _ in range(ticks):
        sampler.tick()
    spent = time.process_time() - before
    written = path.stat().st_size - size
    sampler.close()
    return 1000 * spent / ticks, written / ticks


def in_real_time(folder: Path, seconds: float) -> float:
    """Percent of one core that a recorder with everything on takes at 1 Hz in a process that sleeps."""
    with Recorder(folder / "real.csv", adapter=Replay()):
        time.sleep(1.5)
        before, began = time.process_time(), time.perf_counter()
        time.sleep(seconds)
        return 100 * (time.process_time() - before) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ticks", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20)
    asked = parser.parse_args()
    print(f"| 1 Hz, {GPUS} GPUs replayed | processor ms per tick | share of a core | of the limit | MB per day |")
    print("|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        for processes, host, words in (
            (False, False, "GPUs"),
            (True, False, "GPUs, 16 processes"),
            (True, True, "GPUs, 16 processes, host"),
        ):
            ms, size = back_to_back(Path(name), asked.ticks, processes=processes, host=host)
            print(row(words, f"{ms:.2f}", ms / 10, f"{size * 86400 / 1e6:.0f}"))
        share_pct = in_real_time(Path(name), asked.seconds)
        print(row(f"all of it, {asked.seconds:.0f} s in real time", f"{share_pct * 10:.2f}", share_pct, ""))


def row(words: str, ms: str, share_pct: float, mb_day: str) -> str:
    return f"| {words} | {ms} | {share_pct:.3f} % | {share_pct / LIMIT_PCT:.2f} | {mb_day} |"


if __name__ == "__main__":
    main()
