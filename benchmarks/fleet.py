"""A fleet of simulated runs: rate, scaling, memory of a warm process, and the same on a cluster that is not here.

    python benchmarks/fleet.py --runs 1000

Runs are the cases of ``gpudiag demo`` with seeds of their own. Everything is measured in one go: the fleet by 1 worker
and by as many as there are processors, a loop over ``gpudiag diagnose`` (on a few of the runs), memory of one warm
process over 200 runs. Beside seconds on the clock stands processor time, which other work on the machine changes less.
The cluster is a discrete-event simulation of the driver and its workers over the processor times that were recorded
here: what the driver does for a run is serial, what a worker does is not.
"""

from __future__ import annotations

import argparse
import heapq
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil

from gpudiag.fleets.fleet import fleet
from gpudiag.fleets.found import runs_below
from gpudiag.fleets.kept import FleetFolder
from gpudiag.fleets.worker import Job, Outcome, Worker
from gpudiag.simulation.cases import aggressive_pruning, healthy
from gpudiag.simulation.simulator import simulate

FEW = 6
WARM = 200
"""Diagnoses over which the memory of a warm process is watched."""
OPTIONS: dict[str, dict[str, object]] = {"reading": {"timezone": None}, "judging": {}}


def build(top: Path, n: int) -> None:
    """``n`` runs, of each case as many."""
    specs = [healthy.SPEC, aggressive_pruning.SPEC, replace(healthy.SPEC, workers=3)]
    for at in range(n):
        simulate(specs[at % 3], seed=10_000 + at).write(top / f"project-{at % 7}" / f"run-{at:04d}")


def warm(runs: Path) -> tuple[list[float], list[float]]:
    """Processor seconds of, and memory (MiB) after, each of 200 diagnoses by one warm process; fewer runs repeat."""
    worker = Worker()
    took, memory = [], []
    found = runs_below([runs]).runs
    worker.diagnosed(Job(found[-1], OPTIONS))
    assert worker._child is not None
    child = psutil.Process(worker._child.pid)
    for at in range(WARM):
        began = sum(child.cpu_times()[:2])
        worker.diagnosed(Job(found[at % len(found)], OPTIONS))
        took.append(sum(child.cpu_times()[:2]) - began)
        memory.append(child.memory_info().rss / 2**20)
    worker.close()
    return took, memory


def processor_s() -> float:
    """Of this process and of its children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the clock and of processors that something takes."""
    clock, processors = time.perf_counter(), processor_s()
    work()
    return time.perf_counter() - clock, processor_s() - processors


def driver_s(runs: Path) -> float:
    """What the driver spends on keeping one run."""
    found = runs_below([runs]).runs[:FEW]
    worker = Worker()
    outcomes: list[Outcome] = [worker.diagnosed(Job(run, OPTIONS)) for run in found]
    worker.close()
    with tempfile.TemporaryDirectory() as out:
        folder = FleetFolder(Path(out))
        with folder.alone():
            began = time.process_time()
            for _ in range(20):
                for outcome in outcomes:
                    folder.keep(outcome, OPTIONS)
            return (time.process_time() - began) / 20 / len(outcomes)


def loop(runs: Path) -> None:
    """A loop over the command."""
    for run in runs_below([runs]).runs[:FEW]:
        command = [sys.executable, "-m", "gpudiag", "diagnose", run.source, "--format", "json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


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
            rates[jobs] = timed(partial(fleet, top, Path(folder) / f"out-{jobs}", jobs=jobs))
        again, _ = timed(partial(fleet, top, Path(folder) / f"out-{cores}", jobs=cores))
        each = [spent / FEW for spent in timed(partial(loop, top))]
        serial = driver_s(top)
        shutil.rmtree(top)
    third = len(memory) // 3
    whole = rates[cores][0]
    print(f"{a.runs} runs, {cores} processors, load {os.getloadavg()[0]:.1f} at the end")
    for jobs, (clock, processors) in rates.items():
        print(
            f"{jobs} workers: {clock:.0f} s, {clock / a.runs:.2f} s a run; {processors / a.runs:.2f} processor s a run"
        )
    print(f"{rates[1][0] / whole:.2f} times as fast by {cores} as by 1")
    print(f"unchanged, once more: {again:.1f} s")
    print(f"a loop over gpudiag diagnose: {each[0]:.2f} s a run, {each[1]:.2f} processor s a run")
    print(f"one warm process: median {statistics.median(took):.2f}, mean {statistics.mean(took):.2f} processor s a run")
    print(f"the driver: {1e3 * serial:.1f} ms a run")
    early, late = statistics.median(memory[third : 2 * third]), statistics.median(memory[-third:])
    print(f"its memory: {early:.0f} MiB in the second third of {len(memory)} runs, {late:.0f} MiB in the last")
    work = sum(took) / len(took)
    for workers in (8, 64, 256):
        ideal = 10_000 * work / workers
        spent = cluster_s(took, workers, 10_000, serial)
        print(f"10,000 runs on {workers} workers (simulated): {spent:.0f} s, efficiency {ideal / spent:.2f}")


if __name__ == "__main__":
    main()
