"""What the recorder costs: processor time per tick of 8 replayed GPUs, as a share of one core at 1 Hz.

    python benchmarks/record.py               ticks back to back, then 20 s in real time beside an idle process
    python benchmarks/record.py --pairs 30    a training in numpy with and without it, in pairs

NVML is replayed (its own cost is the driver's), everything else is real: the host through psutil, the
rows, the file. The limit is 0.5 % of a core.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from gpudiag.record.host import Host
from gpudiag.record.readings import Device, Values
from gpudiag.record.recorder import Recorder
from gpudiag.record.sampler import Options, Sampler
from gpudiag.record.sink import CsvSink
from gpudiag.record.status import LiveStatus

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
    board = LiveStatus(print)
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


class Training:
    """Steps of gradient descent on a small network, in numpy alone."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._x, self._y = rng.normal(size=(512, 128)), rng.normal(size=(512, 8))
        self._first, self._second = rng.normal(size=(128, 256)) / 16, rng.normal(size=(256, 8)) / 16

    def step(self) -> None:
        hidden = np.maximum(self._x @ self._first, 0)
        error = hidden @ self._second - self._y
        back = (error @ self._second.T) * (hidden > 0)
        self._second -= 1e-6 * hidden.T @ error
        self._first -= 1e-6 * self._x.T @ back

    def steps_for(self, seconds: float) -> tuple[float, float]:
        """Mean wall and processor milliseconds of a step; the latter with what other threads spend meanwhile."""
        steps, began, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - began < seconds:
            for _ in range(10):
                self.step()
            steps += 10
        return 1000 * (time.perf_counter() - began) / steps, 1000 * (time.process_time() - cpu) / steps


def paired(folder: Path, pairs: int, seconds: float, interval_s: float) -> np.ndarray:
    """Rows of (wall without, with, processor without, with), in ms a step; which comes first changes by the pair."""
    training = Training()
    training.steps_for(1)
    rows = []
    for pair in range(pairs):
        found: dict[bool, tuple[float, float]] = {}
        for recorded in (pair % 2 == 0, pair % 2 == 1):
            if not recorded:
                found[False] = training.steps_for(seconds)
                continue
            with Recorder(folder / "paired.csv", interval_s=interval_s, adapter=Replay()):
                time.sleep(0.3 * interval_s)  # the first tick lies outside: as many ticks as intervals are in the block
                found[True] = training.steps_for(seconds)
        rows.append((found[False][0], found[True][0], found[False][1], found[True][1]))
    return np.array(rows)


def ratio(without: np.ndarray, beside: np.ndarray) -> str:
    """Geometric mean of the ratios with its 95 % interval (t over the pairs' logarithms)."""
    logs = np.log(beside / without)
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    middle, low, high = np.exp([logs.mean(), logs.mean() - half, logs.mean() + half])
    return f"{middle:.4f} ({low:.4f} to {high:.4f})"


def compare(pairs: int, seconds: float) -> None:
    print(f"| {pairs} pairs of {seconds:g} s, 8 GPUs replayed | step without | wall with / without | processor time |")
    print("|---|---:|---:|---:|")
    for interval_s in (1.0, 0.1):
        with tempfile.TemporaryDirectory() as name:
            rows = paired(Path(name), pairs, seconds, interval_s)
        step = f"{np.median(rows[:, 0]):.2f} ms"
        print(f"| {1 / interval_s:g} Hz | {step} | {ratio(rows[:, 0], rows[:, 1])} | {ratio(rows[:, 2], rows[:, 3])} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ticks", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--pairs", type=int, default=0, help="measure a training with and without, that many times")
    parser.add_argument("--block", type=float, default=3, help="seconds of each half of a pair")
    asked = parser.parse_args()
    if asked.pairs:
        compare(asked.pairs, asked.block)
        return
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
