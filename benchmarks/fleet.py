"""A fleet of simulated runs: rate, scaling, memory of a warm process, and the same on a cluster that is not here.

    python benchmarks/fleet.py --runs 1000

Runs are the cases of ``gpudiag demo`` with seeds of their own. Everything is measured in one go: the fleet by 1 worker
and by as many as there are processors, a loop over ``gpudiag diagnose`` (on a few of the runs), memory of one warm
process over its first 200 runs. The cluster is a discrete-event simulation of the driver and its workers over the times
that were recorded here: what the driver does for a run is serial, what a worker does is not.
"""

from __future__ import annotations

import argparse
import heapq
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psutil

from gpudiag.fleets.fleet import fleet
from gpudiag.fleets.found import runs_below
from gpudiag.fleets.kept import FleetFolder
from gpudiag.fleets.worker import Job, Outcome, Worker
from gpudiag.simulation.cases import aggressive_pruning, healthy
from gpudiag.simulation.simulator import simulate

FEW = 6
OPTIONS: dict[str, dict[str, object]] = {"reading": {"timezone": None}, "judging": {}}


def build(top: Path, n: int) -> None:
    """``n`` runs, of each case as many."""
    specs = [healthy.SPEC, aggressive_pruning.SPEC, replace(healthy.SPEC, workers=3)]
    for at in range(n):
        simulate(specs[at % 3], seed=10_000 + at).write(top / f"project-{at % 7}" / f"run-{at:04d}")


def warm(runs: Path) -> tuple[list[float], list[float]]:
    """Seconds and memory (MiB) after each of the runs, by one warm process."""
    worker = Worker()
    took, memory = [], []
    for run in runs_below([runs])[:200]:
        began = time.perf_counter()
        worker.diagnosed(Job(run, OPTIONS))
        took.append(time.perf_counter() - began)
        assert worker._child is not None
        memory.append(psutil.Process(worker._child.pid).memory_info().rss / 2**20)
    worker.close()
    return took, memory


def driver_s(runs: Path) -> float:
    """What the driver spends on keeping one run."""
    found = runs_below([runs])[:FEW]
    worker = Worker()
    outcomes: list[Outcome] = [worker.diagnosed(Job(run, OPTIONS)) for run in found]
    worker.close()
    with tempfile.TemporaryDirectory() as out:
        folder = FleetFolder(Path(out))
        folder.begin()
        began = time.perf_counter()
        for _ in range(20):
            for outcome in outcomes:
                folder.keep(outcome, OPTIONS)
        return (time.perf_counter() - began) / 20 / len(outcomes)


def loop_s(runs: Path) -> float:
    """Seconds a run of a loop over the command."""
    some = runs_below([runs])[:FEW]
    began = time.perf_counter()
    for run in some:
        command = [sys.executable, "-m", "gpudiag", "diagnose", run.source, "--format", "json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) / len(some)


def cluster_s(times: list[float], workers: int, n: int, serial_s: float) -> float:
    """Seconds for ``n`` runs of these times by ``workers`` that fetch the next run from one driver."""
    free = [0.0] * workers
    driver = end = 0.0
    for at in range(n):
        ready = heapq.heappop(free)
        done = ready + times[at % len(times)]
        driver = max(driver, done) + serial_s if at else done + serial_s
        end = max(end, driver)
        heapq.heappush(free, done)
    return end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    a = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder) / "runs"
        build(top, a.runs)
        took, memory = warm(top)
        rates = {}
        for jobs in sorted({1, cores}):
            began = time.perf_counter()
            fleet(top, Path(folder) / f"out-{jobs}", jobs=jobs)
            rates[jobs] = time.perf_counter() - began
        began = time.perf_counter()
        fleet(top, Path(folder) / f"out-{cores}", jobs=cores)
        again = time.perf_counter() - began
        each, serial = loop_s(top), driver_s(top)
        shutil.rmtree(top)
    third = len(memory) // 3
    whole = rates[cores]
    print(f"{a.runs} runs, {cores} processors")
    print(f"by 1 worker {rates[1]:.0f} s, by {cores} {whole:.0f} s: {rates[1] / whole:.2f} times as fast")
    print(f"unchanged, once more: {again:.1f} s")
    print(f"a loop over gpudiag diagnose: {each:.2f} s a run, {each * a.runs / whole:.1f} times as long")
    print(f"one warm process: median {statistics.median(took):.2f} s a run, {1e3 * serial:.1f} ms of the driver's")
    early, late = statistics.median(memory[third : 2 * third]), statistics.median(memory[-third:])
    print(f"its memory: {early:.0f} MiB in the second third of {len(memory)} runs, {late:.0f} MiB in the last")
    work = sum(took[1:]) / len(took[1:])
    for workers in (8, 64, 256):
        ideal = 10_000 * work / workers
        spent = cluster_s(took[1:], workers, 10_000, serial)
        print(f"10,000 runs on {workers} workers (simulated): {spent:.0f} s, efficiency {ideal / spent:.2f}")


if __name__ == "__main__":
    main()
